"""The templates of library kernels that multiply words, as `calls.py` has those of numbers.

A word is what 32 bits hold: two numbers of bfloat16, or four of 8 bits, that lie side by side along the depth. Their
products are added up in one lane of float32, or int32.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mxc.compiler.kernel.geometry import Triple, Window
from mxc.compiler.kernel.word_geometry import TiledConvolution, WordProduct

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences, Tiles


def word_product(
    dtype: str, sizes: tuple[int, int, int, int], a_strides: tuple[int, int], b_strides: Triple, depth: int = 1,
    across: bool = False, lifted: bool = False,
) -> WordProduct[int]:
    """`gemm` of words: of bfloat16, or, with dtype int32, of A of int8 or uint8 and B of int8.

    sizes: (batch, m, n, k), where k counts words. a_strides: words between (b, m) of A, where the words of a row lie
    together. b_strides: words between (b, k, n) of B; across: B's columns lie together instead, and its strides are in
    numbers of bfloat16. depth: words of a tile's row, which divide k; 1 where there are no tiles. lifted: 128 is added
    to B's numbers, which instructions of the kernel take to be uint8, and A is of int8.
    """
    batch, m, n, k = sizes
    return WordProduct(dtype=dtype, batch=batch, m=m, n=n, k=k, a_strides=a_strides, b_strides=b_strides, depth=depth,
                       across=across, lifted=lifted)


def by_words(dtype: str, sizes: tuple[int, int, int, int], figures: Preferences) -> bool:
    """Whether a product of bfloat16 with A's rows lying together is one of words. sizes: (batch, m, n, k)."""
    has_words = figures.pairs is not None or figures.tiles is not None
    return (dtype == "bfloat16" and has_words and 0 not in sizes and sizes[3] % 2 == 0
            and bool(depth_of(sizes[3] // 2, figures.tiles)))


def depth_of(words: int, tiles: Tiles | None) -> int:
    """`Tiles.depth`, and 1 without tiles."""
    return 1 if tiles is None else tiles.depth(words)


def tiled_convolution(
    dtype: str, window: Window[int], data_strides: Sequence[int], data_block: int, block: int, columns: int, depth: int,
    planes: int = 0,
) -> TiledConvolution[int]:
    """`convolution` by tiles, whose results lie in blocks of `block` filters, as those of `blocked_convolution` do.

    dtype: bfloat16, or int32 for data of int8 or uint8 and a weight of int8. `window` counts words as channels, and so
    do `data_block`, the words of a block of the data, and `data_strides`.

    The rows of a tile are pixels with `depth` words of each, side by side: those of several blocks, or of a part of
    one. Operand: the weight, in the dtype of the data or int8: `pack_rows` with `columns` of each group's (filters,
    channels / depth * kernel * depth), in words.

    planes: the data are plain, with so many channels in a single group, `data_strides` are in elements between their
    (n, c, d, h, w), and a tile has the words of `depth` pixels, which are those of a row of the kernel, undilated.
    """
    return TiledConvolution(
        dtype=dtype, window=window, data_strides=tuple(data_strides), planes=planes, data_block=data_block, block=block,
        columns=columns, depth=depth, plain=planes > 0)
