"""Lines of the table of bench/gpu.py, and times by turns."""
from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

ROUNDS, LEAST = 7, 0.05  # rounds of a comparison; seconds of a peer's turn
REHEARSED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
PEERS = ("torch", "torch.compile")
ALONE = {"kernel": "never", "library": "always"}  # of mxc, and what MXC_CUDA_LIBRARIES is then


@dataclass
class Row:
    """A line of the table. verdict: "ok", "WRONG", "FAILED" or "not reached". ms: of mxc, and of peers by name. note:
    a rate, or what went wrong."""

    part: str
    name: str
    verdict: str = "ok"
    ms: float | None = None
    peers: dict[str, float] = field(default_factory=dict)
    note: str = ""

    def line(self) -> str:
        ours = "" if self.ms is None else f"{self.ms:.3f}"
        ratios = "".join(f"{self.peers[p] / self.ms:>10.2f}" if self.ms and p in self.peers else f"{'-':>10}"
                         for p in (*ALONE, *PEERS))
        return f"{self.part:13}{self.name:38}{self.verdict:12}{ours:>10}{ratios}  {self.note}"


Check = tuple[str, Callable[[], Row]]  # a row's name, and what makes it


def timed(calls: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Seconds of a run of each, the median of rounds in which all have a turn."""
    counts, found = dict.fromkeys(calls, 1), {name: list[float]() for name in calls}
    for name, call in calls.items():
        call()  # torch records its CUDA graph in the second run
        start = time.perf_counter()
        call()
        if not REHEARSED:
            counts[name] = max(1, math.ceil(LEAST / max(time.perf_counter() - start, 1e-6)))
    for _ in range(1 if REHEARSED else ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            found[name].append((time.perf_counter() - start) / counts[name])
    return {name: statistics.median(times) for name, times in found.items()}
