# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Holds the exchange kernels of a gfx942 code object against the rules, and prints a table of them.

usage: check_gfx942.py CODE_OBJECT
"""

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


def main():
    objdump, readelf = tool("llvm-objdump"), tool("llvm-readelf")
    run = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = gcn.read(run(objdump, "-d", "--mcpu=gfx942", sys.argv[1]))
    resources = gcn.resources_of(run(readelf, "--notes", sys.argv[1]))
    broken, rows = [], []
    for name, expected in kernels.KERNELS.items():
        if name not in found or name not in resources:
            broken.append(f"{name}: not in the code object")
            continue
        rows.append([name, expected.rows or "none"] + gcn.summary(found[name], resources[name]))
        broken += [f"{name}: {line}" for line in gcn.breaches(found[name], expected, resources[name])]
    table.show(["kernel", "rows through"] + gcn.COLUMNS, rows)
    for line in sorted(set(found) - set(kernels.KERNELS)):
        if line.startswith("ferry_"):
            broken.append(f"{line}: no expectation in kernels.py")
    print("\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
