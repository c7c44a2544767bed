"""Places boxes that are joined by arrows, from top to bottom, in layers.

A box lies below all boxes that its arrows come from. Arrows that pass layers are led through them in lanes; those from
one box, or those to one box, share a lane while they go the same way. Within each layer the order is chosen for few
crossings (each box at the mean of what it is joined to, in turns downwards and upwards), then the places for straight
arrows (least squares, the order kept).
"""
from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

GAP, LANE_GAP, LAYER_GAP = 22.0, 14.0, 30.0  # pixels between boxes, beside lanes, between layers
LANE = 2.0  # width of a lane
TURNS = 12
Point = tuple[float, float]


@dataclass
class Placing:
    """centres: x of each box's middle. tops: y of each box's top. arrows: for each pair, what its line passes: the
    lower end of the box, then pairs of the lower end of a layer and the upper end of the next. width, height: of
    everything."""

    centres: list[float]
    tops: list[float]
    arrows: list[list[Point]]
    width: float
    height: float


@dataclass
class _Layers:
    """Items are boxes, by their number, and lanes after them. up, down: items that each is joined to, a layer away."""

    widths: list[float]
    rank: list[int]
    rows: list[list[int]]
    up: list[list[int]] = field(default_factory=list)
    down: list[list[int]] = field(default_factory=list)

    def is_lane(self, item: int) -> bool:
        return self.widths[item] == LANE

    def distance(self, left: int, right: int) -> float:
        """Between the middles of neighbours."""
        gap = LANE_GAP if self.is_lane(left) or self.is_lane(right) else GAP
        return (self.widths[left] + self.widths[right]) / 2 + gap


def place(sizes: Sequence[Point], arrows: Sequence[tuple[int, int]]) -> Placing:
    """Where boxes of these widths and heights lie. arrows: (from, to), from a box to one with a higher number."""
    ranks = _ranks(len(sizes), arrows)
    layers, ways = _with_lanes(sizes, arrows, ranks)
    _order(layers)
    x = _spread(layers)
    heights = [max((sizes[i][1] for i in row if i < len(sizes)), default=0.0) for row in layers.rows]
    starts = [sum(heights[:r]) + LAYER_GAP * r for r in range(len(heights))]
    lines = []
    for way in ways:
        tops = [starts[layers.rank[item]] for item in way]
        line = [(x[way[0]], tops[0] + sizes[way[0]][1])]
        for upper, lower, top, below in zip(way, way[1:], tops, tops[1:], strict=False):
            line += [(x[upper], top + heights[layers.rank[upper]]), (x[lower], below)]
        lines.append(line)
    right = max((x[i] + w / 2 for i, w in enumerate(layers.widths)), default=0.0)
    tops = [starts[layers.rank[i]] for i in range(len(sizes))]
    return Placing(x[:len(sizes)], tops, lines, right, sum(heights) + LAYER_GAP * max(0, len(heights) - 1))


