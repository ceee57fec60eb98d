#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""What ferry-topo prints and refuses.

usage: command_line_test.py --program FERRY_TOPO --machines DIR [CASE]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import unittest

PROGRAM = MACHINES = None


def run(*options):
    return subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=50)


def machine(name):
    return os.path.join(MACHINES, name + ".xml")


class CommandLine(unittest.TestCase):
    def printed(self, *options):
        done = run(*options)
        if "this build of ferry has no hwloc" in done.stderr:
            print(done.stderr)
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_prints_two_rails_of_each_gpu(self):
        text = self.printed("--xml", machine("eight_gpus_eight_nics"))
        self.assertRegex(text, r"packages 2, NUMA nodes 2, devices 8, NICs 8\n")
        for rank in range(8):
            second = rank // 4 * 4 + (rank + 1) % 4
            self.assertRegex(
                text,
                rf"(?m)^  {rank} +0 +rsmi{rank} +mlx5_{rank} \(same switch\), mlx5_{second} \(same NUMA node\)$",
            )
        self.assertIn("reach: mapped among these ranks; to other machines network (verbs over the rails)\n", text)
        self.assertNotIn("not here", text)

    def test_prints_the_same_as_json(self):
        told = json.loads(self.printed("--json", "--ranks-per-node", "4", "--xml", machine("eight_gpus_eight_nics")))
        self.assertEqual([d["name"] for d in told["devices"]], [f"rsmi{i}" for i in range(8)])
        self.assertEqual([n["rdma"] for n in told["nics"]], [f"mlx5_{i}" for i in range(8)])
        self.assertEqual([r["node"] for r in told["ranks"]], [0, 0, 0, 0, 1, 1, 1, 1])
        self.assertEqual(
            told["ranks"][7]["rails"],
            [{"nic": "mlx5_7", "near": "same switch"}, {"nic": "mlx5_4", "near": "same NUMA node"}],
        )
        self.assertEqual(told["reach"], {"within_a_node": "mapped", "between_nodes": "network", "carrier": "verbs"})
        self.assertEqual(told["not_here"], [])

    def test_says_in_one_line_what_is_not_there(self):
        with open(machine("two_sockets_two_nics")) as f:
            text = f.read()
        # A PCI device leaves with what is within it.
        bare = re.sub(r'(?s) *<object type="PCIDev"(?:(?!</object>).)*</object>\n', "", text)
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"ferry-topo-{os.getpid()}.xml")
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        with open(path, "w") as f:
            f.write(bare)
        text = self.printed("--xml", path)
        lines = [line for line in text.splitlines() if line.startswith("not here:")]
        self.assertEqual(len(lines), 1, text)
        for part in ("GPUs", "NICs"):
            self.assertIn(part, lines[0])
        self.assertIn("to other machines none: no NIC\n", text)
        self.assertRegex(text, r"(?m)^  1 +0 +NUMA node 1 +-$")

    def test_reads_this_machine(self):
        self.assertRegex(self.printed(), r"machine: this one; ")
        self.assertIn("not_here", json.loads(self.printed("--json")))

    def test_refuses_bad_input_with_a_reason(self):
        done = run("--xml", "no-such-machine.xml")
        if "this build of ferry has no hwloc" in done.stderr:
            print(done.stderr)
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^ferry-topo: io: .*no-such-machine\.xml")
        for options in (["--rails", "0"], ["--ranks", "many"], ["--no-such-option"]):
            done = run(*options)
            self.assertNotIn(done.returncode, (0, 1))
            self.assertTrue(done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--machines", required=True)
    known, rest = parser.parse_known_args()
    PROGRAM, MACHINES = known.program, known.machines
    unittest.main(argv=[sys.argv[0], *rest])
