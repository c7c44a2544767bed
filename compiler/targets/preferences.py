"""The figures that passes and stages decide by. Each target gives its own (`KernelTarget.prefers`).

A figure belongs here when it was measured on one kind of machine: what a launch costs, what fits its caches, at which
size another kind of kernel becomes faster. Results do not depend on the figures, except for the order of sums and for
Winograd's rounding. Bounds of the compiler itself, such as the nodes of a group, are constants where they are used.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxc.compiler.kernel.ir import CallKernel


@dataclass(frozen=True)
class Blocks:
    """When convolutions that stand alone, so that arrays would be turned into blocks of channels for them and back,
    stay plain (passes/blocked.py).

    map_pixels: a depthwise convolution stays plain if each image's result has more than so many pixels; 784 keeps maps
    of up to 28 x 28 in blocks. data_elements: it also stays plain if its data have at least so many elements. waste:
    another one stays plain if `Planes` fit and `plane_waste` of kernel/plain.py is at most so much, or if `Filters`
    fit. full: filters are filled up with zeros to whole blocks if they are at least this share of these; 40 filters in
    3 blocks of 16 are 0.83 of them.
    """

    map_pixels: int
    data_elements: int
    waste: float
    full: float


@dataclass(frozen=True)
class WinogradCosts:
    """What Winograd's F(4x4, 3x3) costs, in multiply-adds of the direct kernel's (passes/winograd.py); only their
    relations matter.

    transform: the cost of transforming one channel of a tile of data, or one filter of a tile of results. weight: the
    cost of reading one weight. gain: Winograd's way is taken if the direct way costs at least so many times as much;
    for less, it is not worth its rounding. kept_bytes, kept_tiles: weights are transformed once, and kept
    so, if they take at most so many bytes then and an image has more than so many tiles; others are transformed in each
    run, once for each band of tiles. bands: so many bands of tiles give threads enough to do; where there
    are fewer, the data's side is a launch of its own (lowering/split_winograd.py). line_bytes: the size of a cache
    line; the places of transformed data lie an odd number of lines apart. band: about how many tiles a band has at
    least and at most; they share their transformed data. Between these, a band has a tile for each band_kernels kernels
    of the weights (channels x filters), all of which it reads: for 64 x 512 kernels it has 32768 / 1024 = 32 tiles.
    """

    transform: int
    weight: int
    gain: float
    kept_bytes: int
    kept_tiles: int
    bands: int
    line_bytes: int
    band: tuple[int, int]
    band_kernels: int


@dataclass(frozen=True)
class TrainingWinograd:
    """What Winograd's F(4x4, 3x3) over plain arrays costs, in multiply-adds of the direct kernels (passes/winograd.py):
    for convolutions of training plans, and their gradients.

    transform: the cost of transforming one channel of a tile, of data or results. weight: the cost of transforming one
    kernel, or its gradient. far_weight: that where the transformed weight has more than cache_bytes, so that memory
    takes it and gives it back. gain: Winograd's way is taken if the direct way costs at least so many times as much.
    most_bytes: the transformed tiles of an array have at most so many bytes, for the memory's sake.
    """

    transform: int
    weight: int
    far_weight: int
    cache_bytes: int
    gain: float
    most_bytes: int


@dataclass(frozen=True)
class Panels:
    """Which plain convolutions with packed weights are computed image by image, by panels of pixels (`fits_panels` of
    kernel/plain.py).

    fewest_pixels: an image's result has at least so many pixels; smaller maps fill panels with pixels of several
    images. longest_row: a row of the result has at most so many pixels, unless the kernel is pointwise: then it may
    have any number. few_channels: for kernels of several taps, a group has at most so many channels; what the taps of
    many channels read is better packed at once.
    """

    fewest_pixels: int
    longest_row: int
    few_channels: int


@dataclass(frozen=True)
class Planes:
    """Which plain convolutions with packed weights, and gradients to the data, have all taps read one copy of the data
    (`fits_planes` of kernel/plain.py).

    fewest_pixels: an image's result has at least so many pixels. filled: of the pixels that are counted through, at
    least this share are results; rows of 28 with 3 x 3 taps, for which 30 are counted, have 0.93. row_bytes: what one
    row of results reads takes at most so many bytes.
    """

    fewest_pixels: int
    filled: float
    row_bytes: int


@dataclass(frozen=True)
class Filters:
    """Which convolutions as those of `Planes` have vectors of filters in place of pixels (`filter_block` of
    kernel/plain.py), where the filters fill these.

    fewest_pixels: an image's result has at least so many pixels. shortest_sum: of so many products at least; 3 x 3 over
    8 channels are 72. row_bytes: what one row of results reads takes at most so many bytes.
    """

    fewest_pixels: int
    shortest_sum: int
    row_bytes: int


@dataclass(frozen=True)
class Products:
    """What products of matrices read in place, and which are products of vectors (`gemm` of kernel/calls.py).

    The operand whose depth lies together is read in place, without being packed, in two cases: if the smaller of the
    result's numbers of rows and columns is at most `few`, whatever the larger is; or if the smaller and the larger are
    at most the two numbers of `moderate`. With 767 and (1024, 3072), results of 700 x 9000 and 1000 x 3000 have it read
    in place, and 1000 x 4000 has it packed. at_once: each (rows, columns, elements) says that up to `rows` rows are
    computed in one pass over the other matrix if that has at least so many columns and elements: with (4, 2, 2^18), 4
    rows times 512 x 512 are, and 5 rows are not.
    """

    few: int
    moderate: tuple[int, int]
    at_once: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Packing:
    """How plain convolutions and their gradients read their weights (passes/layout.py).

    few_pixels: a weight that changes in every run is not packed if the results of all images have at most so many
    pixels: these read it hardly more than once. The other figures say where neighbouring images are computed at once,
    if the batch fills vectors: on maps of up to point_map pixels for kernels of one tap and up to window_map pixels for
    others (400 are 20 x 20), and, where `Planes` do not fit, on maps of any size where a group has up to few_channels
    channels, or filters.
    """

    few_pixels: int
    point_map: int
    window_map: int
    few_channels: int


@dataclass(frozen=True)
class Recomputing:
    """Which values that the forward part stores the backward part computes again (passes/recompute.py).

    worth_bytes: a value of at least so many bytes is computed again; for a smaller one, another kernel costs more than
    the memory is worth. most_nodes: at most so many nodes are computed again for one such value.
    """

    worth_bytes: int
    most_nodes: int


@dataclass(frozen=True)
class Spreading:
    """When a reduction shares its kernel with what reads its results at every point again, as softmax does
    (lowering/fuse_forms.py).

    In a space of more than small_space points it does so only if at least fewest_rows rows are reduced: threads divide
    up such a kernel by rows, while a reduction alone is divided within a row too.
    """

    fewest_rows: int
    small_space: int


@dataclass(frozen=True)
class Reductions:
    """Which reductions become two launches, of parts and of their results (lowering/split_reduction.py).

    A reduction is divided if it has fewer than `few` results, each of at least `long` elements. part: a part has about
    so many elements; with 8192, the sum of 2^20 elements has 128 parts.
    """

    few: int
    long: int
    part: int


@dataclass(frozen=True)
class Depths:
    """Which products are divided along their depth (lowering/split_depth.py).

    tile: the rows and columns of a result that one block of threads computes at a time. few: a product of fewer tiles
    is divided, so that in all its parts there are about `blocks` of them. part: a part has at least so much of the
    depth, and a multiple of `step`; the sum of 2048 products has at most 8 parts with 256. whole: which kernels stay
    whole anyway, since somebody else computes them. apart: whether somebody else computes a kernel of a bare product,
    so that what an epilogue does is better a launch of its own.
    """

    tile: tuple[int, int]
    few: int
    blocks: int
    part: int
    step: int
    whole: Callable[[CallKernel], bool] = lambda kernel: False
    apart: Callable[[CallKernel], bool] = lambda kernel: False


@dataclass(frozen=True)
class Joins:
    """How concatenations are divided into their parts (lowering/split_joins.py). shortest: a part has at least so many
    points; fewer are not worth a launch."""

    shortest: int


@dataclass(frozen=True)
class Chains:
    """Which convolutions that follow each other run band by band in one launch (lowering/chains.py).

    private_bytes: for one band, the arrays between them have at most so many bytes: a part of the cache that each core
    has for itself. worthwhile_bytes: a chain is made if at least so many bytes would pass between them through memory:
    about what the cache that all cores share has room for. units: a chain has at least so many units of work, if its
    images have enough rows. segment_rows: where an image is divided, each part has at least so many rows, because rows
    at the borders are computed twice.
    """

    private_bytes: int
    worthwhile_bytes: int
    units: int
    segment_rows: int


@dataclass(frozen=True)
class Loops:
    """That loops are steps of plans (plan.Loop), which the target's launcher runs; else they are host steps. It has no
    figures."""


@dataclass(frozen=True)
class Pairs:
    """That convolutions of bfloat16 in blocks multiply pairs of channels (`blocked_convolution` of kernel/calls.py). It
    has no figures."""


@dataclass(frozen=True)
class Tiles:
    """That convolutions and products of bfloat16 and of numbers of 8 bits are computed by tiles (`tiled_convolution` of
    kernel/calls.py). words: 32 bits each, of a tile's row."""

    words: int

    def depth(self, words: int) -> int:
        """How many words a tile's row has where a product's depth has `words`: as many as divide it; 0 where they would
        fill less than half of it, though the depth has more."""
        depth = next((n for n in range(self.words, 0, -1) if words % n == 0), 0) if words else 0
        return depth if 2 * depth >= self.words or depth == words else 0


@dataclass(frozen=True)
class Preferences:
    """A target's figures. A field that is None says that the target does not want that transformation.

    Blocks, WinogradCosts and TrainingWinograd also need a `KernelTarget.lanes` above 1; Packing, Panels, Planes
    and Filters need a register tile (`KernelTarget.tile`).
    """

    blocks: Blocks | None = None
    winograd: WinogradCosts | None = None
    training_winograd: TrainingWinograd | None = None
    packing: Packing | None = None
    panels: Panels | None = None
    planes: Planes | None = None
    filters: Filters | None = None
    products: Products | None = None
    recomputing: Recomputing | None = None
    spreading: Spreading | None = None
    reductions: Reductions | None = None
    depths: Depths | None = None
    joins: Joins | None = None
    chains: Chains | None = None
    loops: Loops | None = None
    pairs: Pairs | None = None
    tiles: Tiles | None = None
