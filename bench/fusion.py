"""Fused chains on 16M float32 against NumPy, numexpr, MXNet, torch, torch.compile and jax.

    python bench/fusion.py [--python PEER=PYTHON ...] [--rounds N] [--threads 1,2] [--json FILE]

Each peer runs in a process of its own, by the Python given for it (default: this one; what is not installed there is
skipped with a line). Processes have the same CPUs and thread counts; runs are interleaved: in every round each peer
runs each case once. Printed: peer time / mxc time, from the minimum (and, in brackets, the median) over the rounds.
Every peer's result is compared with NumPy's first.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

PEERS = ("mxc", "numpy", "numexpr", "mxnet", "torch", "torch.compile", "jax")
WORKER = Path(__file__).parent / "peers" / "worker.py"
sys.path.insert(0, str(WORKER.parent))


class Peer:
    """A worker process with `threads` threads on as many CPUs."""

    def __init__(self, name: str, python: str, threads: int):
        cpus = sorted(os.sched_getaffinity(0))[:threads]
        variables = dict.fromkeys(("OMP_NUM_THREADS", "MXC_NUM_THREADS", "NUMEXPR_NUM_THREADS", "MKL_NUM_THREADS",
                                   "OPENBLAS_NUM_THREADS"), str(threads))
        if threads == 1:
            variables["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        self.name = name
        self.process = subprocess.Popen(
            [python, str(WORKER), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, **variables}, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        words = self.read().split(maxsplit=1)
        self.missing = words[1].strip() if words and words[0] == "missing" else ""
        if not words or words[0] not in ("ready", "missing"):
            assert self.process.stderr is not None
            self.missing = self.process.stderr.read().strip().splitlines()[-1]
        self.cases = [] if self.missing else words[1].split()

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ask(self, request: str) -> list[float]:
        assert self.process.stdin is not None
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        line = self.read()
        if not line:
            assert self.process.stderr is not None
            raise RuntimeError(f"{self.name} stopped at {request}: {self.process.stderr.read()[-800:]}")
        return [float(word) for word in line.split()]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def differing(peers: list[Peer], case: str) -> list[str]:
    """Names of the peers whose result of `case` is not NumPy's."""
    samples = {p.name: p.ask(f"sample {case}") for p in peers if case in p.cases}
    right = samples["numpy"]
    return [name for name, values in samples.items()
            if any(abs(a - b) > 1e-4 * abs(b) + 1e-5 for a, b in zip(values, right, strict=True))]


def measure(pythons: dict[str, str], threads: int, rounds: int) -> dict:
    """case -> peer -> seconds of each round. Prints what is skipped or wrong."""
    from fusion_cases import NAMES

    peers = [Peer(name, pythons.get(name, sys.executable), threads) for name in PEERS]
    for peer in peers:
        if peer.missing:
            print(f"skipped {peer.name}: {peer.missing}", flush=True)
    peers = [p for p in peers if not p.missing]
    times: dict[str, dict[str, list[float]]] = {}
    try:
        for case in NAMES:
            wrong = differing(peers, case)
            for name in wrong:
                print(f"{name}: another result for {case} than NumPy", flush=True)
            here = [p for p in peers if case in p.cases and p.name not in wrong]
            times[case] = {p.name: [] for p in here}
            for _ in range(rounds):
                for peer in here:
                    times[case][peer.name] += peer.ask(f"time {case}")
    finally:
        for peer in peers:
            peer.close()
    return times


def report(times: dict, threads: int) -> None:
    from fusion_cases import TEXT

    print(f"\n{threads} thread{'s' * (threads > 1)}: peer time / mxc time, minimum (median)")
    for case, by_peer in times.items():
        ours = by_peer.get("mxc")
        if ours is None:
            print(f"{case:10} mxc did not take part")
            continue
        ratios = [f"{name} {min(t) / min(ours):.2f} ({statistics.median(t) / statistics.median(ours):.2f})"
                  for name, t in by_peer.items() if name != "mxc"]
        print(f"{case:10} mxc {min(ours) * 1e3:7.2f} ms; " + ", ".join(ratios) + f"    [{TEXT[case]}]", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PYTHON")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    pythons = dict(pair.split("=", 1) for pair in options.python)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    results = {}
    for threads in map(int, options.threads.split(",")):
        results[threads] = measure(pythons, threads, options.rounds)
        report(results[threads], threads)
    if options.json:
        Path(options.json).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
