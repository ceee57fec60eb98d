# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""`./dev format --check`, where the clang-format is the one the tree was formatted with."""

import pathlib
import re
import shutil
import subprocess
import sys

MAJOR = "14"  # Debian 12's

if not shutil.which("clang-format"):
    print("SKIPPED: no clang-format here")
else:
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version (\d+)", version)
    if not found or found.group(1) != MAJOR:
        print(f"SKIPPED: the tree is formatted by clang-format {MAJOR}, here is: {version.strip()}")
    else:
        dev = pathlib.Path(__file__).resolve().parents[2] / "dev"
        sys.exit(subprocess.run([str(dev), "format", "--check"]).returncode)
