"""Interleaved measurement of one case by several peers; compares results, corrects the drift of the machine.

Drift is what all peers see in the same round. A peer's own anchor, half a millisecond, may meet a disturbance that its
case did not: correcting by it alone once made a quarter out of nothing. So a round is corrected by the median of all
anchors in it, for medians only; the least time of all rounds is taken as it was measured."""
from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from harness.worker import Stopped, Worker

TOLERANCE = 1e-3  # of the largest absolute value
FLOOR = 1e-3  # of the largest value of all outputs: below it an output's own size is no measure
BLOCK = 0.03  # seconds that one timing takes at least, by repetition
Output = tuple[list[int], float, list[float]]  # shape, largest absolute value, samples


@dataclass
class Result:
    """Of one case: every peer's times in seconds, one a round, and why a peer has none."""

    times: dict[str, list[float]] = field(default_factory=dict)  # as measured
    corrected: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)  # seconds of making the case and running it once
    reasons: dict[str, str] = field(default_factory=dict)  # peer: why it did not take part
    failures: dict[str, str] = field(default_factory=dict)  # peer: what went wrong


def corrected(times: dict[str, list[float]], anchors: dict[str, list[float]]) -> dict[str, list[float]]:
    """Each peer's times as they would be if all rounds had been as fast as the median one.

    `anchors` holds, like `times`, one number for each peer and round: the time of the same work.
    """
    rounds = [statistics.median(together) for together in zip(*(anchors[name] for name in times), strict=True)]
    base = statistics.median(rounds) if rounds else 0.0
    return {name: [s * base / a for s, a in zip(seconds, rounds, strict=True)] for name, seconds in times.items()}


def difference(ours: Sequence[Output | np.ndarray], theirs: Sequence[Output | np.ndarray],
               tolerance: float = TOLERANCE) -> str:
    """In what two results differ, or "". Each output is an Output, or all of it as an array.

    An output that is nothing but rounding (the gradient of a key's bias in attention) is held to the largest of all.
    """
    if len(ours) != len(theirs):
        return f"{len(theirs)} outputs, not {len(ours)}"
    found, right = [*map(_facts, ours)], [*map(_facts, theirs)]
    floor = FLOOR * max((largest for _, largest, _ in right), default=0.0)
    for i, ((shape, _, a), (other, largest, b)) in enumerate(zip(found, right, strict=True)):
        if math.prod(shape) != math.prod(other):
            return f"output {i} has shape {tuple(other)}, not {tuple(shape)}"
        with np.errstate(invalid="ignore"):
            worst = float(np.max(np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - b), math.inf), initial=0))
        if not worst <= tolerance * max(largest, floor):
            return f"output {i} is off by {worst:.3g}, with values up to {largest:.3g}"
    return ""


def _facts(output: Output | np.ndarray) -> tuple[Sequence[int], float, np.ndarray]:
    """Shape, largest absolute value, and values."""
    if isinstance(output, np.ndarray):
        values = output.ravel().astype(np.float64)
        return output.shape, float(np.max(np.abs(values), initial=0)), values
    shape, largest, samples = output
    return shape, largest, np.array(samples, np.float64)


def measure(workers: list[Worker], case: Path, rounds: int, budget: float, tolerance: float = TOLERANCE) -> Result:
    """The case's times by every peer that computes what mxc does.

    Every round asks each peer once, in an order that turns; there are fewer rounds (but three) when `rounds` would
    take more than `budget` seconds.
    """
    result, found = Result(), {}
    for worker in workers:
        answer = _ask(worker, result, do="load", case=str(case))
        if answer is None:
            continue
        if "unsupported" in answer:
            result.reasons[worker.name] = answer["unsupported"]
            continue
        found[worker.name] = answer["outputs"]
        result.first[worker.name] = answer["seconds"]
    for name in list(found):
        if "mxc" in found and (text := difference(found["mxc"], found[name], tolerance)):
            result.failures[name] = f"another result than mxc: {text}"
            del found[name]
    runs: dict[str, int] = {}
    pilot = 0.0
    for worker in [w for w in workers if w.name in found]:
        answer = _ask(worker, result, do="time", runs=1)
        if answer is not None:
            runs[worker.name] = max(1, min(1000, math.ceil(BLOCK / answer["seconds"])))
            pilot += (runs[worker.name] + 1) * answer["seconds"]
    here = [w for w in workers if w.name in runs]
    anchors: dict[str, list[float]] = {w.name: [] for w in here}
    result.times = {w.name: [] for w in here}
    for turn in range(max(3, min(rounds, int(budget / max(pilot, 1e-9))))):
        for worker in here[turn % len(here):] + here[:turn % len(here)] if here else []:
            if worker.name in result.failures:
                continue
            answer = _ask(worker, result, do="time", runs=runs[worker.name])
            if answer is not None:
                result.times[worker.name].append(answer["seconds"])
                anchors[worker.name].append(answer["anchor"])
    result.times = {name: times for name, times in result.times.items() if name not in result.failures}
    result.corrected = corrected(result.times, anchors)
    return result


def _ask(worker: Worker, result: Result, **request: object) -> dict | None:
    """The answer, or None after a failure, which goes into the result."""
    try:
        answer = worker.ask(**request)
    except Stopped as reason:
        answer = {"failed": str(reason)}
    if "failed" in answer:
        result.failures[worker.name] = answer["failed"]
        return None
    return answer
