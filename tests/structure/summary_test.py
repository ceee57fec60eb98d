# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Shows how summary.py counts."""

import contextlib
import io
import pathlib
import tempfile

import summary

RUN = '<testcase name="a.b" time="1" status="run"/>'
FAIL = '<testcase name="a.c" time="1" status="fail"><failure message=""/></testcase>'
SKIP = (
    '<testcase name="a.d" time="0" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
    "<system-out>[ RUN      ] a.d\nx.cpp:3: Skipped\nno such device\n[  SKIPPED ] a.d\n</system-out></testcase>"
)
# As GoogleTest itself writes them.
PLAIN = '<testcase name="b" classname="a" status="run" result="completed" time="1"/>'
PLAIN_FAIL = '<testcase name="c" classname="a" status="run" result="completed" time="1"><failure message="x"/></testcase>'
PLAIN_SKIP = (
    '<testcase name="d" classname="a" status="run" result="skipped" time="0">'
    '<skipped message="x.cpp:3&#x0A;no such device&#x0A;"/></testcase>'
)
NOT_BUILT = '<testcase name="x_NOT_BUILT" status="notrun"><skipped message="Unable to find executable"/></testcase>'


def counted(*files):
    """(exit status, what was printed)"""
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        for number, cases in enumerate(files):
            path = pathlib.Path(folder, f"{number}.xml")
            if cases is not None:
                path.write_text(f"<testsuite>{cases}</testsuite>")
            arguments.append(f"build{number}={path}")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = summary.main(arguments)
        return status, out.getvalue().splitlines()


def expect(got, status, last, somewhere=""):
    assert got[0] == status and got[1][-1] == last and any(somewhere in line for line in got[1]), got


expect(counted(RUN, RUN), 0, "2 passed, 0 failed, 0 skipped")
expect(counted(RUN + SKIP), 0, "1 passed, 0 failed, 1 skipped", "SKIPPED a.d: no such device")
expect(counted(PLAIN + PLAIN_SKIP), 0, "1 passed, 0 failed, 1 skipped", "SKIPPED a.d: no such device")
expect(counted(PLAIN + PLAIN_FAIL), 1, "1 passed, 1 failed, 0 skipped", "FAILED a.c")
expect(counted(RUN + FAIL), 1, "1 passed, 1 failed, 0 skipped", "FAILED a.c")
expect(counted(RUN, NOT_BUILT), 1, "1 passed, 1 failed, 0 skipped", "FAILED x_NOT_BUILT")
expect(counted(RUN, None), 1, "1 passed, 1 failed, 0 skipped", "no results")
expect(counted(RUN, ""), 1, "1 passed, 1 failed, 0 skipped", "no test was found")
expect(counted(SKIP), 1, "0 passed, 0 failed, 1 skipped")
