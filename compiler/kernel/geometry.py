"""The geometry of a library kernel: a frozen record for each template, with a name for each of its numbers.

What a template computes is told by its constructor in `calls.py`. A field of a record is one of two things:

- `baked`: a part of the kernel's code, and so of the key under which the code is kept (`params`);
- a number, or several (a window, strides), that the code is given at every launch (`extents`).

`Geometry` alone knows how a record becomes these, and how it is read back from its numbers. N is the kind of the
numbers: int for a launch, and values of the printed program where a target prints the code.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, ClassVar, Generic, TypeVar

N = TypeVar("N")
M = TypeVar("M")
Triple = tuple[int, int, int]
_ONES: Any = (1, 1, 1)  # the default stride and dilation; windows whose numbers are no ints give their own
_ZEROS: Any = (0, 0, 0)  # the default padding


@dataclass(frozen=True)
class Window(Generic[N]):
    """The geometry of a convolution or pooling over three spatial axes (fewer: leading extents 1, pad 0).

    channels and filters are those of one group. data, out: spatial extents before and after. pad: before each axis.
    """

    batch: N
    groups: N
    channels: N
    filters: N
    data: tuple[N, N, N]
    out: tuple[N, N, N]
    kernel: tuple[N, N, N]
    stride: tuple[N, N, N] = _ONES
    dilate: tuple[N, N, N] = _ONES
    pad: tuple[N, N, N] = _ZEROS

    def numbers(self) -> tuple[N, ...]:
        """All 22 numbers, in the order of the fields."""
        return (self.batch, self.groups, self.channels, self.filters, *self.data, *self.out, *self.kernel, *self.stride,
                *self.dilate, *self.pad)

    @classmethod
    def of(cls, numbers: Sequence[M]) -> Window[M]:
        """The window whose `numbers` these are."""
        batch, groups, channels, filters, *axes = numbers
        data, out, kernel, stride, dilate, pad = ((axes[i], axes[i + 1], axes[i + 2]) for i in range(0, 18, 3))
        return Window(batch, groups, channels, filters, data, out, kernel, stride, dilate, pad)


@dataclass(frozen=True, kw_only=True)
class Geometry(Generic[N]):
    """What the records of all templates have. dtype: that of the operands that are multiplied, as they are stored.

    template: the name that the text of kernels and a target's library have for it. baked: the fields that are part of
    the code, in the order of the key. operands: how many buffers the template reads by itself.
    """

    template: ClassVar[str]
    baked: ClassVar[tuple[str, ...]] = ("dtype",)
    operands: ClassVar[int] = 2

    dtype: str

    @property
    def params(self) -> tuple[tuple[str, object], ...]:
        """What is baked into the code, as (name, value) pairs."""
        return tuple((name, getattr(self, name)) for name in self.baked)

    @property
    def extents(self) -> tuple[N, ...]:
        """The run-time integers: those of all fields that are not baked, in the order of the fields."""
        return tuple(number for name in self._given() for number in _numbers(getattr(self, name)))

    def with_extents(self, numbers: Sequence[Any]) -> Any:
        """A record of the same class with `numbers` in place of `extents`, which has as many."""
        rest = iter(numbers)

        def again(old: object) -> object:
            if isinstance(old, Window):
                return Window.of(list(islice(rest, len(old.numbers()))))
            return tuple(islice(rest, len(old))) if isinstance(old, tuple) else next(rest)

        changed: dict[str, Any] = {name: again(getattr(self, name)) for name in self._given()}
        return replace(self, **changed)

    def _given(self) -> Iterator[str]:
        return (each.name for each in fields(self) if each.name not in self.baked)


def _numbers(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Window):
        return value.numbers()
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True, kw_only=True)
class Gemm(Geometry[N]):
    """See `calls.gemm`. a_strides: elements between (b, m, k) of A; b_strides: between (b, k, n) of B."""

    template: ClassVar[str] = "gemm"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "packed_b", "turned", "rows_in_place", "vector", "few")

    batch: N
    m: N
    n: N
    k: N
    a_strides: tuple[N, N, N]
    b_strides: tuple[N, N, N]
    packed_b: int
    turned: bool
    rows_in_place: bool
    vector: str
    few: int


@dataclass(frozen=True, kw_only=True)
class Parts(Geometry[N]):
    """See `parts.parts`. What is baked of `whole`, and its run-time integers, are those of the parts too."""

    template: ClassVar[str] = "parts"

    whole: Geometry[N]
    part: N

    @property
    def params(self) -> tuple[tuple[str, object], ...]:
        return (("whole", self.whole.template), *self.whole.params)

    @property
    def extents(self) -> tuple[N, ...]:
        return (*self.whole.extents, self.part)

    def with_extents(self, numbers: Sequence[Any]) -> Any:
        return replace(self, whole=self.whole.with_extents(numbers[:-1]), part=numbers[-1])


# --- over windows: what is read, what is computed


@dataclass(frozen=True, kw_only=True)
class Windowed(Geometry[N]):
    """A template over a window."""

    window: Window[N]


@dataclass(frozen=True, kw_only=True)
class Merging(Windowed[N]):
    """A template that may walk its innermost output axes as one. flat: whether it does, because the epilogue's places
    allow it (`calls.call`)."""

    flat: bool = False

    def merged(self) -> tuple[int, Sequence[N]]:
        """These axes: the first one's position, and their extents."""
        raise NotImplementedError(self.template)


