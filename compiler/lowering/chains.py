"""Chains: pointwise and depthwise convolutions that follow each other run band by band of rows.

A network for phones makes an array of many channels by a 1x1 convolution, filters it by a depthwise one, and adds it up
to few channels by another 1x1 convolution. The large arrays in between would go through memory. In a chain, a band of
rows passes through all of these kernels before the next: what the depthwise convolution reads lies in a ring of rows,
what it writes in an array of a band's rows.

An image is cut into a few segments, which threads take; at their borders, rows that both sides need are made twice.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mxc.compiler.graph.graph import NOWHERE
from mxc.compiler.graph.phases import FORWARD
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.calls import coefficients, linear
from mxc.compiler.kernel.geometry import BlockedConvolution, BlockedDepthwise, Geometry, Window
from mxc.compiler.kernel.ir import CallKernel, ChainKernel, Place, Store
from mxc.compiler.lowering.launches import Launch, Storage
from mxc.compiler.lowering.stage import lowering_stage

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Chains, Preferences

ChainCall = tuple[CallKernel, tuple[Place, ...]]


@dataclass
class _Stage:
    """A kernel of a chain."""

    launch: Launch
    kernel: CallKernel
    geometry: BlockedConvolution[int] | BlockedDepthwise[int]  # the geometry of `kernel`
    source: int | None = None  # the number of the private array that it reads; None: it reads a storage
    target: int | None = None  # the number of the private array that it writes; None: it writes its storages
    rows: int = 0  # rows of the target, which is a ring of rows if a depthwise convolution reads it

    @cached_property
    def stores(self) -> tuple[Store, ...]:
        """The stores of the kernel, or a single store to the target."""
        if self.target is None:
            return self.kernel.stores
        index = linear({1: self.rows * self.line, 2: 1, 3: self.lanes})
        return (Store(self.kernel.stores[0].buffer, index, self.kernel.stores[0].value),)

    @property
    def window(self) -> Window[int]:
        return self.geometry.window

    @property
    def depthwise(self) -> bool:
        return isinstance(self.geometry, BlockedDepthwise)

    @property
    def lanes(self) -> int:
        return self.geometry.block

    @property
    def line(self) -> int:
        """Elements of a row of one block of the result."""
        return self.window.out[2] * self.lanes

    @property
    def channels(self) -> int:
        return self.window.groups * self.window.filters

    def needed(self, first: int, last: int) -> tuple[int, int]:
        """The rows of the data that the output rows first <= h < last read."""
        w = self.window
        begin = first * w.stride[1] - w.pad[1]
        end = (last - 1) * w.stride[1] - w.pad[1] + (w.kernel[1] - 1) * w.dilate[1] + 1
        return max(0, begin), min(w.data[1], end)

    def most_needed(self, rows: int) -> int:
        """The most rows of the data that `rows` neighbouring output rows read."""
        w = self.window
        return min(w.data[1], (rows - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilate[1] + 1)


@lowering_stage(needs=("launches", "prefers"))
def chains(launches: Sequence[Launch], prefers: Preferences) -> list[Launch]:
    """Joins pointwise and depthwise convolutions that follow each other: one launch, over bands of rows."""
    if prefers.chains is None:
        return list(launches)
    readers: dict[Storage, list[Launch]] = {}
    for launch in launches:
        for storage in set(launch.reads):
            readers.setdefault(storage, []).append(launch)
    writer = {s: launch for launch in launches for s in launch.writes}
    taken: dict[int, Launch | None] = {}  # id() of a launch in a chain -> the chain at its last launch, None at others
    for launch in launches:
        if id(launch) in taken or not _is_stage(launch, BlockedDepthwise):
            continue
        parts = [launch]
        before = writer.get(launch.storages[0])
        if before is not None and _passes(before, launch, readers) and _is_stage(before, BlockedConvolution):
            parts.insert(0, before)
        after = readers.get(launch.writes[0], [])
        if after and _passes(launch, after[0], readers) and _is_stage(after[0], BlockedConvolution):
            parts.append(after[0])
        if len(parts) > 1 and not any(id(part) in taken for part in parts) and _undisturbed(parts, launches):
            made = _chain(parts, prefers.chains)
            if made is not None:
                taken |= {**dict.fromkeys(map(id, parts[:-1])), id(parts[-1]): made}
    return [each for launch in launches if (each := taken.get(id(launch), launch)) is not None]


def _is_stage(launch: Launch, template: type[BlockedConvolution | BlockedDepthwise]) -> bool:
    """Whether a band of rows of `launch` can be made alone: pointwise or depthwise, in two dimensions, of float32."""
    kernel = launch.kernel
    if not isinstance(kernel, CallKernel) or launch.phase != FORWARD:
        return False
    g = kernel.geometry
    if not isinstance(g, template) or set(kernel.buffers) != {"float32"} or not g.flat or _steps(kernel) is None:
        return False
    w = g.window
    if isinstance(g, BlockedDepthwise):
        reach = (w.kernel[1] - 1) * w.dilate[1] + 1
        return w.out[0] == w.data[0] == w.kernel[0] == 1 and w.pad[1] < reach and w.out[1] > 0
    return w.groups == 1 and not g.copied and {*w.kernel, *w.stride} == {1} and w.out[0] == 1


def _passes(before: Launch, after: Launch, readers: dict[Storage, list[Launch]]) -> bool:
    """Whether all that `before` makes is the data of `after`, and nobody else reads it."""
    made = before.writes
    return (len(made) == 1 and made[0].pool == "arena" and readers.get(made[0]) == [after]
            and after.storages.count(made[0]) == 1 and after.storages[0] is made[0]
            and isinstance(before.kernel, CallKernel) and [s.mode for s in before.kernel.stores] == ["write"])


def _undisturbed(parts: Sequence[Launch], launches: Sequence[Launch]) -> bool:
    """Whether nothing that the chain reads is written between its first kernel and its last."""
    between = launches[launches.index(parts[0]) : launches.index(parts[-1])]
    others = [launch for launch in between if launch.phase == FORWARD and launch not in parts]
    read = {s for part in parts for s in part.reads}
    return not any(s in read for launch in others for s in launch.writes)


def _steps(kernel: CallKernel) -> dict[int, tuple[int, int]] | None:
    """For each buffer of the epilogue, the distance in elements from image to image and from pixel to pixel. None where
    a buffer's loads and stores differ in these, and where a value is computed from an index."""
    found: dict[int, tuple[int, int]] = {}
    values = [v for v in ir.walk(s.value for s in kernel.stores) if v.dtype != ir.INDEX]
    if any(v.op != "load" and a.dtype == ir.INDEX for v in values for a in v.args):
        return None
    accesses = [(v.data, v.args[0]) for v in values if v.op == "load"]
    for buffer, index in [*accesses, *((s.buffer, s.index) for s in kernel.stores)]:
        factors = coefficients(index)[0]
        steps = factors.get(0, 0), factors.get(3, 0)
        if found.setdefault(buffer, steps) != steps:
            return None
    return found if all(i >= kernel.operands for i in found) else None


