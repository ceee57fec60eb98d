#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""What ferry-place prints, writes and refuses.

usage: command_line_test.py --program FERRY_PLACE --data DIR [CASE]
"""

import argparse
import array
import json
import os
import struct
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = DATA = None


def tensors(path):
    """{name: list of ints or floats} of a safetensors file, and its metadata."""
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    kinds = {"F32": "f", "I32": "i", "F64": "d"}
    values = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            values[name] = array.array(kinds[entry["dtype"]], data[8 + size + begin : 8 + size + end]).tolist()
    return values, header["__metadata__"]


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="ferry-place-")
        self.addCleanup(self.scratch.cleanup)
        self.trace = os.path.join(DATA, "traces", "balanced-zero-bias-trace-topk-ids.npy")
        self.loads = os.path.join(DATA, "eplb", "zipf0.safetensors")

    def path(self, name, text=None):
        path = os.path.join(self.scratch.name, name)
        if text is not None:
            with open(path, "w") as f:
                f.write(text)
        return path

    def run_place(self, *arguments):
        ran = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=100)
        return ran.returncode, ran.stdout, ran.stderr

    def placed(self, *arguments):
        """The table, and {policy: object}."""
        out = self.path("out.json")
        status, table, err = self.run_place(*arguments, "--json", out)
        self.assertEqual(status, 0, err)
        with open(out) as f:
            return table, {o["policy"]: o for o in json.load(f)}

    def refused(self, arguments, *words):
        status, out, err = self.run_place(*arguments)
        self.assertNotEqual(status, 0, out)
        for word in words:
            self.assertIn(word, out + err)

    def test_prints_every_policy_that_applies(self):
        status, table, err = self.run_place("--choices", self.trace, "--ranks", 4)
        self.assertEqual(status, 0, err)
        rows = [line.split()[0] for line in table.splitlines() if line]
        for policy in ("before", "contiguous", "eplb", "permute", "local", "incremental", "floor"):
            self.assertIn(policy, rows)
        self.assertIn("steps of 128", table)
        status, table, err = self.run_place("--loads", self.loads, "--ranks", 8, "--redundant", 32, "--nodes", 2,
                                            "--groups", 8)
        self.assertEqual(status, 0, err)
        rows = [line.split()[0] for line in table.splitlines() if line]
        for policy in ("eplb", "replicate", "hierarchical"):
            self.assertIn(policy, rows)
        self.assertNotIn("local", rows)
        self.assertIn("left out: local", table)

    def test_writes_one_object_a_policy(self):
        _, found = self.placed("--choices", self.trace, "--ranks", 4, "--policy", "permute", "--policy", "local")
        self.assertEqual(list(found), ["permute", "local"])
        for o in found.values():
            self.assertEqual((o["ranks"], o["slots"], len(o["placement"])), (4, 32, 3))
            self.assertGreaterEqual(o["seconds"], 0)
            for layer in o["placement"]:
                self.assertEqual(sorted(layer), list(range(32)))
        self.assertLess(found["permute"]["max_over_mean_worst"], 1.001)
        self.assertLessEqual(found["local"]["max_over_mean_worst"], 1.05)
        self.assertLess(found["local"]["ranks_per_token"], found["permute"]["ranks_per_token"])
        step = found["permute"]["steps"][0]
        self.assertEqual(step["tokens"], 128)
        self.assertGreater(step["measured"], step["floor"] - 0.02)
        _, found = self.placed("--loads", self.loads, "--ranks", 8, "--policy", "permute")
        self.assertIsNone(found["permute"]["ranks_per_token"])

    def test_takes_the_choices_that_were_saved_beside_loads(self):
        # A token chooses experts that lie apart; loads alone do not tell.
        choices = [[[e, e + 4]] for e in range(4) for _ in range(5)]
        saved = {"ferry_loads": 1,
                 "windows": [{"layers": 1, "experts": 8, "steps": 1, "sums": [[50] * 8],
                              "sums_of_squares": [[2500] * 8]}],
                 "sample": {"topk": 2, "choices": choices}}
        file = self.path("loads.json", json.dumps(saved))
        table, found = self.placed("--loads", file, "--ranks", 4)
        self.assertEqual(found["contiguous"]["ranks_per_token"], 2)
        self.assertEqual(found["local"]["ranks_per_token"], 1)
        self.assertEqual(found["local"]["max_over_mean_worst"], 1)
        self.assertNotIn("left out: local", table)
        del saved["sample"]
        self.refused(["--loads", self.path("b.json", json.dumps(saved)), "--ranks", 4, "--policy", "local"], "no trace")
        for wrong, reason in (([[[8, 0]]], "experts are 0..7"), ([[[1, 0]] * 2], "2 layers"), ([[[1.5, 0]]], "choices")):
            saved["sample"] = {"topk": 2, "choices": wrong}
            self.refused(["--loads", self.path("b.json", json.dumps(saved)), "--ranks", 4], reason)

    def test_reproduces_eplb_from_the_command_line(self):
        values, cases = tensors(self.loads)
        for name, facts in cases.items():
            facts = json.loads(facts)
            _, found = self.placed("--loads", self.loads, "--ranks", 8, "--redundant", facts["num_replicas"] - 256,
                                   "--groups", facts["num_groups"], "--nodes", facts["num_nodes"], "--policy", "eplb")
            self.assertEqual(sum(found["eplb"]["placement"], []), values[name + ".phy2log"], name)

    def test_counts_ranks_per_token_as_a_plain_count_does(self):
        _, found = self.placed("--choices", self.trace, "--ranks", 8, "--nodes", 2, "--policy", "permute")
        o = found["permute"]
        with open(self.trace, "rb") as f:
            ids = array.array("h", f.read()[128:])
        ranks = nodes = busiest = 0
        for layer in range(3):
            rank_of = {e: slot // 4 for slot, e in enumerate(o["placement"][layer])}
            load = [0] * 8
            for token in range(8192):
                at = (token * 3 + layer) * 4
                visited = {rank_of[e] for e in ids[at : at + 4]}
                ranks += len(visited)
                nodes += len({r // 4 for r in visited})
                for e in ids[at : at + 4]:
                    load[rank_of[e]] += 1
            busiest += max(load) / (sum(load) / 8)
        self.assertAlmostEqual(o["ranks_per_token"], ranks / (3 * 8192), places=9)
        self.assertAlmostEqual(o["nodes_per_token"], nodes / (3 * 8192), places=9)
        self.assertAlmostEqual(o["max_over_mean_mean"], busiest / 3, places=9)

    def test_starts_from_a_placement_that_it_wrote(self):
        first = self.path("first.json")
        status, _, err = self.run_place("--loads", self.loads, "--ranks", 8, "--redundant", 32, "--policy", "replicate",
                                        "--json", first)
        self.assertEqual(status, 0, err)
        # The same loads again: all is well, and nothing moves.
        _, found = self.placed("--loads", self.loads, "--ranks", 8, "--redundant", 32, "--from", first,
                               "--policy", "incremental", "--policy", "eplb")
        self.assertEqual(found["incremental"]["moved_bytes"], 0)
        self.assertGreater(found["eplb"]["moved_bytes"], 0)
        other = os.path.join(DATA, "eplb", "zipf1.safetensors")
        _, found = self.placed("--loads", other, "--ranks", 8, "--redundant", 32, "--from", first,
                               "--policy", "incremental", "--max-moved-bytes", 500, "--expert-bytes", 100)
        self.assertTrue(0 < found["incremental"]["moved_bytes"] <= 500)

    def test_draws_every_layer_and_rank(self):
        svg = self.path("loads.svg")
        status, _, err = self.run_place("--loads", self.loads, "--ranks", 8, "--policy", "permute", "--svg", svg)
        self.assertEqual(status, 0, err)
        root = xml.etree.ElementTree.parse(svg).getroot()
        titles = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
        for layer in range(3):
            for rank in range(8):
                mine = [t for t in titles if t.startswith(f"layer {layer}, rank {rank}:")]
                self.assertEqual(len(mine), 2, "before and after")

    def test_refuses_bad_input_with_a_reason(self):
        self.refused(["--ranks", 8], "required")
        self.refused(["--loads", self.loads], "--ranks")
        self.refused(["--loads", self.loads, "--choices", self.trace, "--ranks", 8], "--choices")
        self.refused(["--loads", self.loads, "--ranks", 0], "--ranks")
        self.refused(["--loads", self.loads, "--ranks", 8, "--policy", "best"], "best")
        self.refused(["--loads", self.loads, "--ranks", 8, "--redundant", 1793], "1793 redundant replicas; 0 to 1792")
        self.refused(["--loads", self.loads, "--ranks", 8, "--nodes", 9], "9 nodes of 8 ranks")
        self.refused(["--loads", self.loads, "--ranks", 8, "--policy", "local"], "no trace")
        self.refused(["--loads", self.path("no.json"), "--ranks", 8], "no.json")
        for text, reason in (("{}", "neither"), ('{"logical_count": [[1, -1]]}', "is -1"),
                             ('{"logical_count": [[0, 0]]}', "empty"), ('{"logical_count": [[1], [1, 2]]}', "layers of"),
                             ('{"logical_count": [[1, NaN]]}', "not JSON"), ('{"logical_count": []}', "layers")):
            self.refused(["--loads", self.path("a.json", text), "--ranks", 1], reason)
        self.assertEqual(self.run_place("--ranks", 8)[0], 2, "the command line is wrong")
        self.assertEqual(self.run_place("--loads", self.path("no.json"), "--ranks", 8)[0], 1)
        huge = self.path("huge.npy")
        shape = b"{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1, 2)}".ljust(117) + b"\n"
        with open(huge, "wb") as f:
            f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(shape)) + shape + struct.pack("<2i", 2147483647, 1))
        self.refused(["--choices", huge, "--ranks", 2], "expert 2147483647; at most 1048576")
        self.refused(["--choices", self.loads, "--ranks", 8], "choices")
        self.refused(["--choices", self.trace, "--experts", 16, "--ranks", 8], "experts are 0..15")
        self.refused(["--loads", self.loads, "--ranks", 8, "--policy", "permute", "--svg", "/no/such/folder/x.svg"],
                     "cannot be written")


def main():
    global PROGRAM, DATA
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("case", nargs="*")
    chosen = parser.parse_args()
    PROGRAM, DATA = chosen.program, chosen.data
    unittest.main(argv=["command_line_test.py", *chosen.case])


if __name__ == "__main__":
    main()
