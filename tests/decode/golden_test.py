#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Decodes models with known logits, tokens and texts.

usage: golden_test.py CASE --program FERRY_DECODE --models DIR --demo DIR [--model M] [--ranks N]
                      [--how tcp|mpi]
"""

import argparse
import array
import glob
import json
import math
import os
import random
import tempfile
import xml.etree.ElementTree

import ranks

NEW_TOKENS = 32
# Largest and root-mean-square difference of an all-bf16 run from float64 over the prompts, as the
# reference implementation has it.
BF16_NOISE = {"tiny-A": (0.7, 0.13), "tiny-B": (0.18, 0.036), "tiny-C": (0.48, 0.09)}


def prompts_of(model_directory):
    files = sorted(glob.glob(os.path.join(model_directory, "prompt_*.safetensors")))
    assert files, "no prompts in " + model_directory
    return [ranks.read_safetensors(f) for f in files]


def arguments_for(model_directory, prompts, *more):
    a = ["--model", model_directory, "--max-new-tokens", str(NEW_TOKENS), "--ignore-eos"]
    for p in prompts:
        a += ["--token-ids", " ".join(map(str, p["tokens"][1]))]
    return a + list(more)


def differences(raw, expected):
    actual = array.array("f", raw)
    assert len(actual) == len(expected), "%d logits, not %d" % (len(actual), len(expected))
    assert all(map(math.isfinite, actual)), "a logit is not finite"
    return [a - e for a, e in zip(actual, expected)]


def wanted_logits(prompt):
    """Row N-1 of the prompt chose the first token, and is row 0 of the decode steps."""
    (_, vocabulary) = prompt["f64.logits"][0]
    return list(prompt["f64.logits"][1]) + list(prompt["f64.decode_logits"][1][vocabulary:])


def f32(o):
    """Logits within 1e-3 of float64 at every position, and the greedy tokens, for every prompt."""
    directory = os.path.join(o.models, o.model)
    prompts = prompts_of(directory)
    for first in range(len(prompts)):
        order = prompts[first:] + prompts[:first]
        # More sequences than ranks on some, fewer on others.
        order += [order[0], order[-1]]
        numbers, _, raw = ranks.decode(o.program, o.ranks, arguments_for(directory, order), True,
                                       o.how)
        worst = max(map(abs, differences(raw, wanted_logits(order[0]))))
        print("prompt of %d tokens on %d ranks: largest difference %.2e"
              % (len(order[0]["tokens"][1]), o.ranks, worst))
        assert worst <= 1e-3, worst
        for i, p in enumerate(order):
            assert numbers["tokens"][i] == list(p["decode_tokens"][1]), "prompt %d" % i
        assert numbers["ranks"] == o.ranks and len(numbers["expert_load"]) == o.ranks
        assert numbers["prefill_tokens"] == sum(len(p["tokens"][1]) for p in order)
        assert numbers["decode_tokens"] == len(order) * (NEW_TOKENS - 1)
        assert numbers["text"] == []
        topk, layers = (prompts[0]["gate_indices"][0][i] for i in (2, 0))
        fed = numbers["prefill_tokens"] + numbers["decode_tokens"]
        assert sum(numbers["expert_load"]) == fed * topk * layers, "every choice is worked on once"


def bf16(o):
    directory = os.path.join(o.models, o.model)
    for prompt in prompts_of(directory):
        _, _, raw = ranks.decode(o.program, o.ranks,
                                 arguments_for(directory, [prompt], "--dtype", "bf16"), True, o.how)
        expected = prompt["f64.logits"][1]
        d = differences(raw[:4 * len(expected)], expected)
        worst = max(map(abs, d))
        rms = math.sqrt(sum(x * x for x in d) / len(d))
        noise_worst, noise_rms = BF16_NOISE[o.model]
        print("prompt of %d tokens: largest difference %.3f, rms %.4f"
              % (len(prompt["tokens"][1]), worst, rms))
        assert worst <= 2 * noise_worst, worst
        assert rms <= 1.5 * noise_rms, rms
        assert worst > 1e-3, "this is not bf16"


def per_choice(o):
    """The same bits on every number of ranks, in every layout."""
    directory = os.path.join(o.models, o.model)
    prompts = prompts_of(directory)
    reference = None
    for count, layout in ((1, "grouped"), (2, "padded"), (3, "grouped"), (4, "in_place"),
                          (8, "grouped"), (8, "in_place")):
        numbers, _, raw = ranks.decode(
            o.program, count,
            arguments_for(directory, prompts, "--reduction", "per_choice", "--layout", layout),
            True, o.how)
        if reference is None:
            reference = raw
            worst = max(map(abs, differences(raw, wanted_logits(prompts[0]))))
            assert worst <= 1e-3, worst
        assert raw == reference, "logits on %d ranks, %s, are other ones" % (count, layout)
        assert numbers["tokens"] == [list(p["decode_tokens"][1]) for p in prompts]


def wires(o):
    """Narrow wires cost accuracy in proportion, and bytes in proportion."""
    directory = os.path.join(o.models, o.model)
    prompt = prompts_of(directory)[0]
    expected = prompt["f64.logits"][1]
    sent = {}
    for wire, limit in (("f32", 1e-3), ("bf16", 0.5), ("fp8_e4m3", 4), ("fp8_e4m3fnuz", 4)):
        numbers, _, raw = ranks.decode(
            o.program, o.ranks,
            arguments_for(directory, [prompt], "--wire", wire, "--combine-wire", wire), True, o.how)
        d = differences(raw[:4 * len(expected)], expected)
        rms = math.sqrt(sum(x * x for x in d) / len(d))
        print("%s: rms %.5f, %d + %d bytes" % (wire, rms, numbers["dispatch_bytes"],
                                               numbers["combine_bytes"]))
        assert rms <= limit, (wire, rms)
        assert (rms < 1e-3) == (wire == "f32"), "wire %s is not used" % wire
        sent[wire] = numbers["combine_bytes"]
    if o.ranks > 1:
        assert sent["f32"] > 1.5 * sent["bf16"] > 2 * sent["fp8_e4m3"] > 0, sent


MANNERS = [["--graph"]] + [
    ["--microbatches", "2", "--overlap-driver", driver] + graph
    for driver in ("interleaved", "handed_over", "concurrent") for graph in ([], ["--graph"])]


def same_bits(o, steps, a):
    """Captured, split, and both, by every driver: the logits of all prompts are the plain run's."""
    def run(manner):
        numbers, _, raw = ranks.decode(o.program, o.ranks, a + manner, True)
        assert raw and numbers["logits_digests"], numbers
        return raw, numbers["logits_digests"], numbers["tokens"], numbers["overlapped_steps"]

    plain = run([])
    assert len(set(plain[1])) > 1 and plain[3] == 0, plain[1:]
    for manner in MANNERS + [["--microbatches", "auto"], ["--microbatches", "auto", "--graph"]]:
        other = run(manner)
        for what, x, y in zip(("the first prompt's logits", "logits", "tokens"), other, plain):
            assert x == y, "%s: %s are other ones" % (manner, what)
        if "auto" not in manner:
            assert other[3] == (steps - 1 if "--microbatches" in manner else 0), (manner, other[3])


