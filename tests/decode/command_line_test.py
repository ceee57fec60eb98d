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
        self.refused(["--model", DEMO, "--prompt", "x", "--unknown"], 2, "--unknown")

    def test_explains_what_it_cannot_read(self):
        self.refused(["--model", "/nowhere", "--prompt", "x"], 1, "/nowhere")
        self.refused(["--model", DEMO, "--prompts", "/nowhere"], 1, "/nowhere")
        self.refused(["--model", DEMO, "--token-ids", "1 1536"], 1, "1536", "0..1535")
        self.refused(["--model", os.path.join(MODELS, "tiny-C"), "--prompt", "x"], 1,
                     "no tokenizer.json", "--token-ids")
        self.refused(["--model", DEMO, "--prompt", "x", "--dump-logits", "/nowhere/x"], 1,
                     "/nowhere/x")
        self.refused(["--model", DEMO, "--prompt", "x", "--max-new-tokens", "511"], 1,
                     "511", "512", "max_position_embeddings")
        self.refused(["--model", self.demo_with(model_type="llama"), "--prompt", "x"], 1, "llama")

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