def _ranks(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each box: the first below all that it comes from; what comes from nothing, just above its use."""
    rank = [0] * count
    for start, end in sorted(arrows, key=lambda arrow: arrow[1]):
        rank[end] = max(rank[end], rank[start] + 1)
    nearest: dict[int, int] = {}
    for start, end in arrows:
        nearest[start] = min(rank[end], nearest.get(start, rank[end]))
    for box in set(range(count)) - {end for _, end in arrows}:
        rank[box] = nearest.get(box, 1) - 1
    return rank


def _with_lanes(sizes: Sequence[Point], arrows: Sequence[tuple[int, int]],
                ranks: list[int]) -> tuple[_Layers, list[list[int]]]:
    """The layers with their lanes, and the items that each arrow passes."""
    layers = _Layers([w for w, _ in sizes], list(ranks), [[] for _ in range(max(ranks, default=-1) + 1)])
    long = [(a, b) for a, b in arrows if ranks[b] - ranks[a] > 1]
    leaving, coming = Counter(a for a, _ in long), Counter(b for _, b in long)
    lanes: dict[tuple[str, int, int], int] = {}
    ways = []
    for start, end in arrows:
        key = ("to", end) if coming[end] > leaving[start] else ("from", start)
        way = [start]
        for rank in range(ranks[start] + 1, ranks[end]):
            if (*key, rank) not in lanes:
                lanes[*key, rank] = len(layers.widths)
                layers.widths.append(LANE)
                layers.rank.append(rank)
            way.append(lanes[*key, rank])
        ways.append([*way, end])
    layers.up, layers.down = [[] for _ in layers.widths], [[] for _ in layers.widths]
    for upper, lower in dict.fromkeys(pair for way in ways for pair in pairwise(way)):
        layers.down[upper].append(lower)
        layers.up[lower].append(upper)
    seen: set[int] = set()
    for box in range(len(sizes)):  # in depth first order, so that what belongs together starts together
        waiting = [box]
        while waiting:
            item = waiting.pop()
            if item not in seen:
                seen.add(item)
                layers.rows[layers.rank[item]].append(item)
                waiting += reversed(layers.down[item])
    return layers, ways


def _order(layers: _Layers) -> None:
    """Order each layer for few crossings; the best order of all turns stays."""
    best, fewest = [list(row) for row in layers.rows], _crossings(layers)
    for turn in range(TURNS):
        downwards = turn % 2 == 0
        near = layers.up if downwards else layers.down
        order = {item: float(i) for row in layers.rows for i, item in enumerate(row)}
        for row in layers.rows if downwards else reversed(layers.rows):
            keys = {i: sum(order[n] for n in near[i]) / len(near[i]) if near[i] else order[i] for i in row}
            row.sort(key=keys.__getitem__)
            order.update((item, float(i)) for i, item in enumerate(row))
        count = _crossings(layers)
        if count < fewest:
            best, fewest = [list(row) for row in layers.rows], count
    layers.rows = best


def _crossings(layers: _Layers) -> int:
    """How many pairs of arrows between neighbouring layers cross."""
    total = 0
    place = {item: i for row in layers.rows for i, item in enumerate(row)}
    for row in layers.rows:
        ends: list[int] = []
        for item in row:
            mine = sorted(place[n] for n in layers.down[item])
            total += sum(len(ends) - bisect_right(ends, end) for end in mine)
            for end in mine:
                insort(ends, end)
    return total


def _spread(layers: _Layers) -> list[float]:
    """x of each item's middle, the leftmost box at 0."""
    x = [0.0] * len(layers.widths)
    for row in layers.rows:
        for left, right in pairwise(row):
            x[right] = x[left] + layers.distance(left, right)
    for turn in range(4 * TURNS):
        downwards = turn % 2 == 0
        for row in layers.rows if downwards else reversed(layers.rows):
            _settle(layers, row, x, layers.up if downwards else layers.down)
    leftmost = min((x[i] - w / 2 for i, w in enumerate(layers.widths)), default=0.0)
    return [each - leftmost for each in x]


def _settle(layers: _Layers, row: list[int], x: list[float], near: list[list[int]]) -> None:
    """Move a layer's items towards the mean of what they are joined to on one side; distances and order are kept.

    Least squares with an order: items that would overlap move as one, at the mean of what they want.
    """
    shift, offsets = 0.0, []
    for i, item in enumerate(row):
        shift += layers.distance(row[i - 1], item) if i else 0.0
        offsets.append(shift)
    groups: list[tuple[float, float, int]] = []  # wanted place less offset, weight, how many items
    for item, offset in zip(row, offsets, strict=True):
        joined = near[item]
        straight = layers.is_lane(item) and any(layers.is_lane(n) for n in joined)
        wanted, weight = x[item] - offset, 0.05
        if joined:
            wanted, weight = sum(x[n] for n in joined) / len(joined) - offset, 4.0 if straight else 1.0
        groups.append((wanted, weight, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (a, p, m), (b, q, n) = groups[-2:]
            groups[-2:] = [((a * p + b * q) / (p + q), p + q, m + n)]
    places = [wanted for wanted, _, count in groups for _ in range(count)]
    for item, wanted, offset in zip(row, places, offsets, strict=True):
        x[item] = wanted + offset
