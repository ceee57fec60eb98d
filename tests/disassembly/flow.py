# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""The instructions of a kernel, and what may have happened before each of them.

A kernel is a list of instructions with the places that each may go on to. `reaching` follows a set of
facts along all ways through it: a fact is there before an instruction if it is there on some way.
"""

import collections


class Instruction:
    """`op` and `args` as the assembler writes them; `at` names it in messages."""

    def __init__(self, at, op, args):
        self.at = at
        self.op = op
        self.args = args
        self.target = None  # where a branch goes: an index
        self.falls_through = True

    def text(self):
        return f"{self.at}: {self.op} {self.args}".rstrip()


def successors(code):
    """For each instruction the indices that may come next."""
    for i, instruction in enumerate(code):
        to = [] if instruction.target is None else [instruction.target]
        if instruction.falls_through and i + 1 < len(code):
            to.append(i + 1)
        yield to


def reaching(code, step):
    """Facts before each instruction; step(instruction, facts) gives those after it (frozensets)."""
    after = list(successors(code))
    before = [None] * len(code)
    if code:
        before[0] = frozenset()
    work = collections.deque([0] if code else [])
    while work:
        i = work.popleft()
        facts = step(code[i], before[i])
        for j in after[i]:
            joined = facts if before[j] is None else before[j] | facts
            if joined != before[j]:
                before[j] = joined
                work.append(j)
    return before


def in_loops(code):
    """Indices of instructions that a way leads back to."""
    after = list(successors(code))
    index, low, on_stack, stack, loops = {}, {}, set(), [], set()
    counter = 0
    for root in range(len(code)):
        if root in index:
            continue
        todo = [(root, iter(after[root]))]
        index[root] = low[root] = counter
        counter += 1
        stack.append(root)
        on_stack.add(root)
        while todo:
            node, rest = todo[-1]
            for succ in rest:
                if succ not in index:
                    index[succ] = low[succ] = counter
                    counter += 1
                    stack.append(succ)
                    on_stack.add(succ)
                    todo.append((succ, iter(after[succ])))
                    break
                if succ in on_stack:
                    low[node] = min(low[node], index[succ])
            else:
                todo.pop()
                if todo:
                    low[todo[-1][0]] = min(low[todo[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        top = stack.pop()
                        on_stack.discard(top)
                        part.append(top)
                        if top == node:
                            break
                    if len(part) > 1 or node in after[node]:
                        loops.update(part)
    return loops