@dataclass(frozen=True, kw_only=True)
class OfData(Merging[N]):
    """A template that reads data and computes what has the shape of `window.out`. data_strides: elements between
    (n, c, d, h, w) of the data, or between (n, channel block, d, h, w) where its channels lie in blocks."""

    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "flat")

    data_strides: tuple[N, ...]

    def merged(self) -> tuple[int, Sequence[N]]:
        return 2, self.window.out


@dataclass(frozen=True, kw_only=True)
class OfOut(Merging[N]):
    """A template that reads what has the shape of `window.out` and computes what has the shape of the data.
    out_strides: elements between (n, c, d, h, w) of what it reads."""

    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "flat")

    out_strides: tuple[N, ...]

    def merged(self) -> tuple[int, Sequence[N]]:
        return 2, self.window.data


@dataclass(frozen=True, kw_only=True)
class OfBoth(Merging[N]):
    """A template that reads the data and what has the shape of `window.out`. data_strides, out_strides: elements
    between (n, c, d, h, w) of them."""

    baked: ClassVar[tuple[str, ...]] = ("dtype", "flat")

    data_strides: tuple[N, ...]
    out_strides: tuple[N, ...]


# --- convolutions of plain arrays


@dataclass(frozen=True, kw_only=True)
class Convolution(OfData[N]):
    """See `calls.convolution`."""

    template: ClassVar[str] = "convolution"

    block: int


@dataclass(frozen=True, kw_only=True)
class PanelConvolution(OfData[N]):
    """See `calls.panel_convolution`."""

    template: ClassVar[str] = "panel_convolution"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "pointwise", "stride", "flat")

    block: int
    pointwise: bool
    stride: int


@dataclass(frozen=True, kw_only=True)
class QuadConvolution(PanelConvolution[N]):
    """See `calls.quad_convolution`."""

    template: ClassVar[str] = "quad_convolution"


@dataclass(frozen=True, kw_only=True)
class ImageConvolution(OfData[N]):
    """See `calls.image_convolution`."""

    template: ClassVar[str] = "image_convolution"

    block: int = 0


@dataclass(frozen=True, kw_only=True)
class ConvolutionDataGrad(OfOut[N]):
    """See `calls.convolution_data_grad`."""

    template: ClassVar[str] = "convolution_data_grad"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "strided", "flat")

    block: int
    strided: bool


@dataclass(frozen=True, kw_only=True)
class ImageDataGrad(OfOut[N]):
    """See `calls.image_data_grad`."""

    template: ClassVar[str] = "image_data_grad"

    block: int = 0


@dataclass(frozen=True, kw_only=True)
class ConvolutionWeightGrad(OfBoth[N]):
    """See `calls.convolution_weight_grad`."""

    template: ClassVar[str] = "convolution_weight_grad"

    def merged(self) -> tuple[int, Sequence[N]]:
        return 1, (self.window.channels, *self.window.kernel)


# --- convolutions of arrays whose channels lie in blocks


@dataclass(frozen=True, kw_only=True)
class BlockedConvolution(OfData[N]):
    """See `calls.blocked_convolution`. alone: 1 if one thread runs all units, else 0."""

    template: ClassVar[str] = "blocked_convolution"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "data_block", "block", "columns", "whole", "copied", "together",
                                        "pointwise", "paired", "flat")

    alone: N
    data_block: int
    block: int
    columns: int
    whole: bool
    copied: bool
    together: int
    pointwise: bool
    paired: bool = False

    def merged(self) -> tuple[int, Sequence[N]]:
        return 3, self.window.out


@dataclass(frozen=True, kw_only=True)
class BlockedQuads(BlockedConvolution[N]):
    """See `calls.blocked_quads`. planes: channels of plain data; 0 where they lie in blocks."""

    template: ClassVar[str] = "blocked_quads"
    baked: ClassVar[tuple[str, ...]] = (*BlockedConvolution.baked, "plain")

    planes: N
    plain: bool


