# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
"""Starts ferry-decode on several ranks and reads what it wrote. Standard library only."""

import array
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # CTest's SKIP_RETURN_CODE

LAUNCH_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK")


def skip(why):
    print("SKIPPED:", why)
    sys.exit(SKIPPED)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def environment(**more):
    env = {k: v for k, v in os.environ.items()
           if k not in LAUNCH_VARIABLES and not k.startswith(("OMPI_", "PMI", "PRTE_"))}
    env.update(more)
    return env


class Ranks:
    """Processes that meet over TCP. Leaving the block ends them all."""

    def __init__(self, program, num_ranks, arguments):
        self.directory = tempfile.TemporaryDirectory(prefix="ferry-ranks-")
        port = str(free_port())
        self.processes, self.files = [], []
        for rank in range(num_ranks):
            out = open(os.path.join(self.directory.name, "out.%d" % rank), "w+b")
            err = open(os.path.join(self.directory.name, "err.%d" % rank), "w+b")
            self.files.append((out, err))
            self.processes.append(subprocess.Popen(
                [program] + arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env=environment(RANK=str(rank), WORLD_SIZE=str(num_ranks),
                                MASTER_ADDR="127.0.0.1", MASTER_PORT=port)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
        for p in self.processes:
            p.wait()
        for out, err in self.files:
            out.close()
            err.close()
        self.directory.cleanup()

    def _read(self, rank, which):
        f = self.files[rank][which]
        f.flush()
        with open(f.name, "rb") as again:
            return again.read().decode("utf-8", "replace")

    def out(self, rank):
        return self._read(rank, 0)

    def err(self, rank):
        return self._read(rank, 1)

    def wait(self, ranks, seconds):
        """The statuses of `ranks`, None for those that did not end in time."""
        end = time.monotonic() + seconds
        statuses = []
        for r in ranks:
            try:
                statuses.append(self.processes[r].wait(max(0.0, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                statuses.append(None)
        return statuses


def has_mpirun():
    return shutil.which("mpirun") is not None


def run_mpi(program, num_ranks, arguments, seconds):
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(num_ranks)]
    if os.geteuid() == 0:
        command.insert(1, "--allow-run-as-root")
    done = subprocess.run(command + [program] + arguments, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=seconds, env=environment())
    if b"this build has no MPI" in done.stderr:
        skip("ferry-decode is built without MPI")
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def decode(program, num_ranks, arguments, logits=False, how="tcp", seconds=100):
    """Runs to the end; returns (the JSON object, rank 0's stdout, the logits' bytes)."""
    with tempfile.TemporaryDirectory(prefix="ferry-decode-") as d:
        arguments = arguments + ["--json", os.path.join(d, "run.json")]
        if logits:
            arguments += ["--dump-logits", os.path.join(d, "logits.bin")]
        if how == "mpi":
            status, out, err = run_mpi(program, num_ranks, arguments, seconds)
            assert status == 0, "mpirun ended with %d:\n%s%s" % (status, out, err)
        else:
            with Ranks(program, num_ranks, arguments) as ranks:
                statuses = ranks.wait(range(num_ranks), seconds)
                assert statuses == [0] * num_ranks, "statuses %s:\n%s" % (
                    statuses, "".join(ranks.err(r) for r in range(num_ranks)))
                out = ranks.out(0)
        with open(os.path.join(d, "run.json"), encoding="utf-8") as f:
            numbers = json.load(f)
        raw = b""
        if logits:
            with open(os.path.join(d, "logits.bin"), "rb") as f:
                raw = f.read()
    return numbers, out, raw


def run_alone(program, arguments, seconds=60):
    done = subprocess.run([program] + arguments, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=seconds, env=environment())
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def read_safetensors(path):
    """name -> (shape, list of numbers), for the types that the expected values have."""
    with open(path, "rb") as f:
        raw = f.read()
    length = struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + o for o in entry["data_offsets"])
        code = {"F32": "f", "F64": "d", "I32": "i"}.get(entry["dtype"])
        if code:
            tensors[name] = (entry["shape"], array.array(code, raw[begin:end]))
    return tensors
