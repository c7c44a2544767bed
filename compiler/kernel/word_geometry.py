"""The records of templates whose operands are words of 32 bits, of two bfloat16 or four numbers of 8 bits."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mxc.compiler.kernel.geometry import Geometry, N, OfData


class OfWords:
    """A record of such a template. dtype: of the numbers."""

    dtype: str

    @property
    def numbers_of_a_word(self) -> int:
        """How many numbers of the data 32 bits hold."""
        return 2 if self.dtype == "bfloat16" else 4


@dataclass(frozen=True, kw_only=True)
class WordProduct(OfWords, Geometry[N]):
    """See `word_calls.word_product`. a_strides: words between (b, m) of A; b_strides: between (b, k, n) of B."""

    template: ClassVar[str] = "word_product"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "depth", "across", "lifted")

    batch: N
    m: N
    n: N
    k: N
    a_strides: tuple[N, N]
    b_strides: tuple[N, N, N]
    depth: int
    across: bool
    lifted: bool


@dataclass(frozen=True, kw_only=True)
class TiledConvolution(OfWords, OfData[N]):
    """See `word_calls.tiled_convolution`. planes: channels of plain data; 0 where they lie in blocks."""

    template: ClassVar[str] = "tiled_convolution"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "data_block", "block", "columns", "depth", "plain", "flat")

    planes: N
    data_block: int
    block: int
    columns: int
    depth: int
    plain: bool

    def merged(self) -> tuple[int, Sequence[N]]:
        return 3, self.window.out
