#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""perf/compare sees what got worse, and perf/plot draws what was measured.

usage: scripts_test.py --perf DIR [CASE]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PERF = None


def case(op, tokens, limit, mpi, **changed):
    words = {"op": op, "ranks": 2, "tokens": tokens, "hidden": 7168, "topk": 8, "experts": 256, "wire": "bf16",
             "layout": "grouped", "reduction": "per_rank", "rows": "experts", "slots": 1, "queues": 1,
             "routing": "uniform", "ratio_limit": limit, "ratio_mpi": mpi, "ratio_mpi_naive": None}
    words.update(changed)
    return words


class Scripts(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="ferry-perf-")
        self.addCleanup(self.scratch.cleanup)

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def write_run(self, cases, name="run.jsonl"):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.writelines(json.dumps(c) + "\n" for c in cases)
        return self.path(name)

    def run_script(self, script, *arguments):
        done = subprocess.run([sys.executable, "-B", os.path.join(PERF, script), *arguments], capture_output=True,
                              timeout=60)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def compare(self, cases):
        return self.run_script("compare", "ratios", self.write_run(cases), "--baseline", self.path("baseline.json"))

    def test_compare_finds_ratios_that_fell(self):
        before = self.write_run([case("step", 8, 0.8, 4.0), case("step", 128, 0.9, 3.0)], "before.jsonl")
        status, out, err = self.run_script("compare", "ratios", before, "--baseline", self.path("baseline.json"), "--update")
        self.assertEqual(status, 0, out + err)
        self.assertEqual(self.compare([case("step", 8, 0.79, 3.9), case("step", 128, 1.2, 9.0)])[0], 0)
        status, out, _ = self.compare([case("step", 8, 0.6, 3.9), case("step", 128, 0.9, 3.0)])
        self.assertEqual(status, 1)
        self.assertIn("1 worse", out)
        self.assertRegex(out, r"WORSE op=step.*tokens=8 .*ratio_limit")
        self.assertEqual(self.compare([case("step", 8, 0.8, 2.0)])[0], 1)
        status, out, _ = self.compare([case("dispatch", 8, 0.8, 2.0)])
        self.assertEqual(status, 77)
        self.assertIn("SKIPPED: ", out)

    def test_compare_refuses_what_is_no_run(self):
        status, _, err = self.run_script("compare", "ratios", self.path("absent"))
        self.assertEqual(status, 2)
        self.assertIn("absent", err)
        with open(self.path("bad.jsonl"), "w") as f:
            f.write("{}\n")
        status, _, err = self.run_script("compare", "ratios", self.path("bad.jsonl"))
        self.assertEqual(status, 2)
        self.assertIn("bad.jsonl:1", err)

    def test_plot_draws_a_point_for_each_ratio(self):
        run = self.write_run([case("step", t, 0.5 + t / 100, 3.0 + t, layout=l) for t in (1, 8, 128)
                              for l in ("grouped", "in_place")] + [case("dispatch", 4, 1.0, None)])
        status, out, err = self.run_script("plot", run, "--folder", self.path("pictures"))
        self.assertEqual(status, 0, err)
        svg = xml.etree.ElementTree.parse(self.path("pictures/step.svg")).getroot()
        space = "{http://www.w3.org/2000/svg}"
        self.assertEqual(len(svg.findall(space + "circle")), 12)
        self.assertEqual(len(svg.findall(space + "polyline")), 4)
        inside = [(0 <= float(c.get("cx")) <= 640 and 0 <= float(c.get("cy")) <= 380) for c in svg.findall(space + "circle")]
        self.assertTrue(all(inside))
        words = " ".join("".join(t.itertext()) for t in svg.findall(space + "text"))
        self.assertIn("layout in_place", words)
        one = xml.etree.ElementTree.parse(self.path("pictures/dispatch.svg")).getroot()
        self.assertEqual(len(one.findall(space + "circle")), 1)
        self.assertFalse(os.path.exists(self.path("pictures/combine.svg")))

    def test_plot_refuses_what_has_no_ratio(self):
        status, _, err = self.run_script("plot", self.write_run([case("step", 4, None, None)]))
        self.assertNotEqual(status, 0)
        self.assertIn("no ratios", err)


if __name__ == "__main__":
    at = sys.argv.index("--perf")
    PERF = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    unittest.main()
