# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Holds the kernels that post to NICs against the order that doorbells need.

usage: check_doorbells.py gfx942 CODE_OBJECT | sm_90 PTX
"""

import subprocess
import sys

import check_gfx942
import doorbell

# Whether a NIC is told the index beside the doorbell: ionic's doorbell holds it.
POSTS = {"ferry_post_mlx5": True, "ferry_post_bnxt": True, "ferry_post_ionic": False}


def main():
    target, path = sys.argv[1:]
    if target == "gfx942":
        of = doorbell.Gcn
        objdump = check_gfx942.tool("llvm-objdump")
        text = subprocess.run([objdump, "-d", "--mcpu=gfx942", path], check=True, capture_output=True, text=True).stdout
    else:
        of = doorbell.Ptx
        with open(path, encoding="utf-8") as file:
            text = file.read()
    found = of.read(text)
    broken = [f"{name}: not in the code" for name in POSTS if name not in found]
    for name in set(POSTS) & set(found):
        broken += [f"{name}: {line}" for line in doorbell.breaches(found[name], of, POSTS[name])]
    print("\n".join(broken) or f"{len(POSTS)} kernels post in order")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
