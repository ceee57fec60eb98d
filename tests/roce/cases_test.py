# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Every case that cases.sh names leaves a result, a failed one where its program is missing."""

import pathlib
import subprocess
import tempfile

cases = pathlib.Path(__file__).parent / "cases.sh"
names = subprocess.run(["bash", cases, "--names"], capture_output=True, text=True, check=True).stdout.split()
assert len(names) > 1, names
with tempfile.TemporaryDirectory() as made:
    empty, results = pathlib.Path(made) / "empty", pathlib.Path(made) / "results"
    empty.mkdir()
    results.mkdir()
    ended = subprocess.run(["bash", cases, empty, results], capture_output=True, text=True)
    assert ended.returncode == 1, ended
    left = {file.stem: file.read_text() for file in results.iterdir()}
assert sorted(left) == sorted(names), (sorted(left), names)
for name, text in left.items():
    assert "<failure" in text, (name, text)
print("all %d cases without a program failed, and none is missing" % len(names))
