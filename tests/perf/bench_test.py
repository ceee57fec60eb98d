#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""What ferry-bench says and does with its options. Nothing here judges a time.

usage: bench_test.py --program FERRY_BENCH [CASE]
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
SKIPPED = 77  # CTest's SKIP_RETURN_CODE

NUMBERS = ("ranks", "tokens", "hidden", "topk", "experts", "bytes", "self_bytes", "p50_us", "p90_us", "p99_us")
WORDS = ("op", "wire", "layout", "reduction", "routing")
RATIOS = ("ratio_limit", "ratio_mpi", "ratio_mpi_naive")
SMALL = ["--hidden", "256", "--experts", "16", "--topk", "4", "--seconds", "0.01"]


def skip(why):
    print("SKIPPED:", why)
    sys.exit(SKIPPED)


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "PRTE_"))}


def write_npy(path, shape, ids, code="<i4", fortran=False):
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (
        code, fortran, "".join("%d, " % n for n in shape))
    head = head.ljust(118) + "\n"
    letter = {"1": "b", "2": "h", "4": "i", "8": "q"}[code[2]]
    letter = letter.upper() if code[1] == "u" else letter
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(ids), letter), *ids))


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="ferry-bench-")
        self.addCleanup(self.scratch.cleanup)

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def run_alone(self, arguments, before=()):
        done = subprocess.run([*before, PROGRAM] + arguments, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=250, env=environment())
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def measured(self, arguments, before=()):
        """The JSON objects of a run that went well."""
        out = self.path("out.json")
        status, said, complained = self.run_alone(arguments + ["--json", out], before)
        self.assertEqual(status, 0, said + complained)
        with open(out, encoding="utf-8") as f:
            cases = [json.loads(line) for line in f]
        for case in cases:
            for key in NUMBERS:
                self.assertIsInstance(case[key], (int, float), key)
            for key in WORDS:
                self.assertIsInstance(case[key], str, key)
            self.assertGreater(case["p50_us"], 0)
            self.assertLessEqual(case["p50_us"], case["p90_us"])
            self.assertLessEqual(case["p90_us"], case["p99_us"])
            self.assertEqual(len(case["by_rank"]), case["ranks"])
            self.assertEqual(case["p50_us"], max(r["p50_us"] for r in case["by_rank"]))
            self.assertGreater(case["ratio_limit"], 0)
            self.assertAlmostEqual(case["ratio_limit"], case["limit_p50_us"] / case["p50_us"],
                                   delta=0.01 * case["ratio_limit"] + 0.002)
        return cases

    def refused(self, arguments, *words, before=()):
        status, out, err = self.run_alone(arguments, before)
        self.assertEqual(status, 2, out + err)
        for word in words:
            self.assertIn(word, err)

    def under_mpirun(self, ranks):
        if not shutil.which("mpirun"):
            skip("there is no mpirun")
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        if os.geteuid() == 0:
            command.insert(1, "--allow-run-as-root")
        status, _, err = self.run_alone(SMALL + ["--tokens", "1", "--op", "step"], command)
        if "this build has no MPI" in err:
            skip("ferry-bench is built without MPI")
        self.assertEqual(status, 0, err)
        return command

    def test_shows_its_version_and_help(self):
        status, out, _ = self.run_alone(["--version"])
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^ferry-bench \d+\.\d+\.\d+\n$")
        status, out, _ = self.run_alone(["--help"])
        self.assertEqual(status, 0)
        for option in ("--op", "--tokens", "--hidden", "--topk", "--experts", "--wire", "--layout", "--reduction",
                       "--slots", "--queues", "--routing", "--choices", "--json", "--ranks", "--sizes"):
            self.assertIn(option, out)

    def test_explains_a_wrong_command_line(self):
        self.refused(["--op", "dance"], "--op", '"dance"', "dispatch|combine|step")
        self.refused(["--tokens", "8,x"], "--tokens", '"x"', "0..1048576")
        self.refused(["--tokens", "8,"], "--tokens", '""')
        self.refused(["--tokens", "-1"], "--tokens")
        self.refused(["--hidden", "0"], "--hidden", '"0"')
        self.refused(["--topk", "33"], "--topk", '"33"', "1..32")
        self.refused(["--wire", "int4"], "--wire", '"int4"')
        self.refused(["--layout", "sparse"], "--layout", '"sparse"')
        self.refused(["--reduction", "none"], "--reduction", '"none"')
        self.refused(["--routing", "psychic"], "--routing", '"psychic"')
        self.refused(["--ranks", "0"], "--ranks")
        self.refused(["--ranks", "65"], "--ranks 65", "64")
        self.refused(["--seconds", "0"], "--seconds")
        self.refused(["--seconds", "nan"], "--seconds")
        self.refused(["--queues", "2", "--slots", "1"], "--queues 2", "--slots 1")
        self.refused(["--layers", "1"], "--layers", "--choices")
        self.refused(["--rows", "summed", "--reduction", "per_choice"], "--rows summed", "per_choice")
        self.refused(["--topk", "8", "--experts", "4"], "topk 8", "4 experts")
        self.refused(["--routing", "group_limited", "--experts", "100"], "group_limited", "100")
        self.refused(["--routing", "group_limited", "--experts", "8", "--topk", "5"], "topk 5")
        self.refused(["--tokens", "8", "extra"], "extra")
        self.refused(["--routing", "uniform", "--choices", "x.npy"], "--choices", "--routing")
        status, _, err = self.run_alone(SMALL + ["--tokens", "1", "--json", self.path("no/such/place")])
        self.assertEqual(status, 1, err)
        self.assertIn("no/such/place", err)

    def test_explains_choices_that_it_cannot_take(self):
        good = [0, 1, 2, 3] * 4
        path = self.path("c.npy")
        few = ["--tokens", "4", "--choices", path, "--hidden", "64", "--experts", "4"]

        def is_refused(*words, more=()):
            self.refused(few + list(more), path, *words)

        write_npy(path, (4, 2, 2), good)
        is_refused("4 tokens", "2 ranks of 4 need 8")
        write_npy(path, (8, 1, 1, 2), good)
        is_refused()
        write_npy(path, (8, 1, 2), good, fortran=True)
        is_refused()
        write_npy(path, (8, 1, 2), good[:10])
        is_refused()
        write_npy(path, (8, 1, 2), [4] + good[1:])
        is_refused("chooses 4", "4 experts")
        write_npy(path, (8, 1, 2), [-2] + good[1:])
        is_refused("-2")
        write_npy(path, (8, 1, 2), good)
        is_refused("layer 1 of 1", more=["--layers", "1"])
        is_refused("2 choices", "topk is 3", more=["--topk", "3"])
        with open(path, "r+b") as f:
            f.write(b"not numpy")
        is_refused()
        with open(path, "wb") as f:
            f.write(b"\x93NUMPY\x01\x00\xff\x7f{'descr'")
        is_refused()
        text = self.path("c.txt")
        open(text, "w").close()
        self.refused(["--choices", text], text)
        status, _, err = self.run_alone(["--choices", self.path("absent.npy")])
        self.assertEqual(status, 1, err)
        self.assertIn("absent.npy", err)
        tensors = self.path("c.safetensors")
        write_safetensors(tensors, {"x": ("F32", [8, 1, 2], bytes(64))})
        self.refused(["--choices", tensors], tensors)
        write_safetensors(tensors, {"x": ("I32", [8, 1, 2], bytes(64)), "y": ("I32", [8, 1, 2], bytes(64))})
        self.refused(["--choices", tensors], "2 tensors")

    def test_sweeps_lists_and_writes_one_object_a_case(self):
        cases = self.measured(SMALL + ["--ranks", "2", "--tokens", "1,5", "--op", "dispatch,combine,step",
                                       "--routing", "uniform,power_law,group_limited,all_to_one"])
        seen = {(c["op"], c["tokens"], c["routing"]) for c in cases}
        self.assertEqual((len(cases), len(seen)), (24, 24))
        for case in cases:
            self.assertIsNone(case["ratio_mpi"])
            self.assertIsNone(case["ratio_mpi_naive"])
            halves = {"dispatch": ["dispatch_send", "dispatch_receive"], "combine": ["combine_send", "combine_receive"]}
            want = halves.get(case["op"], halves["dispatch"] + halves["combine"])
            self.assertEqual(list(case["halves"]), [name + "_p50_us" for name in want])

    def test_measures_every_wire_layout_and_reduction(self):
        cases = self.measured(SMALL + ["--op", "step", "--tokens", "3", "--layout", "grouped,padded,in_place",
                                       "--wire", "f32,bf16,fp16,fp8_e4m3,fp8_e4m3fnuz,fp8_ue8m0,opaque",
                                       "--reduction", "per_rank,per_choice"])
        self.assertEqual(len({(c["wire"], c["layout"], c["reduction"]) for c in cases}), 42)

    def test_takes_choices_from_files(self):
        # Two layers: in the first all tokens go to rank 0, in the second each token to both ranks.
        layers = [[0, 1], [1, 2]]
        ids = [i for _ in range(6) for layer in layers for i in layer]
        npy, tensors = self.path("c.npy"), self.path("c.safetensors")
        write_safetensors(tensors, {
            "choices": ("I64", [6, 2, 2], struct.pack("<24q", *ids)), "other": ("F32", [1], bytes(4))})
        row = 128 * 2
        for code in ("<i4", "<i8", "<i2"):
            write_npy(npy, (6, 2, 2), ids, code=code)
            for path in (npy, tensors):
                cases = self.measured(["--choices", path, "--tokens", "3", "--hidden", "128", "--experts", "4",
                                       "--op", "dispatch", "--layers", "0,1", "--seconds", "0.01"])
                self.assertEqual([(c["bytes"], c["self_bytes"]) for c in cases],
                                 [(3 * row, 3 * row), (6 * row, 6 * row)])
                self.assertEqual({c["routing"] for c in cases}, {"file"})
                self.assertEqual({c["topk"] for c in cases}, {2})

    def test_counts_the_bytes_of_the_routing(self):
        few = ["--hidden", "256", "--experts", "8", "--topk", "2", "--tokens", "5", "--ranks", "4", "--routing",
               "all_to_one", "--seconds", "0.01"]
        for wire, row, home in (("bf16", 512, 512), ("f32", 1024, 1024), ("fp8_e4m3", 256 + 8, 512),
                                ("fp8_ue8m0", 256 + 2, 512), ("opaque", 256 + 8, 512)):
            dispatch, combine, step = self.measured(few + ["--wire", wire, "--op", "dispatch,combine,step"])
            self.assertEqual((dispatch["bytes"], dispatch["self_bytes"]), (15 * row, 5 * row))
            self.assertEqual((combine["bytes"], combine["self_bytes"]), (15 * home, 5 * home))
            self.assertEqual(step["bytes"], 15 * (row + home))
        each = self.measured(few + ["--op", "combine", "--reduction", "per_choice"])[0]
        self.assertEqual((each["bytes"], each["self_bytes"]), (2 * 15 * 512, 2 * 5 * 512))

    def test_drives_slots_from_several_queues(self):
        cases = self.measured(SMALL + ["--op", "step", "--tokens", "4", "--slots", "2,4", "--queues", "1,2"])
        self.assertEqual({(c["slots"], c["queues"]) for c in cases}, {(2, 1), (4, 1), (2, 2), (4, 2)})
        self.assertEqual(len({c["bytes"] for c in cases}), 1)
        cases = self.measured(SMALL + ["--op", "step", "--tokens", "4", "--queues", "2"])
        self.assertEqual((cases[0]["slots"], cases[0]["queues"]), (2, 2))

    def test_takes_no_tokens_at_all(self):
        for case in self.measured(SMALL + ["--tokens", "0"]):
            self.assertEqual((case["bytes"], case["self_bytes"]), (0, 0))

    def test_prints_window_sizes_beside_those_of_deepep(self):
        out = self.path("sizes.json")
        status, said, err = self.run_alone(["--sizes", "--ranks", "8", "--tokens", "128,1024", "--json", out])
        self.assertEqual(status, 0, err)
        with open(out, encoding="utf-8") as f:
            small, large = (json.loads(line) for line in f)
        for line, tokens in ((small, 128), (large, 1024)):
            dispatched, combined = 16 + max(2 * 7168, 7168 + 224), 2 * 7168 + 224
            deepep = 2 * (1024 + max(tokens * dispatched, 256 * tokens * combined)
                          + 256 * tokens * max(dispatched, combined))
            self.assertEqual(line["deepep_low_latency_bytes"], deepep)
            self.assertIn(str(line["window_bytes"]), said)
            self.assertIn(str(deepep), said)
            rows = tokens * 8 * (14336 + 64 + 14336)
            self.assertGreaterEqual(line["window_bytes"], rows)
            self.assertLess(line["window_bytes"], 1.01 * rows)

    def test_compares_with_mpi_under_mpirun(self):
        mpirun = self.under_mpirun(2)
        cases = []
        for op, more in (("dispatch,combine,step", []), ("step", ["--layout", "padded", "--reduction", "per_choice"]),
                         ("step", ["--layout", "in_place", "--rows", "summed"]),
                         ("step", ["--wire", "opaque", "--slots", "2"]),
                         ("step", ["--wire", "f32", "--reduction", "per_choice"])):
            cases += self.measured(SMALL + ["--op", op, "--tokens", "33"] + more, mpirun)
        for case in cases:
            self.assertEqual(case["started_by"], "mpirun")
            for key in RATIOS:
                self.assertGreater(case[key], 0)

    def test_crosses_between_nodes(self):
        base = SMALL + ["--op", "step", "--tokens", "5", "--ranks", "4", "--ranks-per-node", "2", "--carrier", "libfabric"]
        status, _, err = self.run_alone(base)
        if "libfabric" in err and "cannot be mapped" in err:
            skip("there is no libfabric here: " + err.strip())
        self.assertEqual(status, 0, err)
        for hops in ("one", "two"):
            for reduction in ("per_rank", "per_choice"):
                for case in self.measured(base + ["--hops", hops, "--reduction", reduction]):
                    self.assertEqual((case["ranks_per_node"], case["carrier"], case["hops"]), (2, "libfabric", hops))
        self.refused(SMALL + ["--carrier", "libfabric"], "--carrier", "--ranks-per-node")
        self.refused(SMALL + ["--ranks-per-node", "2", "--hops", "three"], "--hops", "three")

    def test_refuses_threads_under_mpirun(self):
        self.refused(SMALL + ["--ranks", "2"], "--ranks 2 under mpirun", before=self.under_mpirun(2))

    def test_runs_with_more_ranks_than_cores(self):
        cases = self.measured(SMALL + ["--ranks", "8", "--tokens", "4", "--op", "step,dispatch"])
        self.assertEqual({c["ranks"] for c in cases}, {8})


if __name__ == "__main__":
    at = sys.argv.index("--program")
    PROGRAM = sys.argv[at + 1]
    del sys.argv[at:at + 2]
    unittest.main()
