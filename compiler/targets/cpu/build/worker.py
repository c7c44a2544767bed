"""Compiles kernels, here and in helper processes (LLVM's lock keeps threads from doing so).

What compiles a whole network does so in helpers alone, if this process has not loaded LLVM anyway: its library and what
it keeps are 90 to 110 MB, which go with the helpers.

A helper reads LLVM IR as lines of JSON from its standard input and answers each with a line: the object code, or that
there is none. What Numba is to compile comes as it is: Numba takes longer than LLVM, so that is the helper's work too.
A helper ends with its input, so that it never outlives its parent for long, however that ends.
"""
from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import MXNetError
from mxc.compiler.system import env, interrupts
from mxc.compiler.targets.cpu.build.codegen import NUMBA, numba_part

if TYPE_CHECKING:
    from mxc.compiler.targets.cpu.build.jobs import Job

SHARE = 3  # each process has at least so many kernels to compile; for fewer, starting another one is not worth it
MANY = 6  # so many kernels are compiled by helpers alone
SPEED = 3  # the level of LLVM's optimisation for typed sources; library kernels need none
Done = Callable[["Job", bytes], None]


def compile_jobs(jobs: Sequence[Job], cpu: str, features: str, done: Done, apart: bool = False) -> None:
    """Calls `done(job, code)` for each job as soon as its object code is there, never twice at once. Raises MXNetError
    naming the first kernel that does not compile. apart: have a helper compile even a few jobs, which happens once."""
    alone = (apart or len(jobs) >= MANY) and "llvmlite.binding" not in sys.modules
    count = min(env.num_threads(), len(jobs) // SHARE)
    waiting = sorted(jobs, key=lambda job: (job.language == "llvm", len(job.text)))  # the last is taken first
    turn = threading.Lock()
    helpers: list[subprocess.Popen[bytes]] = []
    threads: list[threading.Thread] = []
    failed: list[Job] = []

    def keep(job: Job, code: bytes) -> None:
        with turn:
            done(job, code)

    def serve(helper: subprocess.Popen[bytes]) -> None:
        while job := _next(waiting):
            code = _ask(helper, job, cpu, features)
            if code is None:  # what a helper could not do is done here, where an error can be raised
                failed.append(job)
                return
            keep(job, code)

    try:
        for _ in range(max(count, 1) if alone else count - 1):
            helpers.append(_start())  # one by one: an interrupt must find them
            threads.append(threading.Thread(target=serve, args=(helpers[-1],), daemon=True))
            threads[-1].start()
        while not alone and (job := _next(waiting)):
            keep(job, compile_here(job, cpu, features))
        for thread in threads:
            thread.join()
        while job := _next(failed) or _next(waiting):
            keep(job, compile_here(job, cpu, features))
    finally:
        for helper in helpers:
            helper.kill()
            helper.communicate()


def compile_here(job: Job, cpu: str, features: str) -> bytes:
    """The object code of one job. Raises MXNetError naming the kernel when it does not compile."""
    from mxc.compiler.targets.cpu.build.load import machine

    with interrupts.held():
        try:
            target = machine(cpu, features)
            return bytes(target.emit_object(module_of(job, target, features)))
        except MXNetError:  # a generator names the kernel, with its source
            raise
        except RuntimeError as error:
            raise MXNetError(f"kernel {job.name} does not compile: {error}\n{job.text}") from error


def module_of(job: Job, target: Any, features: str) -> Any:
    """The LLVM module of one job, ready for code generation by the `target` machine."""
    from mxc.compiler.targets.cpu.build.load import optimised

    if job.language == "typed" and job.generator == NUMBA:
        return numba_part("generate").module_of(job, target, features)
    text, speed, short = _ir_of(job, features)
    return optimised(text, target, speed, short, job.functions)


def _ir_of(job: Job, features: str) -> tuple[str, int, bool]:
    """LLVM IR of a job that is not Numba's, and how it is to be optimised (see load.optimised)."""
    if job.language == "llvm":
        return job.text, 0, False
    from mxc.compiler.targets.cpu.emit.interleave import interleaved
    from mxc.compiler.targets.cpu.emit.translate import translated

    text = translated(job, features)
    return text if job.short else interleaved(text), SPEED, job.short


def _next(jobs: list[Job]) -> Job | None:
    try:
        return jobs.pop()
    except IndexError:
        return None


def _start() -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path[:] = {sys.path!r}; from mxc.compiler.targets.cpu.build.worker import main; main()"
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)


def _ask(helper: subprocess.Popen[bytes], job: Job, cpu: str, features: str) -> bytes | None:
    """The code of `job` from a helper; None when the helper has none, or has ended."""
    assert helper.stdin is not None and helper.stdout is not None
    try:
        work = asdict(job) if job.generator == NUMBA else [*_ir_of(job, features), job.functions]
        helper.stdin.write(json.dumps([work, cpu, features]).encode() + b"\n")
        helper.stdin.flush()
        answer = helper.stdout.readline()
    except (OSError, ValueError, MXNetError):  # it was killed, or the job has no code
        return None
    return base64.b64decode(answer) if answer.endswith(b"\n") and answer.strip() else None


def main() -> None:
    """What a helper process runs. It imports LLVM and little else."""
    import os
    import signal

    from mxc.compiler.targets.cpu.build.load import machine, optimised

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent ends its helpers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Numba prints what a user's settings ask it for
    for line in sys.stdin.buffer:
        work, cpu, features = json.loads(line)
        try:
            target = machine(cpu, features)
            if isinstance(work, dict):
                from mxc.compiler.targets.cpu.build.jobs import Job

                module = module_of(Job(**work), target, features)
            else:
                text, speed, short, functions = work
                module = optimised(text, target, speed, short, functions)
            code = bytes(target.emit_object(module))
        except (RuntimeError, MXNetError):
            code = b""
        answers.write(base64.b64encode(code) + b"\n")
        answers.flush()
