#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Ranks that are killed or stopped: the others say which, in time, and nothing stays behind.

usage: faults_test.py killed|stopped|all_killed --program FERRY_DECODE --demo DIR [--seed N]
"""

import argparse
import os
import random
import re
import signal
import time

import ranks

NUM_RANKS = 4
TIMEOUT = 2.0


def start(o, timeout=TIMEOUT, more=()):
    # Long enough that no fault comes after the end.
    a = ["--model", o.demo, "--max-new-tokens", "480", "--ignore-eos", "--timeout-ms",
         str(int(timeout * 1000))]
    for _ in range(3):
        for text in ("She had been", "Sir Thomas was", "And it came to pass", "Woe unto them"):
            a += ["--prompt", text]
    a += more
    return ranks.Ranks(o.program, NUM_RANKS, a)


def in_shared_memory():
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def wait_until_decoding(group):
    """Rank 0 shows its first text once the prompts are through."""
    end = time.monotonic() + 30
    while "--- prompt 0" not in group.out(0):
        assert time.monotonic() < end, "no text within 30 s:\n" + group.err(0)
        assert group.processes[0].poll() is None, group.err(0)
        time.sleep(0.01)


def check_survivors(group, victim, since, codes):
    survivors = [r for r in range(NUM_RANKS) if r != victim]
    statuses = group.wait(survivors, TIMEOUT + 1 - (time.monotonic() - since))
    took = time.monotonic() - since
    for r, status in zip(survivors, statuses):
        message = group.err(r)
        assert status == 3, "rank %d ended with %s after %.1f s:\n%s" % (r, status, took, message)
        last = message.strip().splitlines()[-1]
        named = re.search(r"\b(%s): .*\brank %d\b" % ("|".join(codes), victim), last)
        assert named, "rank %d does not name rank %d: %s" % (r, victim, last)
    print("rank %d: all others ended after %.2f s" % (victim, took))


def killed(o, more=(), victims=NUM_RANKS):
    rng = random.Random(o.seed)
    for victim in rng.sample(range(NUM_RANKS), victims):
        before = in_shared_memory()
        with start(o, more=more) as group:
            wait_until_decoding(group)
            time.sleep(rng.uniform(0, 0.4))
            since = time.monotonic()
            group.processes[victim].kill()
            check_survivors(group, victim, since, ["unreachable"])
        assert in_shared_memory() <= before, in_shared_memory() - before


def killed_while_moving(o):
    """Experts are on their way from the second step on, a little after every step."""
    killed(o, ["--rebalance", "every=2,bytes-per-step=2000"], 2)


def killed_while_starting(o):
    """At any moment of joining and loading, too, where the deadline may come first."""
    rng = random.Random(o.seed)
    for _ in range(4):
        victim = rng.randrange(NUM_RANKS)
        before = in_shared_memory()
        with start(o) as group:
            time.sleep(rng.uniform(0, 0.3))
            since = time.monotonic()
            group.processes[victim].kill()
            if victim == 0:
                # Those that still look for rank 0's address can only say so.
                statuses = group.wait([1, 2, 3], TIMEOUT + 1)
                assert statuses == [3, 3, 3], [statuses] + [group.err(r) for r in (1, 2, 3)]
            else:
                check_survivors(group, victim, since, ["unreachable", "timeout"])
        assert in_shared_memory() <= before, in_shared_memory() - before


def stopped(o):
    rng = random.Random(o.seed)
    for victim in (rng.randrange(1, NUM_RANKS), 0):
        with start(o) as group:
            wait_until_decoding(group)
            time.sleep(rng.uniform(0, 0.4))
            since = time.monotonic()
            group.processes[victim].send_signal(signal.SIGSTOP)
            check_survivors(group, victim, since, ["timeout"])


def all_killed(o):
    before = in_shared_memory()
    with start(o) as group:
        wait_until_decoding(group)
        for p in group.processes:
            p.kill()
    assert in_shared_memory() <= before, in_shared_memory() - before


if __name__ == "__main__":
    cases = {f.__name__: f for f in (killed, killed_while_moving, killed_while_starting, stopped,
                                     all_killed)}
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=cases)
    parser.add_argument("--program", required=True)
    parser.add_argument("--demo", required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    cases[options.case](options)
