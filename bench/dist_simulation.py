"""A step of many workers by a model: messages, bytes, time, and what saturates first. Printed by dist.py --simulate.

The layout of values is the kvstore's own (`frontend/kvstore/parts.py`), and so are the sizes of messages. Workers and
servers have a machine each. All workers compute the same at the same time; gradients are finished evenly over the
backward run, the last layer's first. A resource does one thing after the other: a network card in each direction, a
worker's and a server's processor. A message costs both processors MESSAGE seconds, and a server each byte that it sums
or sends.
"""
from __future__ import annotations

import math
from typing import NamedTuple

from mxc.kvstore.parts import LEAST, MOST, Spread, messages

FORWARD, BACKWARD = 0.10, 0.20  # seconds of a worker's step: ResNet-50, 64 pictures on a GPU
NETWORK = 25e9 / 8  # bytes per second of a network card, each way
LATENCY = 50e-6  # seconds
MESSAGE = 2e-3  # seconds of processor time of a message, at each end: Ray's calls and objects, 4 to 8 ms in all
SUM, COPY = 6e9, 5e9  # bytes per second that a server adds up, and that are copied to or from the object store


class Step(NamedTuple):
    """messages, bytes: that servers get and send in a step. seconds: of the step. busy: of each resource, the seconds
    that it works in a step."""

    messages: int
    bytes: float
    seconds: float
    busy: dict[str, float]


def step(shapes: list[tuple[int, ...]], workers: int, servers: int) -> Step:
    """One step of synchronous training."""
    spread = Spread(servers)
    layouts = [spread.layout(i, shape, "float32", False) for i, shape in enumerate(shapes)]
    sizes = [4 * math.prod(shape) for shape in shapes]
    batches: list[tuple[float, dict[int, int]]] = []  # when it is finished, and its bytes on each server
    done, first, total = 0, len(shapes), sum(sizes)
    for i in range(len(shapes) - 1, -1, -1):
        done += sizes[i]
        held = sum(sizes[i:first])
        if held >= LEAST or i == 0 or held + sizes[i - 1] > MOST:
            on = {server: sum(layouts[p.key].row_bytes() * (p.end - p.begin) for p in parts) for server, parts in
                  messages([p for layout in layouts[i:first] for p in layout.parts]).items()}
            batches.append((FORWARD + BACKWARD * done / total, on))
            first = i
    ends: dict[tuple[str, int], float] = {}
    used: dict[tuple[str, int], float] = {}

    def work(resource: str, start: float, seconds: float, server: int = -1) -> float:
        place = resource, server
        used[place] = used.get(place, 0.0) + seconds
        ends[place] = max(start, ends.get(place, 0.0)) + seconds
        return ends[place]

    last, count, moved = 0.0, 0, 0.0
    for ready, on in batches:
        for server, size in on.items():
            sent = work("worker's processor, sending", ready, MESSAGE + size / COPY)
            left = work("worker's network, out", sent, size / NETWORK)
            came = work("server's network, in", left + LATENCY - size / NETWORK, workers * size / NETWORK, server)
            summed = work("server's processor", came, workers * (2 * MESSAGE + size / SUM + size / COPY), server)
            out = work("server's network, out", summed, workers * size / NETWORK, server)
            back = work("worker's network, in", out + LATENCY - size / NETWORK, size / NETWORK)
            last = max(last, work("worker's processor, receiving", back, MESSAGE + size / COPY))
            count += workers
            moved += 2.0 * workers * size
    busy: dict[str, float] = {}
    for (resource, _), seconds in used.items():  # of servers the busiest one
        busy[resource] = max(busy.get(resource, 0.0), seconds)
    return Step(count, moved, max(last, FORWARD + BACKWARD), busy)


def report(shapes: list[tuple[int, ...]], workers: int) -> None:
    """Print steps of up to so many workers, with as many servers as workers, a quarter, and 8."""
    print(f"model: forward {FORWARD * 1e3:.0f} ms, backward {BACKWARD * 1e3:.0f} ms; network "
          f"{NETWORK * 8 / 1e9:.0f} Gbit/s each way, latency {LATENCY * 1e6:.0f} us; a message {MESSAGE * 1e3:.1f} ms "
          f"of processor at each end; servers sum {SUM / 1e9:.0f} GB/s and copy {COPY / 1e9:.0f} GB/s")
    print(f"{'workers':>7} {'servers':>7} {'messages':>9} {'GB':>8} {'step ms':>8} {'efficiency':>10}  "
          "busiest, share of the step")
    count = 1
    while count <= workers:
        for servers in sorted({count, max(1, count // 4), min(8, count)}):
            found = step(shapes, count, servers)
            name = max(found.busy, key=found.busy.__getitem__)
            print(f"{count:>7} {servers:>7} {found.messages:>9,} {found.bytes / 1e9:>8.2f} {found.seconds * 1e3:>8.0f} "
                  f"{(FORWARD + BACKWARD) / found.seconds:>10.0%}  {name}, {found.busy[name] / found.seconds:.0%}")
        count *= 4
    found = step(shapes, workers, workers)
    print(f"with {workers} workers and as many servers, seconds of a step in which each works: " + ", ".join(
        f"{name} {seconds:.3f}" for name, seconds in sorted(found.busy.items(), key=lambda pair: -pair[1])))
    name = max(found.busy, key=found.busy.__getitem__)
    print(f"what saturates first: the {name}")
