"""A peer's process, as the one who measures sees it."""
from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
from pathlib import Path

from harness.environments import home

SERVE = Path(__file__).parents[1] / "peers" / "serve.py"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MXC_NUM_THREADS", "NUMEXPR_NUM_THREADS", "MKL_NUM_THREADS",
                    "OPENBLAS_NUM_THREADS")
# What would make a peer's BLAS slower than it is.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
LIMIT = 900.0  # seconds for one answer; the longest is to compile a network


class Stopped(Exception):
    """The peer's process ended, or did not answer in time; the text is what it said last."""


def environment(threads: int) -> dict[str, str]:
    """The variables of a peer's process that has `threads` threads."""
    variables = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)),
                 "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(home() / "inductor"),
                 "OPENVINO_TELEMETRY_ENABLE": "0"}
    if threads == 1:
        variables["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return {name: text for name, text in variables.items() if name not in UNSET}


def cpus(threads: int) -> list[int]:
    """The CPUs that processes of so many threads get: the same for all."""
    return sorted(os.sched_getaffinity(0))[:threads]


def confine(chosen: list[int]) -> None:
    """For a new process: those CPUs alone, and no life without its parent (a halted process would not notice)."""
    os.sched_setaffinity(0, chosen)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Worker:
    """A peer with `threads` threads on as many CPUs. It is halted whenever it has nothing to answer, so that threads
    which wait by spinning take no time from the others."""

    def __init__(self, name: str, python: str, threads: int):
        self.name, self.python, self.threads = name, python, threads
        self.versions: dict[str, str] = {}
        self.missing = ""
        self.start()

    def start(self) -> None:
        """Starts the process; `missing` says why the peer cannot take part."""
        folder = home() / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{self.name}-{self.threads}.txt"
        chosen = cpus(self.threads)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [self.python, str(SERVE), self.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env=environment(self.threads), preexec_fn=lambda: confine(chosen))
        self.buffer = b""
        try:
            first = self._answer()
        except Stopped as reason:
            first = {"missing": str(reason)}
        self.missing, self.versions = first.get("missing", ""), first.get("versions", {})

    def ask(self, **request: object) -> dict:
        """The answer to a request. Raises Stopped, and has started the process anew, when there is none."""
        assert self.process.stdin is not None
        try:
            self.process.send_signal(signal.SIGCONT)
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            return self._answer()
        except (Stopped, BrokenPipeError) as reason:
            self.close()
            self.start()
            raise Stopped(str(reason)) from None

    def _answer(self) -> dict:
        assert self.process.stdout is not None
        file = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([file], [], [], LIMIT)
            data = os.read(file, 1 << 16) if ready else b""
            if not data:
                self.process.kill()
                code = self.process.wait()
                lines = self.log.read_text(errors="replace").strip().splitlines()
                why = f"ended with {code}" if ready else f"no answer in {LIMIT:.0f} s"
                raise Stopped(f"{why}: {' | '.join(lines[-3:])}"[:600])
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
