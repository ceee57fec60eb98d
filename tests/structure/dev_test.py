# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""What ./dev does about missing packages, shown with stand-ins for the system's programs.

usage: dev_test.py CASE
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Everything is installed but what the file `missing` lists.
DPKG_QUERY = """#!/bin/sh
for last; do :; done
grep -qxF "$last" "$BOX/missing" && exit 1
printf 'install ok installed'
"""
# Writes down what it was asked. A simulation fails until an update was done, as on a fresh machine.
APT_GET = """#!/bin/sh
case "$*" in
  *-s*) test -e "$BOX/updated"; exit ;;
  *update*) touch "$BOX/updated" ;;
  *install*) : > "$BOX/missing" ;;
esac
echo "$DEBIAN_FRONTEND apt-get $*" >> "$BOX/log"
"""


def run(user, sudo, missing, command="install-packages"):
    """(exit status, stderr, what apt-get was asked)"""
    with tempfile.TemporaryDirectory() as box:
        programs = {
            "dpkg-query": DPKG_QUERY,
            "apt-get": APT_GET,
            "id": f"#!/bin/sh\necho {user}\n",
            "sudo": '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n' if sudo else "#!/bin/sh\nexit 1\n",
        }
        for name, text in programs.items():
            path = pathlib.Path(box, name)
            path.write_text(text)
            path.chmod(0o755)
        pathlib.Path(box, "missing").write_text("".join(name + "\n" for name in missing))
        log = pathlib.Path(box, "log")
        log.touch()
        done = subprocess.run(
            [str(ROOT / "dev"), command],
            env={**os.environ, "PATH": f"{box}:{os.environ['PATH']}", "BOX": box},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stderr, log.read_text().splitlines()


def installs_nothing_when_nothing_is_missing():
    status, _, asked = run(user=1000, sudo=False, missing=[])
    assert status == 0 and not asked, (status, asked)


def says_the_install_line_and_ends_with_2_without_rights():
    for command in ("build", "demo", "test", "install-packages"):
        status, said, asked = run(user=1000, sudo=False, missing=["ccache", "libfmt-dev"], command=command)
        assert status == 2, (command, status, said)
        assert "apt-get install --no-install-recommends ccache libfmt-dev" in said, said
        assert not asked, asked


def installs_what_is_missing_as_root_after_an_update():
    status, said, asked = run(user=0, sudo=False, missing=["ccache", "libfmt-dev"])
    assert status == 0, (status, said)
    assert asked == [
        "noninteractive apt-get -y -q update",
        "noninteractive apt-get -y -q install --no-install-recommends ccache libfmt-dev",
    ], asked


def installs_through_sudo_that_asks_nothing():
    status, said, asked = run(user=1000, sudo=True, missing=["g++"])
    assert status == 0 and asked[-1].endswith("install --no-install-recommends g++"), (status, said, asked)


def refuses_an_unknown_command():
    status, said, _ = run(user=0, sudo=False, missing=[], command="sail")
    assert status == 1 and "usage" in said, (status, said)


CASES = [
    installs_nothing_when_nothing_is_missing,
    says_the_install_line_and_ends_with_2_without_rights,
    installs_what_is_missing_as_root_after_an_update,
    installs_through_sudo_that_asks_nothing,
    refuses_an_unknown_command,
]

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
