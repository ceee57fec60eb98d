# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Adds up the results that CTest, or GoogleTest, wrote for several builds.

usage: summary.py NAME=JUNIT_FILE...

Prints a line for each build, what failed, what was skipped and why, and at the very end
`N passed, N failed, N skipped`. A build without results counts as one failed case. Ends with 1 if
anything failed or nothing passed.
"""

import re
import sys
import xml.etree.ElementTree as xml


def reason_of(case):
    """Why a case was skipped: the text that follows GTEST_SKIP's place, or a line `SKIPPED: why`."""
    if case.get("result") == "skipped":  # GoogleTest: file and line, then the text
        return case.find("skipped").get("message", "").split("\n", 1)[-1].strip() or "no reason given"
    output = case.findtext("system-out") or ""
    said = re.search(r"^(?:.*: Skipped\n|SKIPPED: *)(.+)$", output, re.MULTILINE)
    return said.group(1).strip() if said else "no reason given"


def outcome_of(case):
    """'passed', 'failed' or 'skipped'. A case that could not be started has failed."""
    if case.get("result") == "skipped":  # GoogleTest says `run` of all that it looked at
        return "skipped"
    if case.get("status") == "run":
        return "passed" if case.find("failure") is None else "failed"
    skipped = case.find("skipped")
    if case.get("status") == "notrun" and skipped is not None:
        if skipped.get("message", "").startswith("SKIP_"):
            return "skipped"
    if case.get("status") == "disabled":
        return "skipped"
    return "failed"


def read(path):
    """[(outcome, name, reason)] of one file, and the seconds all of it took."""
    suite = xml.parse(path).getroot()
    cases = []
    for case in suite.iter("testcase"):
        outcome = outcome_of(case)
        name = case.get("name")
        if case.get("result") and case.get("classname"):
            name = f"{case.get('classname')}.{name}"
        cases.append((outcome, name, reason_of(case) if outcome == "skipped" else ""))
    return cases, sum(float(case.get("time") or 0) for case in suite.iter("testcase"))


def main(arguments):
    total = {"passed": 0, "failed": 0, "skipped": 0}
    lines = []
    for argument in arguments:
        build, _, path = argument.partition("=")
        try:
            cases, seconds = read(path)
            took = f" ({seconds:.0f} s of test time)"
        except (OSError, xml.ParseError) as why:
            cases, took = [("failed", f"no results: {why}", "")], ""
        if not cases:
            cases = [("failed", "no test was found", "")]
        count = {key: sum(1 for outcome, _, _ in cases if outcome == key) for key in total}
        for key in total:
            total[key] += count[key]
        lines.append(f"{build}: " + ", ".join(f"{count[key]} {key}" for key in total) + took)
        lines += [f"  FAILED {name}" for outcome, name, _ in cases if outcome == "failed"]
        lines += [f"  SKIPPED {name}: {why}" for outcome, name, why in cases if outcome == "skipped"]
    print("\n".join(lines))
    print(", ".join(f"{total[key]} {key}" for key in total))
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
