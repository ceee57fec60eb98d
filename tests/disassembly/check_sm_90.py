# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Holds the exchange kernels in PTX for sm_90 against the rules, and prints a table of them.

usage: check_sm_90.py PTX PTXAS_LOG
"""

import sys

import kernels
import ptx
import table


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        found = ptx.read(file.read())
    with open(sys.argv[2], encoding="utf-8") as file:
        registers = ptx.registers_of(file.read())
    broken, rows = [], []
    for name, expected in kernels.KERNELS.items():
        if name not in found or name not in registers:
            broken.append(f"{name}: not in the code")
            continue
        used, spilled, shared = registers[name]
        rows.append([name, expected.rows or "none", used, shared] + ptx.summary(found[name]))
        if spilled:
            broken.append(f"{name}: {spilled} bytes of stack and spills")
        broken += [f"{name}: {line}" for line in ptx.breaches(found[name], expected)]
    table.show(["kernel", "rows through", "registers", "shared"] + ptx.COLUMNS, rows)
    print("\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
