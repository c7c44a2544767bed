"""The figures that passes and stages decide by, of which each target gives its own (`KernelTarget.prefers`).

A figure belongs here when it was measured on one kind of machine: what a launch costs, what fits its caches, from where
on a kernel of another form is faster. Results do not depend on them, but for the order of sums and for Winograd's
rounding. Bounds of the compiler itself, such as the nodes of a group, are constants where they are used.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Blocks:
    """When convolutions that stand alone, so that arrays would be turned into blocks of channels for them and back,
    stay plain (passes/blocked.py).

    map_pixels: of a result's map, per image, beyond which a depthwise convolution stays plain: 784 keeps maps up to
    28 x 28 in blocks. data_elements: of its data, from which on it does too. few_taps: of a kernel over channels that
    do not fill blocks, up to which a convolution stays plain: 9 are 3 x 3. full: the share of the filters in the blocks
    that hold them, from which on missing filters are filled up with zeros: 40 filters in 3 blocks of 16 are 0.83.
    """

    map_pixels: int
    data_elements: int
    few_taps: int
    full: float


@dataclass(frozen=True)
class WinogradCosts:
    """What Winograd's F(4x4, 3x3) costs, in multiply-adds of the direct kernel's (passes/winograd.py); only their
    relations matter.

    transform: of a channel of a tile of the data, or of a filter of one of the results. weight: of reading one weight.
    gain: how many times the direct way's cost has to be this one's; of less the larger weights are not worth it.
    bands: of tiles that give threads enough to do; where there are fewer, the data's side is a launch of its own
    (lowering/split_winograd.py). line_bytes: what comes from memory together, of which places are an odd number apart.
    band: the tiles of a band, which share their transformed data, at least and at most, about. Where that leaves it
    open, a band has a tile for each band_kernels kernels of weights (channels x filters), all of which it reads: with
    64 x 512 kernels it has 32768 / 1024 = 32 tiles.
    """

    transform: int
    weight: int
    gain: float
    bands: int
    line_bytes: int
    band: tuple[int, int]
    band_kernels: int


@dataclass(frozen=True)
class Panels:
    """Which plain convolutions with packed weights are computed image by image, by panels of pixels (`fits_panels` of
    kernel/calls.py).

    fewest_pixels: of an image's result, at least: smaller maps fill panels with pixels of several images. longest_row:
    pixels of a row of it, at most, unless the kernel is pointwise: then a row may be of any length. few_channels: of a
    group, at most, for kernels of several taps: what many channels' taps read is better packed at once.
    """

    fewest_pixels: int
    longest_row: int
    few_channels: int


@dataclass(frozen=True)
class Products:
    """What products of matrices read in place, and which are products of vectors (`gemm` of kernel/calls.py).

    The operand whose depth lies together is read in place, without packing it, if the fewer of its rows and columns are
    `few` at most, whatever the others, or if the fewer and the more are at most the two `moderate` numbers: with 767
    and (1024, 3072) 700 x 9000 is read in place, and 1000 x 3000, and 1000 x 4000 is packed. at_once: (rows, columns,
    elements): so many rows, at most, are computed at once, in one pass over the other matrix, if that has so many
    columns and elements, at least: with (4, 2, 2^18) 4 rows times 512 x 512 are, and 5 rows times it are not.
    """

    few: int
    moderate: tuple[int, int]
    at_once: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Packing:
    """How plain convolutions and their gradients read their weights (passes/layout.py).

    few_pixels: of the results of all images, up to which a weight that changes in every run stays as it is: so few
    pixels read it hardly more than once. Neighbouring images are computed at once, where the batch fills vectors: on
    maps of up to point_map pixels for kernels of one tap, window_map for others (784 are 28 x 28), and of any size for
    up to few_channels channels, or filters, of a group.
    """

    few_pixels: int
    point_map: int
    window_map: int
    few_channels: int


@dataclass(frozen=True)
class Recomputing:
    """Which values that the forward part stores the backward part computes again (passes/recompute.py).

    worth_bytes: of a value, from which on it is: below, what a kernel more costs is more than the memory is worth.
    most_nodes: that are computed again for one such value.
    """

    worth_bytes: int
    most_nodes: int


@dataclass(frozen=True)
class Spreading:
    """When a reduction shares its kernel with what reads its results at every point again, as softmax does
    (lowering/fuse_forms.py).

    fewest_rows: rows that are reduced, at least, in a space of more than small_space points: threads divide up such a
    kernel by rows, while a reduction alone is divided within a row too.
    """

    fewest_rows: int
    small_space: int


@dataclass(frozen=True)
class Reductions:
    """Which reductions become two launches, of parts and of their results (lowering/split_reduction.py).

    few: results, below which a reduction is divided; long: elements of each, from which on it is; part: elements of a
    part, about. The sum of a million elements is 128 parts of 8192.
    """

    few: int
    long: int
    part: int


@dataclass(frozen=True)
class Joins:
    """How concatenations are divided into their parts (lowering/split_joins.py). shortest: points of a part: fewer are
    not worth a launch."""

    shortest: int


@dataclass(frozen=True)
class Chains:
    """Which convolutions that follow each other run band by band in one launch (lowering/chains.py).

    private_bytes: of the arrays between them, for one band: a part of the cache that each core has for itself.
    worthwhile_bytes: that would pass between them through memory, from which on a chain is made: about what the cache
    that all cores share has for them. units: pieces of work that a chain has at least, if its images have rows enough.
    segment_rows: rows of such a piece, at least, where an image is divided: rows at the borders are made twice.
    """

    private_bytes: int
    worthwhile_bytes: int
    units: int
    segment_rows: int


@dataclass(frozen=True)
class Preferences:
    """A target's figures. None, of each: the target does not want that transformation, so it is left out.

    Blocks and Winograd's need `KernelTarget.lanes` above 1 besides, Packing and Panels a register tile
    (`KernelTarget.tile`).
    """

    blocks: Blocks | None = None
    winograd: WinogradCosts | None = None
    packing: Packing | None = None
    panels: Panels | None = None
    products: Products | None = None
    recomputing: Recomputing | None = None
    spreading: Spreading | None = None
    reductions: Reductions | None = None
    joins: Joins | None = None
    chains: Chains | None = None
