# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Holds the exchange kernels in PTX for sm_90 against the rules, prints a table of them, and compares
it with the one that a document shows."""

import argparse
import re
import sys

import kernels
import ptx
import table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ptx")
    parser.add_argument("ptxas_log")
    parser.add_argument("--document", help="what shows the table")
    parser.add_argument("--update", action="store_true", help="write the table there")
    given = parser.parse_args()
    with open(given.ptx, encoding="utf-8") as file:
        text = file.read()
    found = ptx.read(text)
    with open(given.ptxas_log, encoding="utf-8") as file:
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
    version = re.search(r"release [\d.]+, V([\d.]+)", text)
    broken += table.show(
        "sm_90",
        f"nvcc {version.group(1)}" if version else "an unknown compiler",
        ["kernel", "rows through", "registers", "shared"] + ptx.COLUMNS,
        rows,
        given.document,
        given.update,
    )
    print("\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
