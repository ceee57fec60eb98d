# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Reads PTX, and holds its kernels against the same rules as gfx942's code.

What PTX leaves open (how many registers a kernel takes, whether it spills) is the assembler's to say.
"""

import re

import flow

ENTRY = re.compile(r"^\.visible \.entry (\w+)\(")
LABEL = re.compile(r"^(\$?[\w$]+):")
OP = re.compile(r"^(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s*(.*?);?$")


def read(text):
    """{kernel: [Instruction]}."""
    kernels, code, labels, name = {}, None, {}, None
    for number, line in enumerate(text.splitlines(), 1):
        entry = ENTRY.match(line)
        if entry:
            name, code, labels = entry.group(1), [], {}
            continue
        if code is None:
            continue
        if line.startswith("}"):
            for i in code:
                if i.op.startswith("bra"):
                    i.target = labels[i.args.split()[-1].rstrip(";")]
            kernels[name], code = code, None
            continue
        line = line.strip()
        label = LABEL.match(line)
        if label:
            labels[label.group(1)] = len(code)
            line = line[label.end() :].strip()
        if not line or line.startswith((".", "//", "{", "}", "(", ")")):
            if ".local" in line and line.startswith(".local"):
                code.append(flow.Instruction(f"line {number}", "depot", line))
            continue
        found = OP.match(line)
        if not found:
            continue
        instruction = flow.Instruction(f"line {number}", found.group(1), found.group(2))
        guarded = line.startswith("@")
        instruction.falls_through = guarded or not instruction.op.startswith(("bra", "ret", "exit", "trap"))
        code.append(instruction)
    return kernels


def is_memory(i):
    return re.match(r"(ld|st)\.", i.op) is not None


def space_of(i):
    found = re.search(r"\.(global|shared|local|param|const)", i.op)
    return found.group(1) if found else "generic"


def row_store(i):
    return i.op.startswith("st.global.v4.") and i.op.endswith("32")


def flag_store(i):
    return i.op.startswith("st.relaxed.sys.global.u64") or i.op.startswith("st.relaxed.sys.global.b64")


def flag_load(i):
    return i.op.startswith(("ld.relaxed.sys.global.u64", "ld.relaxed.sys.global.b64"))


def plain_load(i):
    return i.op.startswith("ld.global")


def fence(i):
    return i.op == "fence.acq_rel.sys"


def step(i, facts):
    facts = set(facts)
    if fence(i):
        facts -= {"put", "waited"}
    if row_store(i):
        facts.add("put")
    if flag_load(i):
        facts.add("waited")
    return frozenset(facts)


def breaches(code, expected):
    before = flow.reaching(code, step)
    loops = flow.in_loops(code)
    for i in code:
        if i.op == "depot" or is_memory(i) and space_of(i) == "local":
            yield f"memory of a thread's own: {i.text()}"
        if is_memory(i) and space_of(i) == "generic":
            yield f"an access to no known space: {i.text()}"
        if i.op.startswith("call"):
            yield f"a call: {i.text()}"
    for i, facts in zip(code, before):
        if facts is None:
            continue
        if expected.puts and flag_store(i) and "put" in facts:
            yield f"a flag with no fence since a row's store: {i.text()}"
        if plain_load(i) and "waited" in facts:
            yield f"a load after a flag's wait, but before the fence: {i.text()}"
    if expected.rows in (None, "memory"):
        return  # rows at any address are read and stored element by element
    in_loop = [i for n, i in enumerate(code) if n in loops]
    if not any(re.match(r"ld\.global(\.nc)?\.v4\.", i.op) for i in in_loop):
        yield "no 16-byte load in a loop"
    if not any(row_store(i) for i in in_loop):
        yield "no 16-byte store in a loop"
    for i in in_loop:
        found = re.match(r"(ld|st)\.global(?:\.nc)?\.[usb](8|16)$", i.op)
        kind = found and {"ld": "load", "st": "store"}[found.group(1)]
        if kind and kind not in expected.narrow:
            yield f"a {kind} of less than a word in a loop: {i.text()}"


def summary(code):
    return [
        sum(1 for i in code if re.match(r"ld\.global(\.nc)?\.v4\.", i.op)),
        sum(1 for i in code if row_store(i)),
        sum(1 for i in code if fence(i)),
        len(code),
    ]


COLUMNS = ["16-byte loads", "16-byte stores", "system fences", "instructions"]


def registers_of(log):
    """{kernel: (registers, spilled bytes, static shared bytes)} of `ptxas -v`."""
    all_of, name, spilled = {}, None, 0
    for line in log.splitlines():
        found = re.search(r"Compiling entry function '(\w+)'", line)
        if found:
            name, spilled = found.group(1), 0
        found = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if found:
            spilled = sum(int(n) for n in found.groups())
        found = re.search(r"Used (\d+) registers", line)
        if found and name:
            shared = re.search(r"(\d+) bytes smem", line)
            all_of[name] = (int(found.group(1)), spilled, int(shared.group(1)) if shared else 0)
            name = None
    return all_of
