"""Compiles kernels, here or in several processes (Numba's and LLVM's locks keep threads from doing so)."""
from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

from mxc.compiler import env, interrupts
from mxc.compiler.targets.cpu.jobs import Job

SHARE = 6  # kernels that are worth another process, which needs more than a second to import Numba


def compile_jobs(jobs: Sequence[Job], cpu: str, features: str) -> dict[str, bytes]:
    """Object code by symbol. Raises MXNetError naming the first kernel that does not compile."""
    shares = max(1, min(env.num_threads(), len(jobs) // SHARE))
    parts = [list(jobs[i::shares]) for i in range(shares)]
    helpers: list[subprocess.Popen[bytes]] = []
    try:
        for part in parts[1:]:
            helpers.append(_start(part, cpu, features))  # one by one: an interrupt must find them
        objects = compile_here(parts[0], cpu, features)
        for part, helper in zip(parts[1:], helpers, strict=True):
            answer, _ = helper.communicate()
            # what a helper could not do is done here, where an error can be raised
            objects |= _decoded(answer) if helper.returncode == 0 else compile_here(part, cpu, features)
    finally:
        for helper in helpers:
            if helper.poll() is None:
                helper.kill()
                helper.communicate()
    return objects


def compile_here(jobs: Sequence[Job], cpu: str, features: str) -> dict[str, bytes]:
    """As `compile_jobs`, in this process."""
    from mxc.compiler.targets.cpu.load import machine, optimised

    target = machine(cpu, features)
    objects: dict[str, bytes] = {}
    for job in jobs:
        with interrupts.held():
            if job.language == "llvm":
                objects[job.symbol] = target.emit_object(optimised(job.text, target, 0))
            else:
                from mxc.compiler.targets.cpu.compile import compile_source  # imports Numba

                objects[job.symbol] = compile_source(job, target, features)
    return objects


def _start(jobs: Sequence[Job], cpu: str, features: str) -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path[:] = {sys.path!r}; from mxc.compiler.targets.cpu.worker import main; main()"
    helper = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    request = {"jobs": [asdict(job) for job in jobs], "cpu": cpu, "features": features}
    assert helper.stdin is not None
    try:
        helper.stdin.write(json.dumps(request).encode())
        helper.stdin.close()
    except OSError:  # it died; its exit code says so
        pass
    helper.stdin = None
    return helper


def _decoded(answer: bytes) -> dict[str, bytes]:
    return {symbol: base64.b64decode(code) for symbol, code in json.loads(answer).items()}


def main() -> None:
    """A helper process: jobs as JSON on standard input, objects as JSON on standard output."""
    request = json.loads(sys.stdin.buffer.read())
    jobs = [Job(**{**job, "buffers": tuple(job["buffers"]), "scratch": tuple(map(tuple, job["scratch"]))})
            for job in request["jobs"]]
    objects = compile_here(jobs, request["cpu"], request["features"])
    answer = {symbol: base64.b64encode(code).decode() for symbol, code in objects.items()}
    sys.stdout.buffer.write(json.dumps(answer).encode())
