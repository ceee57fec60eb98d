# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""The checkers pass good code, and refuse each sample that breaks a rule, saying which."""

import re
import sys

import doorbell
import gcn
import kernels
import ptx
import samples
import table

ROWS = kernels.Expected("registers", True)
NAME = "sample"


def disassembly(text):
    """A sample as llvm-objdump would print it."""
    lines, places = [], {}
    for line in text.strip("\n").splitlines():
        if line.startswith(":"):
            places[line[1:]] = 4 * len(lines)
        else:
            lines.append(line.strip())
    printed = [f"0000000000001000 <{NAME}>:"]
    for n, line in enumerate(lines):
        found = re.search(r":(\w+)$", line)
        to = f" <{NAME}+{places[found.group(1)]:#x}>" if found else ""
        text = re.sub(r":\w+$", "0", line)
        printed.append(f"\t{text}    // {0x1000 + 4 * n:012X}: 00000000{to}")
    return "\n".join(printed) + "\n"


def said_of_gcn(text, resources=None):
    return list(gcn.breaches(gcn.read(disassembly(text))[NAME], ROWS, resources or {}))


def said_of_ptx(text):
    return list(ptx.breaches(ptx.read(text)[NAME], ROWS))


def main():
    wrong = []

    def expect(name, said, wanted):
        if wanted is None and said:
            wrong.append(f"{name}: the good sample is refused: {said}")
        if wanted is not None and not any(wanted in line for line in said):
            wrong.append(f"{name}: should say '{wanted}', but says {said}")

    expect("gfx942", said_of_gcn(samples.GOOD_GCN), None)
    for old, new, wanted in samples.BAD_GCN:
        if samples.GOOD_GCN.count(old) == 0:
            wrong.append(f"gfx942: nothing to replace: {old!r}")
        expect(f"gfx942 {new!r}", said_of_gcn(samples.GOOD_GCN.replace(old, new, 1)), wanted)
    for resources, wanted in samples.BAD_RESOURCES:
        expect(f"gfx942 {resources}", said_of_gcn(samples.GOOD_GCN, resources), wanted)
    expect("sm_90", said_of_ptx(samples.GOOD_PTX), None)
    for old, new, wanted in samples.BAD_PTX:
        if samples.GOOD_PTX.count(old) == 0:
            wrong.append(f"sm_90: nothing to replace: {old!r}")
        expect(f"sm_90 {new!r}", said_of_ptx(samples.GOOD_PTX.replace(old, new, 1)), wanted)
    said_of_post = lambda of, text: list(doorbell.breaches(of.read(text)[NAME], of, True))
    for of, good, bad, printed in (
        (doorbell.Gcn, samples.GOOD_POST_GCN, samples.BAD_POST_GCN, disassembly),
        (doorbell.Ptx, samples.GOOD_POST_PTX, samples.BAD_POST_PTX, str),
    ):
        expect("a post", said_of_post(of, printed(good)), None)
        for old, new, wanted in bad:
            if good.count(old) == 0:
                wrong.append(f"a post: nothing to replace: {old!r}")
            expect(f"a post {new!r}", said_of_post(of, printed(good.replace(old, new, 1))), wanted)
    shown = ["gfx942, clang 1:", "", "| a |", "|---|", "| 1 |", "text"]
    said_of_document = lambda compiler, rows: list(
        table.breaches(shown, "gfx942", compiler, table.lines_of(["a"], rows))
    )
    expect("a document", said_of_document("clang 1", [[1]]), None)
    expect("a document of another compiler", said_of_document("clang 2", [[2]]), None)
    expect("a document of before", said_of_document("clang 1", [[2]]), "only the document shows: | 1 |")
    expect("a new row", said_of_document("clang 1", [[1], [2]]), "the document does not show: | 2 |")
    expect("no document", list(table.breaches([], "sm_90", "nvcc 1", [])), "has no line")
    if table.updated(shown, "gfx942", "clang 2", ["| b |"]) != ["gfx942, clang 2:", "", "| b |", "text"]:
        wrong.append("a document is not updated")

    bad = (samples.BAD_GCN, samples.BAD_RESOURCES, samples.BAD_PTX, samples.BAD_POST_GCN, samples.BAD_POST_PTX)
    print("\n".join(wrong) or f"{sum(map(len, bad))} bad samples found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
