# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Shows that code_levels.py finds an inline function that does not carry its level.

usage: code_levels_test.py CXX_COMPILER
"""

import pathlib
import subprocess
import sys
import tempfile

import code_levels

GOOD = "namespace level_v3 { inline int twice(int x) { return 2 * x; } }\nint strong(int x) { return level_v3::twice(x); }\n"
BAD = "inline int twice(int x) { return 2 * x; }\nint strong(int x) { return twice(x); }\n"


def verdict(compiler, source):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "x.cpp")
        path.write_text(source)
        subprocess.run([compiler, "-O0", "-c", "x.cpp", "-o", "x.o"], cwd=folder, check=True)
        return code_levels.main("level_v3", str(path.with_suffix(".o")))


if __name__ == "__main__":
    if verdict(sys.argv[1], GOOD) != 0 or verdict(sys.argv[1], BAD) != 1:
        sys.exit("code_levels.py does not tell a good object from a bad one")
