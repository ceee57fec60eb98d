#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""What ferry-decode says and does with its options.

usage: command_line_test.py --program FERRY_DECODE --models DIR --demo DIR [CASE]
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import ranks

PROGRAM = MODELS = DEMO = None


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="ferry-command-line-")
        self.addCleanup(self.scratch.cleanup)

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def refused(self, arguments, status, *words):
        actual, out, err = ranks.run_alone(PROGRAM, arguments)
        self.assertEqual(actual, status, out + err)
        for word in words:
            self.assertIn(word, err)

    def demo_with(self, **changes):
        """The demo model with another config.json. A value of None takes a field away."""
        directory = self.path("model")
        os.mkdir(directory)
        for name in os.listdir(DEMO):
            if name != "config.json":
                os.symlink(os.path.join(DEMO, name), os.path.join(directory, name))
        with open(os.path.join(DEMO, "config.json")) as f:
            config = json.load(f)
        config.update(changes)
        with open(os.path.join(directory, "config.json"), "w") as f:
            json.dump({k: v for k, v in config.items() if v is not None}, f)
        return directory

    def test_shows_its_version(self):
        status, out, _ = ranks.run_alone(PROGRAM, ["--version"])
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^ferry-decode \d+\.\d+\.\d+\n$")

    def test_shows_the_ids_of_a_text_with_nothing_but_a_tokenizer(self):
        shutil.copy(os.path.join(DEMO, "tokenizer.json"), self.scratch.name)
        status, out, err = ranks.run_alone(
            PROGRAM, ["--model", self.scratch.name, "--show-tokens", "Sir Thomas was"])
        self.assertEqual((status, out), (0, "86 334 717 301 297 330\n"), err)
        status, out, err = ranks.run_alone(
            PROGRAM, ["--model", self.scratch.name, "--show-tokens", ""])
        self.assertEqual((status, out), (0, "\n"), err)

    def test_explains_a_wrong_command_line(self):
        self.refused([], 2, "--model")
        self.refused(["--model", DEMO], 2, "--prompt")
        self.refused(["--model", DEMO, "--prompt", "x", "--wire", "int8"], 2, "int8", "fp8_e4m3")
        self.refused(["--model", DEMO, "--prompt", "x", "--max-new-tokens", "0"], 2, "0")
        self.refused(["--model", DEMO, "--prompt", "x", "--temperature", "-1"], 2, "-1")
        self.refused(["--model", DEMO, "--prompt", "x", "--temperature", "nan"], 2, "nan")
        self.refused(["--model", DEMO, "--prompt", "x", "--timeout-ms", "0"], 2, "0")
        self.refused(["--model", DEMO, "--prompt", "x", "--seed", "-1"], 2, "-1")
        self.refused(["--model", DEMO, "--prompt", "x", "--rebalance", "every=4", "--ranks-per-node", "1"], 2,
                     "--rebalance", "--ranks-per-node")
        self.refused(["--model", DEMO, "--prompt", "x", "--seed", "1" + 20 * "0"], 2, "0000")
        self.refused(["--model", DEMO, "--prompt", "x", "--unknown"], 2, "--unknown")

    def test_explains_what_it_cannot_read(self):
        self.refused(["--model", "/nowhere", "--prompt", "x"], 1, "/nowhere")
        self.refused(["--model", DEMO, "--prompts", "/nowhere"], 1, "/nowhere")
        self.refused(["--model", DEMO, "--token-ids", "1 1536"], 1, "1536", "0..1535")
        self.refused(["--model", os.path.join(MODELS, "tiny-C"), "--prompt", "x"], 1,
                     "no tokenizer.json", "--token-ids")
        self.refused(["--model", DEMO, "--prompt", "x", "--dump-logits", "/nowhere/x"], 1,
                     "/nowhere/x")
        self.refused(["--model", DEMO, "--prompt", "x", "--max-new-tokens", "512"], 1,
                     "513", "512", "max_position_embeddings")
        self.refused(["--model", DEMO, "--prompt", "x", "--json", "/nowhere/x"], 1, "/nowhere/x")
        directory = self.demo_with(model_type="llama")
        self.refused(["--model", directory, "--prompt", "x"], 1, "llama")
        shutil.copy(os.path.join(DEMO, "config.json"), directory)
        os.remove(os.path.join(directory, "tokenizer.json"))
        os.symlink("/nowhere/x", os.path.join(directory, "tokenizer.json"))
        self.refused(["--model", directory, "--token-ids", "1"], 1, "tokenizer.json")

    def test_explains_a_device_that_is_not_there(self):
        arguments = ["--model", DEMO, "--prompt", "x", "--device"]
        self.refused(arguments + ["hop"], 2, "hop", "emulated:64")
        self.refused(arguments + ["emulated:16"], 2, "32 or 64")
        self.refused(arguments + ["cpu:1"], 2, "cpu:1")
        self.refused(arguments + ["cuda:999"], 1, "cuda")
        self.refused(arguments + ["hip:999"], 1, "hip")

    def test_chooses_the_same_tokens_on_emulated_devices(self):
        tokens = {}
        for device in ("cpu", "emulated:32", "emulated:64"):
            status, out, err = ranks.run_alone(
                PROGRAM, ["--model", DEMO, "--prompt", "Sir Thomas was", "--max-new-tokens", "4",
                          "--device", device, "--json", self.path(device)])
            self.assertEqual(status, 0, out + err)
            self.assertIn(f"on {device},", err)
            with open(self.path(device)) as f:
                tokens[device] = json.load(f)["tokens"]
        self.assertEqual(tokens["emulated:32"], tokens["cpu"])
        self.assertEqual(tokens["emulated:64"], tokens["cpu"])

    def test_runs_stages_on_the_cpu_alone(self):
        arguments = ["--model", DEMO, "--prompt", "x", "--device", "emulated:32"]
        for more in (["--graph"], ["--microbatches", "2"], ["--microbatches", "auto"],
                     ["--trace", self.path("trace")], ["--timeline", self.path("timeline")]):
            self.refused(arguments + more, 1, "unsupported", more[0], "emulated:32", "--device cpu")
        self.assertFalse(os.path.exists(self.path("trace")))

    def test_explains_truncated_weights(self):
        directory = self.demo_with()
        os.remove(os.path.join(directory, "model.safetensors"))
        with open(os.path.join(DEMO, "model.safetensors"), "rb") as f:
            raw = f.read()
        for length in (0, 7, 100, len(raw) // 2, len(raw) - 1):
            with open(os.path.join(directory, "model.safetensors"), "wb") as f:
                f.write(raw[:length])
            self.refused(["--model", directory, "--prompt", "x"], 1, "model.safetensors",
                         "malformed_input")

    def test_explains_half_an_environment(self):
        env = ranks.environment(RANK="0", WORLD_SIZE="2")
        done = subprocess.run([PROGRAM, "--model", DEMO, "--prompt", "x"], env=env,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"MASTER_", done.stderr)

    def test_takes_prompts_of_any_shape(self):
        with open(self.path("prompts.txt"), "w", encoding="utf-8") as f:
            f.write("She had\\u0020been\n\"Sir Thomas\\nwas\n")
        odd = ["[a,b]", "{}", "--x", "", " ", "\u00e9\u20ac"]
        a = ["--model", DEMO, "--max-new-tokens", "3", "--prompts", self.path("prompts.txt"),
             "--token-ids", "0 1319 368 504"]
        for text in odd:
            a += ["--prompt", text]
        numbers, _, _ = ranks.decode(PROGRAM, 1, a)
        self.assertEqual(len(numbers["tokens"]), len(odd) + 3)
        self.assertEqual(len(numbers["text"]), len(odd) + 3)
        # The text with its begin token, and the same ids given bare.
        self.assertEqual(numbers["tokens"][len(odd)], numbers["tokens"][-1])

    def test_ends_at_an_end_token_unless_told_otherwise(self):
        with open(os.path.join(DEMO, "golden.json"), encoding="utf-8") as f:
            golden = json.load(f)["prompts"]
        comma = 47
        directory = self.demo_with(eos_token_id=[1, comma])
        a = ["--model", directory, "--max-new-tokens", "48"]
        for p in golden:
            a += ["--prompt", p["prompt"]]
        for count in (1, 3):
            numbers, _, raw = ranks.decode(PROGRAM, count, a, True)
            for p, tokens in zip(golden, numbers["tokens"]):
                ids = p["continuation_ids"]
                end = ids.index(comma) + 1 if comma in ids else len(ids)
                self.assertEqual(tokens, ids[:end])
            rows = len(golden[0]["prompt_ids"]) + len(numbers["tokens"][0]) - 1
            self.assertEqual(len(raw), rows * 1536 * 4)
            numbers, _, raw = ranks.decode(PROGRAM, count, a + ["--ignore-eos"], True)
            self.assertEqual(numbers["tokens"], [p["continuation_ids"] for p in golden])
            self.assertEqual(len(raw), (len(golden[0]["prompt_ids"]) + 47) * 1536 * 4)

    def test_dumps_the_logits_that_chose_the_tokens(self):
        with open(os.path.join(DEMO, "golden.json"), encoding="utf-8") as f:
            p = json.load(f)["prompts"][0]
        _, _, raw = ranks.decode(PROGRAM, 1, ["--model", DEMO, "--prompt", p["prompt"],
                                              "--max-new-tokens", "48", "--ignore-eos"], True)
        with open(os.path.join(DEMO, "golden-logits.npy"), "rb") as f:
            npy = f.read()
        golden = struct.unpack("<%df" % (48 * 1536), npy[-4 * 48 * 1536 * 4:-3 * 48 * 1536 * 4])
        actual = struct.unpack("<%df" % (48 * 1536), raw[-48 * 1536 * 4:])
        self.assertLess(max(abs(a - b) for a, b in zip(actual, golden)), 1e-3)

    def test_samples_by_seed_and_prompt_alone(self):
        a = ["--model", DEMO, "--max-new-tokens", "16", "--reduction", "per_choice",
             "--temperature", "0.8"]
        for text in ("She had been", "Sir Thomas was", "She had been"):
            a += ["--prompt", text]
        one, _, _ = ranks.decode(PROGRAM, 1, a + ["--seed", "3"])
        three, _, _ = ranks.decode(PROGRAM, 3, a + ["--seed", "3"])
        other, _, _ = ranks.decode(PROGRAM, 1, a + ["--seed", "4"])
        self.assertEqual(one["tokens"], three["tokens"])
        self.assertNotEqual(one["tokens"], other["tokens"])
        self.assertNotEqual(one["tokens"][0], one["tokens"][2])

    def test_prints_ids_where_there_is_no_tokenizer(self):
        a = ["--model", os.path.join(MODELS, "tiny-C"), "--token-ids", "5 6 7",
             "--max-new-tokens", "4", "--ignore-eos"]
        numbers, out, _ = ranks.decode(PROGRAM, 1, a)
        self.assertIn("5 6 7 " + " ".join(map(str, numbers["tokens"][0])), out)
        self.assertEqual(numbers["text"], [])

    def test_takes_more_ranks_than_prompts(self):
        numbers, _, _ = ranks.decode(PROGRAM, 5, ["--model", DEMO, "--prompt", "She had been",
                                                  "--max-new-tokens", "1"])
        self.assertEqual(len(numbers["tokens"]), 1)
        self.assertEqual(len(numbers["tokens"][0]), 1)
        self.assertEqual(numbers["decode_tokens"], 0)

    def test_ends_at_the_end_token_of_generation_config(self):
        with open(os.path.join(DEMO, "golden.json"), encoding="utf-8") as f:
            p = json.load(f)["prompts"][0]
        ids = p["continuation_ids"]
        directory = self.demo_with()
        file = os.path.join(directory, "generation_config.json")
        a = ["--model", directory, "--max-new-tokens", "48", "--prompt", p["prompt"]]
        os.remove(file)
        with open(file, "w") as f:
            json.dump({"eos_token_id": [1, ids[5]]}, f)
        numbers, _, _ = ranks.decode(PROGRAM, 1, a)
        self.assertEqual(numbers["tokens"][0], ids[:ids.index(ids[5]) + 1])
        with open(file, "w") as f:
            f.write("{")
        self.refused(a, 1, "malformed_input", "generation_config.json")
        # Without either, the tokenizer's.
        os.remove(file)
        with open(os.path.join(directory, "config.json")) as f:
            config = json.load(f)
        del config["eos_token_id"]
        with open(os.path.join(directory, "config.json"), "w") as f:
            json.dump(config, f)
        with open(os.path.join(directory, "tokenizer.json"), encoding="utf-8") as f:
            vocabulary = json.load(f)["model"]["vocab"]
        os.remove(os.path.join(directory, "tokenizer_config.json"))
        with open(os.path.join(directory, "tokenizer_config.json"), "w") as f:
            json.dump({"eos_token": next(t for t, i in vocabulary.items() if i == ids[5])}, f)
        numbers, _, _ = ranks.decode(PROGRAM, 1, a)
        self.assertEqual(numbers["tokens"][0], ids[:ids.index(ids[5]) + 1])

    def test_uses_every_position_of_the_model(self):
        directory = self.demo_with(max_position_embeddings=16)
        a = ["--model", directory, "--ignore-eos", "--token-ids", "0 1319 368 504"]
        numbers, _, _ = ranks.decode(PROGRAM, 2, a + ["--max-new-tokens", "13"])
        self.assertEqual(len(numbers["tokens"][0]), 13)
        self.refused(a + ["--max-new-tokens", "14"], 1, "17", "16", "max_position_embeddings")

    def test_refuses_ranks_that_were_started_otherwise(self):
        other = self.demo_with(rms_norm_eps=1e-5)
        for more, words in ((["--max-new-tokens", "12"], "--max-new-tokens (12) than rank 0 (3)"),
                            (["--prompt", "y"], "number of prompts (2) than rank 0 (1)"),
                            (["--model", other], "another config.json than rank 0")):
            port = str(ranks.free_port())
            processes = []
            for rank in range(2):
                options = {"--model": DEMO, "--max-new-tokens": "3"}
                a = ["--prompt", "x"]
                if rank == 1:
                    if more[0] in options:
                        options[more[0]] = more[1]
                    else:
                        a += more
                for item in options.items():
                    a += item
                processes.append(subprocess.Popen(
                    [PROGRAM] + a, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    env=ranks.environment(RANK=str(rank), WORLD_SIZE="2",
                                          MASTER_ADDR="127.0.0.1", MASTER_PORT=port)))
            for p in processes:
                _, err = p.communicate(timeout=60)
                self.assertEqual(p.returncode, 1, err)
                self.assertIn("rank 1 was started with another", err.decode())
                self.assertIn(words, err.decode())

    def test_refuses_two_numbers_of_ranks(self):
        env = ranks.environment(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                                MASTER_PORT="1", OMPI_COMM_WORLD_SIZE="3")
        done = subprocess.run([PROGRAM, "--model", DEMO, "--prompt", "x"], env=env,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"mpirun started 3 ranks", done.stderr)
        self.assertIn(b"WORLD_SIZE is 2", done.stderr)

    def test_says_that_its_output_cannot_be_written(self):
        for more in (["--show-tokens", "x"], ["--prompt", "x", "--max-new-tokens", "2"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, "--model", DEMO] + more, stdout=full,
                                      stderr=subprocess.PIPE, timeout=60, env=ranks.environment())
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(b"cannot be written", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--demo", required=True)
    parser.add_argument("case", nargs="?")
    o = parser.parse_args()
    PROGRAM, MODELS, DEMO = o.program, o.models, os.path.abspath(o.demo)
    names = ["CommandLine.test_" + o.case] if o.case else None
    unittest.main(argv=["command_line_test"] + (names or []))
