# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Holds the exchange kernels of a gfx942 code object against the rules, prints a table of them, and
compares it with the one that a document shows."""

import argparse
import re
import shutil
import subprocess
import sys

import gcn
import kernels
import table


def tool(name):
    for candidate in (f"{name}-19", name, f"/opt/rocm/llvm/bin/{name}"):
        found = shutil.which(candidate)
        if found:
            return found
    print(f"SKIPPED: no {name} (package llvm-19)")
    sys.exit(0)


def compiler_of(comments):
    """The newest of those that left their names: the device libraries were made by an older one."""
    found = re.findall(r"\b(clang version (\d+)[^\s()]*)", comments)
    return max(found, key=lambda one: int(one[1]))[0] if found else "an unknown compiler"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("code_object")
    parser.add_argument("--document", help="what shows the table")
    parser.add_argument("--update", action="store_true", help="write the table there")
    given = parser.parse_args()
    objdump, readelf = tool("llvm-objdump"), tool("llvm-readelf")
    run = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = gcn.read(run(objdump, "-d", "--mcpu=gfx942", given.code_object))
    resources = gcn.resources_of(run(readelf, "--notes", given.code_object))
    broken, rows = [], []
    for name, expected in kernels.KERNELS.items():
        if name not in found or name not in resources:
            broken.append(f"{name}: not in the code object")
            continue
        rows.append([name, expected.rows or "none"] + gcn.summary(found[name], resources[name]))
        broken += [f"{name}: {line}" for line in gcn.breaches(found[name], expected, resources[name])]
    broken += table.show(
        "gfx942",
        compiler_of(run(readelf, "-p", ".comment", given.code_object)),
        ["kernel", "rows through"] + gcn.COLUMNS,
        rows,
        given.document,
        given.update,
    )
    for line in sorted(set(found) - set(kernels.KERNELS)):
        if line.startswith("ferry_"):
            broken.append(f"{line}: no expectation in kernels.py")
    print("\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
