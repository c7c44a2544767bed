"""How long a process takes from its start to a case's first result, with and without what an earlier one compiled."""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from harness.measure import Result, difference
from harness.worker import LIMIT, SERVE, confine, cpus, environment

CACHES = {"mxc": "MXC_CACHE_DIR", "torch.compile": "TORCHINDUCTOR_CACHE_DIR"}
COLD = tuple(CACHES)  # the others keep nothing between processes


def once(peer: str, python: str, case: Path, threads: int, cache: str | None) -> tuple[float, dict]:
    """(seconds, the answer); `cache` replaces the folder of compiled code. Raises RuntimeError."""
    variables = environment(threads)
    if cache is not None:
        variables[CACHES[peer]] = cache
    chosen = cpus(threads)
    start = time.perf_counter()
    done = subprocess.run([python, str(SERVE), peer, "--once", str(case)], capture_output=True, text=True,
                          env=variables, timeout=LIMIT, preexec_fn=lambda: confine(chosen))
    seconds = time.perf_counter() - start
    if done.returncode or not done.stdout:
        raise RuntimeError(f"ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return seconds, json.loads(done.stdout)


def measure(pythons: dict[str, str], case: Path, threads: int, rounds: int) -> dict[str, Result]:
    """The rows "cold start" and "warm start" of the case; cold: of the peers that compile into a folder."""
    cold, warm = Result(), Result()
    first: dict[str, list] = {}
    for peer, python in pythons.items():
        with tempfile.TemporaryDirectory() as folder:
            cache = folder if peer in COLD else None
            os.chmod(folder, 0o700)
            try:
                seconds, answer = once(peer, python, case, threads, cache)
                if reason := answer.get("unsupported") or answer.get("missing"):
                    cold.reasons[peer] = warm.reasons[peer] = reason
                    continue
                first[peer] = answer["outputs"]
                if "mxc" in first and (text := difference(first["mxc"], first[peer])):
                    raise RuntimeError(f"another result than mxc: {text}")
                cold.times[peer] = [seconds]
                warm.times[peer] = [once(peer, python, case, threads, cache)[0] for _ in range(rounds)]
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                warm.failures[peer] = str(error)[:600]
    return {"cold start": cold, "warm start": warm}