def overlap(o):
    """Not a bit depends on graphs and microbatches.

    FERRY_TEST_EFFORT above 1 runs 200 steps instead of 40, on both models, and the demo model."""
    full = int(os.environ.get("FERRY_TEST_EFFORT", "1")) > 1
    steps = 200 if full else 40
    for model in ("tiny-A", "tiny-B") if full else (o.model,):
        directory = os.path.join(o.models, model)
        short = sorted(prompts_of(directory), key=lambda p: len(p["tokens"][1]))[:2]
        # Three sequences on one rank; one or none on each of eight.
        a = ["--model", directory, "--max-new-tokens", str(steps), "--ignore-eos"]
        for p in (short[0], short[-1], short[0]):
            a += ["--token-ids", " ".join(map(str, p["tokens"][1]))]
        same_bits(o, steps, a)
        print("%s on %d ranks: %d steps" % (model, o.ranks, steps))
    if full:
        a = ["--model", o.demo, "--max-new-tokens", str(steps), "--ignore-eos"]
        for text in ("Once upon a time", "The", "In the garden"):
            a += ["--prompt", text]
        same_bits(o, steps, a)
        print("demo model on %d ranks: %d steps" % (o.ranks, steps))


def random_placement(rng, layers, experts, count, redundant, path):
    """As ferry-place writes one: every expert somewhere, none twice on a rank."""
    slots = experts + redundant
    bounds = [r * slots // count for r in range(count + 1)]
    table = []
    while len(table) < layers:
        row = list(range(experts)) + [rng.randrange(experts) for _ in range(redundant)]
        rng.shuffle(row)
        if all(len(set(row[a:b])) == b - a for a, b in zip(bounds, bounds[1:])):
            table.append(row)
    with open(path, "w", encoding="utf-8") as f:
        json.dump([{"policy": "random", "ranks": count, "nodes": 1, "experts": experts,
                    "slots": slots, "placement": table}], f)


def placed(o):
    """Not a bit of the logits depends on where experts are, on replicas, or on moving them."""
    directory = os.path.join(o.models, o.model)
    prompts = prompts_of(directory)
    a = arguments_for(directory, prompts, "--reduction", "per_choice")
    layers, experts = prompts[0]["gate_indices"][0][0], 16
    plain = ranks.decode(o.program, 1, a, True)
    assert plain[0]["balance"]["before"]["max_over_mean"] == 1, "one rank is as busy as the mean"
    rng = random.Random(6)
    move = ["--rebalance", "every=4,bytes-per-step=500000"]
    with tempfile.TemporaryDirectory(prefix="ferry-placed-") as d:
        path, loads = os.path.join(d, "placement.json"), os.path.join(d, "loads.json")
        for count, redundant, more in ((1, 0, []), (2, 0, [move[0], move[1] + ",policy=local"]), (2, 2, ["--replicas", "nearest"]),
                                       (3, 3, ["--graph", "--microbatches", "2"] + move),
                                       (4, 8, move + ["--save-loads", loads])):
            random_placement(rng, layers, experts, count, redundant, path)
            numbers, _, raw = ranks.decode(o.program, count, a + ["--placement", path] + more, True)
            assert raw == plain[2], "%d ranks, %s: logits are other ones" % (count, more)
            assert numbers["tokens"] == plain[0]["tokens"], (count, more)
            balance = numbers["balance"]
            assert balance["before"]["sampling_floor"] >= 1, balance
            assert (balance["after"] is not None) == ("--rebalance" in more), balance
            assert (balance["moved_bytes"] > 0) == (balance["moved_experts"] > 0), balance
            print(count, redundant, more, balance)
        assert balance["rounds"] > 0 and balance["moved_experts"] > 0, "nothing has moved"
        with open(loads, encoding="utf-8") as f:
            saved = json.load(f)
        assert saved["sample"]["topk"] == len(saved["sample"]["choices"][0][0])
        for token in saved["sample"]["choices"]:
            assert all(-1 not in layer for layer in token), "a token lacks the choices of a layer"
        counts = saved["logical_count"]
        assert [len(c) for c in counts] == [experts] * layers
        # Every choice of the decode steps is counted once, whichever replica served it.
        wanted = numbers["decode_tokens"] * saved["sample"]["topk"]
        assert [sum(c) for c in counts] == [wanted] * layers, (counts, wanted)
        # A placement of other ranks is refused.
        status, _, err = ranks.run_alone(o.program, a + ["--placement", path])
        assert status == 1 and "4 ranks" in err, err


def pictures(o):
    """The trace is JSON with every kind of span on every rank, and the picture shows one step."""
    prompt = prompts_of(os.path.join(o.models, o.model))[0]
    with tempfile.TemporaryDirectory(prefix="ferry-trace-") as d:
        trace, timeline = os.path.join(d, "trace.json"), os.path.join(d, "step.svg")
        a = arguments_for(os.path.join(o.models, o.model), [prompt, prompt, prompt], "--graph",
                          "--microbatches", "2", "--trace", trace, "--timeline", timeline)
        ranks.decode(o.program, o.ranks, a, False, o.how)
        with open(trace, encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        traced = [e for e in events if e["ph"] == "X"]
        spans = [e for e in traced if e["args"]["phase"] == "decode"]
        prefill = [e for e in traced if e["args"]["phase"] == "prefill"]
        assert len(traced) == len(spans) + len(prefill)
        for rank in range(o.ranks):
            mine = [e for e in spans if e["pid"] == rank]
            for name in ("attention", "gate", "dispatch_send", "dispatch_receive", "experts",
                         "combine_send", "combine_receive", "shared_expert"):
                for part in (0, 1):
                    found = [e for e in mine if e["name"] == name and e["args"]["microbatch"] == part]
                    assert len(found) % (NEW_TOKENS - 1) == 0 and found, (rank, name, part)
                    on = 1 if name.startswith(("dispatch", "combine")) else 0
                    assert all(e["tid"] == on and e["dur"] >= 0 for e in found), name
                # A prompt goes through the same stages, in one piece.
                found = [e for e in prefill if e["pid"] == rank and e["name"] == name]
                assert found and all(e["args"]["microbatch"] == 0 and e["dur"] >= 0
                                     and e["tid"] == (1 if name.startswith(("dispatch", "combine"))
                                                      else 0) for e in found), (rank, name)
            # One thing at a time on each track.
            for track in (0, 1):
                line = sorted((e["ts"], e["ts"] + e["dur"]) for e in traced
                              if e["pid"] == rank and e["tid"] == track)
                assert all(a[1] <= b[0] + 0.002 for a, b in zip(line, line[1:])), (rank, track)
            # Within a microbatch each stage waits for the one before.
            for part in (0, 1):
                line = sorted((e["ts"], e["ts"] + e["dur"]) for e in mine
                              if e["args"]["microbatch"] == part)
                assert all(a[1] <= b[0] + 0.002 for a, b in zip(line, line[1:])), (rank, part)
        picture = xml.etree.ElementTree.parse(timeline).getroot()
        text = "".join(picture.itertext())
        assert "%d ranks, 2 microbatches" % o.ranks in text, text[:200]
        titles = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}title")]
        assert len(titles) == len(spans) / (NEW_TOKENS - 1), "one step of all ranks"


def nodes(o):
    """Ranks of two nodes, which reach each other by RDMA alone, bring the bits of one node's."""
    prompts = prompts_of(os.path.join(o.models, o.model))
    a = arguments_for(os.path.join(o.models, o.model), prompts)
    numbers, _, raw = ranks.decode(o.program, o.ranks, a, True, seconds=120)
    worst = max(map(abs, differences(raw, wanted_logits(prompts[0]))))
    assert worst <= 1e-3, worst
    apart, _, raw_apart = ranks.decode(
        o.program, o.ranks, a + ["--ranks-per-node", str(o.ranks // 2)], True, seconds=120)
    assert raw_apart == raw, "logits of two nodes are other ones"
    assert apart["tokens"] == numbers["tokens"]
    print("%d logits of %d ranks on two nodes are those of one" % (len(raw) // 4, o.ranks))


def sharded(o):
    """A checkpoint in one file and in three is the same model."""
    raws = []
    for name in ("tiny-A", "tiny-A-sharded"):
        directory = os.path.join(o.models, name)
        prompt = prompts_of(directory)[0]
        raws.append(ranks.decode(o.program, o.ranks, arguments_for(directory, [prompt]), True)[2])
    assert raws[0] == raws[1] and raws[0]


def demo(o):
    """The trained model's texts."""
    with open(os.path.join(o.demo, "golden.json"), encoding="utf-8") as f:
        golden = json.load(f)["prompts"]
    a = ["--model", o.demo, "--max-new-tokens", "48", "--ignore-eos"]
    for p in golden:
        a += ["--prompt", p["prompt"]]
    numbers, out, _ = ranks.decode(o.program, o.ranks, a, False, o.how)
    for i, p in enumerate(golden):
        assert numbers["tokens"][i] == p["continuation_ids"], "prompt %d" % i
        assert p["prompt"] + numbers["text"][i] == p["text"], numbers["text"][i]
        assert p["text"] in out, "text %d is not shown" % i
    for word in ("prefill", "decode", "inter-token latency", "p50", "dispatched", "combined",
                 "max/mean"):
        assert word in out, word


def main():
    parser = argparse.ArgumentParser()
    cases = {f.__name__: f for f in (f32, bf16, per_choice, wires, overlap, placed, pictures,
                                   nodes,
                                   sharded, demo)}
    parser.add_argument("case", choices=cases)
    parser.add_argument("--program", required=True)
    parser.add_argument("--models", required=True)
    parser.add_argument("--demo", required=True)
    parser.add_argument("--model", default="tiny-A")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--how", default="tcp")
    o = parser.parse_args()
    if o.how == "mpi" and not ranks.has_mpirun():
        ranks.skip("no mpirun")
    cases[o.case](o)


if __name__ == "__main__":
    main()
