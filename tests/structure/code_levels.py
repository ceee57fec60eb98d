# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Code built for a newer CPU must not leak into the rest of the program.

usage: code_levels.py NAME_REGEX OBJECT...

A function that several objects define (an inline function, a template) is kept once by the linker,
and the kept one may be that with the newer instructions. So in objects built for a level, every
such symbol must carry the level in its mangled name, which NAME_REGEX finds.
"""

import re
import subprocess
import sys

# W weak function, V weak object, u unique object. Local (t, d, r, b) and strong symbols are safe:
# a second definition of those is an error of the linker.
SHARED = set("WVu")


def shared_symbols(path):
    out = subprocess.run(["nm", "--defined-only", path], capture_output=True, check=True, text=True).stdout
    for line in out.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in SHARED:
            yield fields[2]


def main(pattern, *objects):
    level = re.compile(pattern)
    breaches, symbols = [], 0
    for path in objects:
        for name in shared_symbols(path):
            symbols += 1
            # References to the exception personality are the same bytes in every object.
            if not level.search(name) and not name.startswith("DW.ref."):
                breaches.append(f"{path}: {name} does not carry {pattern}")
    print("\n".join(breaches) or f"{len(objects)} objects, {symbols} shared symbols, all carry {pattern}")
    return 1 if breaches or not objects else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