def _chain(parts: Sequence[Launch], figures: Chains) -> Launch | None:
    """One launch of a chain for the launches `parts`, each of which reads the result of the one before it; None if that
    does not pay."""
    stages = [_Stage(part, part.kernel, part.kernel.geometry) for part in parts
              if isinstance(part.kernel, CallKernel)
              and isinstance(part.kernel.geometry, BlockedConvolution | BlockedDepthwise)]
    images, (_, height, _) = stages[-1].window.batch, stages[-1].window.out
    through = sum(part.writes[0].nbytes for part in parts[:-1])
    if through < figures.worthwhile_bytes:
        return None
    most = figures.private_bytes
    band = next((rows for rows in range(height, 0, -1) if _private_bytes(stages, rows) <= most), 0)
    if not band:
        return None
    for i, (stage, after) in enumerate(itertools.pairwise(stages)):
        stage.target = after.source = i
        stage.rows = _rows_between(stages, i, band)
    count = max(1, min(-(-figures.units // images), height // figures.segment_rows))
    bounds = [height * i // count for i in range(count + 1)]
    storages = list(dict.fromkeys(s for part in parts for s in part.storages
                                  if s not in [each.writes[0] for each in parts[:-1]]))
    segments = tuple(_Segment(stages, storages).calls(first, last, band)
                     for first, last in itertools.pairwise(bounds))
    private = tuple(stage.rows * stage.window.out[2] * stage.channels for stage in stages[:-1])
    label = " > ".join(part.label for part in parts)
    kernel = ChainKernel(label, ("float32",) * len(storages), images, private, segments)
    origin = NOWHERE.union(*(part.origin for part in parts))
    return Launch(FORWARD, label, kernel, storages, origin=origin)


def _rows_between(stages: Sequence[_Stage], position: int, band: int) -> int:
    """How many rows the array that stage `position` writes needs where a band has `band` rows of the last stage."""
    for stage in reversed(stages[position + 1 :]):
        band = stage.most_needed(band)
    return band


def _private_bytes(stages: Sequence[_Stage], band: int) -> int:
    return sum(4 * _rows_between(stages, i, band) * stage.window.out[2] * stage.channels
               for i, stage in enumerate(stages[:-1]))


class _Segment:
    """Makes the calls of one segment. done: for each stage, the first row that is still to be made."""

    def __init__(self, stages: Sequence[_Stage], storages: Sequence[Storage]):
        self.stages, self.storages = stages, list(storages)
        self.done: list[int | None] = [None] * len(stages)
        self.made: list[ChainCall] = []

    def calls(self, first: int, last: int, band: int) -> tuple[ChainCall, ...]:
        """The calls that make the output rows first <= h < last of the chain, band after band."""
        count = -(-(last - first) // band)
        bounds = [first + (last - first) * i // count for i in range(count + 1)]
        for begin, end in itertools.pairwise(bounds):
            self._make(len(self.stages) - 1, begin, end)
        return tuple(self.made)

    def _make(self, position: int, first: int, last: int) -> None:
        """Adds calls for the rows first <= h < last of a stage's result, except rows that were made before."""
        done, stage = self.done[position], self.stages[position]
        first = first if done is None else max(first, done)
        if first >= last:
            return
        if position:
            self._make(position - 1, *stage.needed(first, last))
        ring = stage.rows if position + 1 < len(self.stages) and self.stages[position + 1].depthwise else 0
        begin = first
        while begin < last:  # A ring is filled by several calls: none writes across the ring's end.
            end = min(last, (begin // ring + 1) * ring) if ring else last
            self.made.append(self._call(stage, begin, end, begin % ring if ring else begin - first, begin - first))
            begin = end
        self.done[position] = last

    def _call(self, stage: _Stage, first: int, last: int, slot: int, behind: int) -> ChainCall:
        """The call that makes output rows first <= h < last. slot: the row of the target where the first one goes.
        behind: how many rows of the same band earlier calls have made."""
        w, g, strides, rows = stage.window, stage.geometry, stage.geometry.data_strides, last - first
        begin, end = stage.needed(first, last)
        step, pad = strides[0], begin - first * w.stride[1] + w.pad[1] if stage.depthwise else 0
        ring_start, ring = 0, end - begin
        at = begin * strides[3]
        if stage.source is not None:
            before = self.stages[stage.source]
            strides, step, at = (0, before.rows * before.line, 0, before.line, stage.lanes), 0, behind * before.line
            if stage.depthwise:
                ring_start, ring, at = begin % before.rows, before.rows, 0
        window = replace(w, batch=1, data=(1, end - begin, w.data[2]), out=(1, rows, w.out[2]), pad=(0, pad, w.pad[2]))
        here: Geometry[int]
        if isinstance(g, BlockedDepthwise):
            here = replace(g, window=window, data_strides=strides, ring_start=ring_start, ring=ring)
        else:
            here = replace(g, window=window, data_strides=strides, alone=1)
        made = replace(stage.kernel, geometry=here, stores=stage.stores)
        return made, self._places(stage, at, step, first, slot)

    def _places(self, stage: _Stage, at: int, step: int, first: int, slot: int) -> tuple[Place, ...]:
        steps, width, external = _steps(stage.kernel), stage.window.out[2], len(self.storages)
        assert steps is not None
        places = []
        for i, storage in enumerate(stage.launch.storages):
            if i == 0:
                where = external + stage.source if stage.source is not None else self.storages.index(storage)
                places.append(Place(where, at, step))
            elif stage.target is not None and i == stage.kernel.stores[0].buffer:
                places.append(Place(external + stage.target, slot * stage.line))
            else:
                image, pixel = steps.get(i, (0, 0))
                places.append(Place(self.storages.index(storage), first * width * pixel, image))
        return tuple(places)
