# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Reads `llvm-objdump -d` of a gfx942 code object, and holds kernels against the rules."""

import re

import flow

LINE = re.compile(r"^\s+([a-z][a-z0-9_]+)\s*(.*?)\s*//\s*([0-9A-F]+):")
LABEL = re.compile(r"^[0-9a-f]+ <([A-Za-z_]\w*)>:")
TARGET = re.compile(r"<(\w+)(?:\+0x([0-9a-f]+))?>\s*$")
ENDS = {"s_endpgm", "s_branch", "s_setpc_b64"}


def read(text):
    """{kernel: [Instruction]} of a disassembly."""
    kernels, name, addresses, targets = {}, None, {}, []
    starts = {}
    for line in text.splitlines():
        label = LABEL.match(line)
        if label:
            name = label.group(1)
            kernels[name] = []
            starts[name] = int(line.split()[0], 16)
            continue
        found = LINE.match(line)
        if not found or name is None:
            continue
        op, args, at = found.group(1), found.group(2), int(found.group(3), 16)
        instruction = flow.Instruction(f"{at:#x}", op, args)
        instruction.falls_through = op not in ENDS
        addresses[at] = (name, len(kernels[name]))
        if op.startswith(("s_cbranch", "s_branch")):
            to = TARGET.search(line)
            if to:
                targets.append((instruction, to.group(1), int(to.group(2) or "0", 16)))
        kernels[name].append(instruction)
    for instruction, symbol, offset in targets:
        place = addresses.get(starts[symbol] + offset)
        if place is None:
            raise ValueError(f"{instruction.text()}: leads to no instruction")
        instruction.target = place[1]
    return {name: code for name, code in kernels.items() if code}


def through(i):
    """A store that goes to all observers."""
    return i.op.startswith("global_store") and "sc0 sc1" in i.args


def puts(i):
    """What goes into a peer's rows, and what a rank says of its failure: all but 8-byte words."""
    return through(i) and not i.op.endswith("dwordx2")


def row_store(i):
    return i.op == "global_store_dwordx4" and through(i)


def flag_store(i):
    return i.op == "global_store_dwordx2" and through(i)


def flag_load(i):
    return i.op == "global_load_dwordx2" and "sc0 sc1" in i.args


def vector_load(i):
    return i.op.startswith(("global_load", "buffer_load", "flat_load", "scratch_load"))


def waits_for_all(i):
    return i.op == "s_waitcnt" and "vmcnt(0)" in i.args


def narrow(i):
    if not i.op.startswith("global_"):
        return None
    if not re.search(r"_(u?byte|sbyte|short|ushort|sshort)", i.op):
        return None
    return "load" if "_load" in i.op else "store"


def step(i, facts):
    facts = set(facts)
    if waits_for_all(i):
        facts -= {"put", "row", "written back"}
    if i.op == "buffer_inv" and "sc0 sc1" in i.args:
        facts.discard("waited")
    if puts(i):
        facts.add("put")
    if row_store(i):
        facts.add("row")
    if i.op == "buffer_wbl2":
        facts.add("written back")
    if flag_load(i):
        facts.add("waited")
    return frozenset(facts)


def breaches(code, expected, resources):
    """One line for each rule that the kernel breaks. `resources` are the numbers of its metadata."""
    before = flow.reaching(code, step)
    loops = flow.in_loops(code)
    for i in code:
        if i.op.startswith("flat_"):
            yield f"a flat access: {i.text()}"
        if i.op.startswith("scratch_"):
            yield f"an access to scratch: {i.text()}"
        if i.op in ("s_swappc_b64", "s_setpc_b64"):
            yield f"a call: {i.text()}"
        if i.op == "buffer_wbl2":
            yield f"a write-back, though rows write through: {i.text()}"
    if resources.get("private_segment_fixed_size", 0):
        yield f"{resources['private_segment_fixed_size']} bytes of scratch"
    if resources.get("vgpr_count", 0) > expected.registers:
        yield f"{resources['vgpr_count']} vector registers, limit {expected.registers}"
    for i, facts in zip(code, before):
        if facts is None:
            continue  # nothing leads here
        if i.op == "s_barrier" and "put" in facts:
            yield f"a barrier with stores that nobody waited for: {i.text()}"
        if flag_store(i) and "put" in facts:
            yield f"a flag while stores are under way: {i.text()}"
        if flag_store(i) and "written back" in facts:
            yield f"a flag with no wait since the write-back: {i.text()}"
        if vector_load(i) and not flag_load(i) and "waited" in facts and "sc0 sc1" not in i.args:
            yield f"a load after a flag's wait, but before the invalidate: {i.text()}"
        if expected.rows and expected.puts and vector_load(i) and "row" in facts:
            yield f"a vector load between a row's store and its drain: {i.text()}"
    yield from widths(code, expected, loops)


def widths(code, expected, loops):
    if expected.rows is None:
        return
    in_loop = [i for n, i in enumerate(code) if n in loops]
    if not any(i.op == "global_load_dwordx4" for i in in_loop):
        yield "no 16-byte load in a loop"
    stores = row_store if expected.puts else lambda i: i.op == "global_store_dwordx4"
    if not any(stores(i) for i in in_loop):
        yield "no 16-byte store in a loop"
    if expected.rows == "memory":
        return
    for i in in_loop:
        kind = narrow(i)
        if kind and kind not in expected.narrow:
            yield f"a {kind} of less than a word in a loop: {i.text()}"


def summary(code, resources):
    """The columns of a kernel's row in the table."""
    before = flow.reaching(code, step)
    rows = sum(1 for i in code if i.op == "global_store_dwordx4")
    loads = sum(1 for i in code if i.op == "global_load_dwordx4")
    drains = sum(1 for i, f in zip(code, before) if f and "put" in f and waits_for_all(i))
    return [
        resources.get("vgpr_count", 0),
        resources.get("sgpr_count", 0),
        resources.get("group_segment_fixed_size", 0),
        loads,
        rows,
        drains,
        sum(1 for i in code if i.op == "buffer_wbl2"),
        sum(1 for i in code if i.op == "buffer_inv"),
        len(code),
    ]


COLUMNS = ["VGPR", "SGPR", "LDS", "16-byte loads", "16-byte stores", "drains", "write-backs", "invalidates",
           "instructions"]


def resources_of(notes):
    """{kernel: {number: value}} of `llvm-readelf --notes`."""
    all_of, current = {}, {}
    for line in notes.splitlines():
        found = re.match(r"\s*-?\s*\.(\w+):\s*(\S+)\s*$", line)
        if not found:
            continue
        key, value = found.groups()
        # A kernel's numbers come in alphabetic order; .agpr_count is the first.
        if key == "agpr_count":
            current = {}
        if key == "name" and "symbol" not in current and value.startswith("ferry_"):
            all_of[value] = current
        elif value.isdigit():
            current[key] = int(value)
    return all_of