@dataclass(frozen=True, kw_only=True)
class WinogradConvolution(OfData[N]):
    """See `calls.winograd_convolution`. given: the pitch of transformed data in elements, 0 if the data are plain.
    tiles: of a group."""

    template: ClassVar[str] = "winograd_convolution"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "rows", "columns", "whole", "transforms", "flat")

    given: N
    tiles: N
    block: int
    rows: int
    columns: int
    whole: bool
    transforms: bool

    def merged(self) -> tuple[int, Sequence[N]]:
        return 3, self.window.out


@dataclass(frozen=True, kw_only=True)
class WinogradData(Windowed[N]):
    """See `calls.winograd_data`. pitch: elements from one place of the result to the next. tiles: of a group."""

    template: ClassVar[str] = "winograd_data"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block")
    operands: ClassVar[int] = 1

    data_strides: tuple[N, ...]
    pitch: N
    tiles: N
    block: int


# --- Winograd's way over plain arrays, and of the weights of all its kernels


@dataclass(frozen=True, kw_only=True)
class WinogradSide(Windowed[N]):
    """See `calls.winograd_side`. strides: elements between (n, c, d, h, w) of what is read."""

    template: ClassVar[str] = "winograd_side"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "of_results")
    operands: ClassVar[int] = 1

    strides: tuple[N, ...]
    block: int
    of_results: bool


@dataclass(frozen=True, kw_only=True)
class WinogradWeight(Windowed[N]):
    """See `calls.winograd_weight`."""

    template: ClassVar[str] = "winograd_weight"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "columns", "turned")
    operands: ClassVar[int] = 1

    columns: int
    turned: bool


@dataclass(frozen=True, kw_only=True)
class PlainWinograd(Merging[N]):
    """See `calls.plain_winograd`."""

    template: ClassVar[str] = "plain_winograd"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "columns", "whole", "flat")

    block: int
    columns: int
    whole: bool

    def merged(self) -> tuple[int, Sequence[N]]:
        return 2, self.window.out


@dataclass(frozen=True, kw_only=True)
class WinogradWeightGrad(Merging[N]):
    """See `calls.winograd_weight_grad`."""

    template: ClassVar[str] = "winograd_weight_grad"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "flat")

    block: int

    def merged(self) -> tuple[int, Sequence[N]]:
        return 1, (self.window.channels, *self.window.kernel)


# --- depthwise: printed for one size of kernel


@dataclass(frozen=True, kw_only=True)
class Depthwise(Windowed[N]):
    """See `calls.depthwise`."""

    template: ClassVar[str] = "depthwise"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "kernel")

    data_strides: tuple[N, ...]
    kernel: Triple


@dataclass(frozen=True, kw_only=True)
class DepthwiseDataGrad(Windowed[N]):
    """See `calls.depthwise_data_grad`."""

    template: ClassVar[str] = "depthwise_data_grad"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "kernel")

    out_strides: tuple[N, ...]
    kernel: Triple


@dataclass(frozen=True, kw_only=True)
class DepthwiseWeightGrad(OfBoth[N]):
    """See `calls.depthwise_weight_grad`."""

    template: ClassVar[str] = "depthwise_weight_grad"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "kernel", "flat")

    kernel: Triple

    def merged(self) -> tuple[int, Sequence[N]]:
        return 1, (self.window.channels, *self.window.kernel)


@dataclass(frozen=True, kw_only=True)
class BlockedDepthwise(OfData[N]):
    """See `calls.blocked_depthwise`. ring_start, ring: the row of the ring that holds row 0, and the ring's rows."""

    template: ClassVar[str] = "blocked_depthwise"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "kernel", "stride", "dilate", "block", "flat")

    ring_start: N
    ring: N
    kernel: Triple
    stride: int
    dilate: int
    block: int

    def merged(self) -> tuple[int, Sequence[N]]:
        return 3, self.window.out


@dataclass(frozen=True, kw_only=True)
class MaxPoolGrad(OfBoth[N]):
    """See `calls.max_pool_grad`."""

    template: ClassVar[str] = "max_pool_grad"

    def merged(self) -> tuple[int, Sequence[N]]:
        return 2, self.window.data


@dataclass(frozen=True, kw_only=True)
class PoolSpread(Windowed[N]):
    """See `calls.pool_spread`. out_strides: elements between (n, c, d, h, w) of the windows' numbers."""

    template: ClassVar[str] = "pool_spread"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "divisor")
    operands: ClassVar[int] = 1

    out_strides: tuple[N, ...]
    divisor: str
