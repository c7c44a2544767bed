"""Which kernels are calls of NVIDIA's libraries: products of cuBLASLt, convolutions and their gradients of cuDNN.

A form has all that a call depends on but addresses: it is the same for equal call sites.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from mxc.compiler.kernel import calls, geometry, ir, parts
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cuda.nvidia import epilogues
from mxc.compiler.targets.cuda.nvidia.epilogues import Epilogue, Place

MOST = (1 << 31) - 1  # rows, columns and batches: the libraries count them with 32 bits
OF_PRODUCTS = ("float16", "bfloat16", "float32", "float64")
OF_CONVOLUTIONS = ("float16", "bfloat16", "float32")
# Not measured. The products of a sum from which on an epilogue that no library has is a kernel of its own. A float32
# that is written and read once more takes an H100 as long as about 50 products of mxc's kernel, by what estimate.py
# assumes; another launch, and libraries that are only a little faster, ask for more.
DEEP = 256


@dataclass(frozen=True)
class Tensor:
    """An array of a kernel: from element `offset` of the buffer at `position` on. strides: elements, by axis."""

    position: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many elements its buffer has at least."""
        return self.offset + 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True)
class Matrix:
    """A matrix by columns, as cuBLASLt has them: `rows` neighbours in each column, `pitch` elements from one column to
    the next one, `step` elements from one matrix of the batch to the next one. turned: its transpose is meant."""

    array: Tensor
    rows: int
    columns: int
    pitch: int
    step: int
    turned: bool


@dataclass(frozen=True)
class Product:
    """result = relu(alpha * left * right + beta * added + bias), each of a batch. bias: a number for each row of the
    result. rows, columns: of the result; depth: of the sums."""

    dtype: str
    batch: int
    rows: int
    columns: int
    depth: int
    left: Matrix
    right: Matrix
    result: Matrix
    added: Matrix | None
    bias: Tensor | None
    alpha: float
    beta: float
    relu: bool

    library = "cuBLASLt"

    def arrays(self) -> Iterator[Tensor]:
        """All arrays that it reads and, last, the one that it writes."""
        found = [each.array for each in (self.left, self.right, self.added) if each is not None]
        yield from [*found, *([self.bias] if self.bias is not None else []), self.result.array]

    def text(self) -> str:
        """It as one line, for people."""
        ways = "".join("T" if each.turned else "N" for each in (self.left, self.right))
        sizes = f"{f'{self.batch} of ' if self.batch > 1 else ''}{self.rows}x{self.columns}x{self.depth}"
        pitches = "/".join(str(each.pitch) for each in (self.left, self.right, self.result))
        ends = [f"alpha {self.alpha:g}"] if self.alpha != 1 else []
        ends += [f"beta {self.beta:g}"] if self.added is not None else []
        return " ".join([self.library, self.dtype, sizes, ways, f"pitches {pitches}", *ends,
                         *(["bias"] if self.bias is not None else []), *(["relu"] if self.relu else [])])


@dataclass(frozen=True)
class Convolved:
    """A convolution (kind "forward"), or its gradient to the "data" or to the "weight". first, second: what it reads;
    data and weight, results' gradient and weight, data and results' gradient. All arrays are (n, c, spatial axes).
    result = relu(computed + added + bias); bias: (1, c, 1, ...). before, after: the padding of each spatial axis."""

    kind: str
    dtype: str
    first: Tensor
    second: Tensor
    result: Tensor
    added: Tensor | None
    bias: Tensor | None
    relu: bool
    before: tuple[int, ...]
    after: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    library = "cuDNN"

    @property
    def depth(self) -> int:
        """How many products each result sums."""
        if self.kind == "weight":
            return self.second.shape[0] * prod(self.second.shape[2:])
        return prod(self.second.shape[1:]) if self.kind == "forward" else (
            self.second.shape[0] * prod(self.second.shape[2:]))

    def arrays(self) -> Iterator[Tensor]:
        """All arrays that it reads and, last, the one that it writes."""
        yield from (each for each in (self.first, self.second, self.added, self.bias) if each is not None)
        yield self.result

    def text(self) -> str:
        """It as one line, for people."""
        shapes = "x".join(map(str, self.first.shape)), "x".join(map(str, self.second.shape))
        ends = [name for name, there in (("added", self.added), ("bias", self.bias), ("relu", self.relu)) if there]
        return " ".join([self.library, self.dtype, self.kind, *shapes, "to", "x".join(map(str, self.result.shape)),
                         f"padding {self.before}{'' if self.after == self.before else f' and {self.after}'}",
                         f"stride {self.stride}", f"dilation {self.dilation}", *ends])


Form = Product | Convolved
KNOWN = (geometry.Gemm, geometry.Convolution, geometry.ConvolutionDataGrad, geometry.ConvolutionWeightGrad)


def may_have_form(kernel: CallKernel) -> bool:
    """Whether a kernel, or another one of its code, may have a form."""
    is_known = type(kernel.geometry) in KNOWN  # and no class made of these, which reads its operands in another way
    return is_known and len({*kernel.buffers}) == 1 and not _is_packed(kernel.geometry)


def form_of(kernel: CallKernel) -> Form | None:
    """The library's call that computes what a kernel does, but for rounding; None where there is none."""
    g: Any = kernel.geometry
    if not may_have_form(kernel):
        return None
    if not all(0 < n <= MOST for n in _extents(g)):
        return None
    end = epilogues.read(kernel)
    if end is None or end.result.offset < 0:
        return None
    return _product(g, end) if isinstance(g, geometry.Gemm) else _convolution(g, end)


def _is_packed(g: Any) -> bool:
    return bool(g.packed_b if isinstance(g, geometry.Gemm) else getattr(g, "block", 0))


def _extents(g: Any) -> tuple[int, ...]:
    if isinstance(g, geometry.Gemm):
        return g.batch, g.m, g.n, g.k
    w = g.window
    return (w.batch, w.groups * w.channels, w.groups * w.filters, *w.data, *w.out, *w.kernel)


def is_deep(kernel: CallKernel) -> bool:
    """Whether a product's sums are so long that its epilogue may be a kernel of its own."""
    form = form_of(kernel)
    return form is not None and form.depth >= DEEP


def library_of(kernel: CallKernel, numbers: Sequence[int]) -> str:
    """The library that may compute a launch with these integers where it is there; "" for none."""
    made = with_numbers(kernel, numbers)
    if (form := form_of(made)) is not None:
        return form.library
    g: Any = made.geometry
    g = g.whole if isinstance(g, geometry.Parts) else g
    if parts.sums(g) is None:
        return ""
    form = form_of(parts.dense(made, g, g.dtype))
    return "" if form is None or form.depth < DEEP else form.library


def with_numbers(kernel: CallKernel, numbers: Sequence[int]) -> CallKernel:
    """The kernel that a launch with these integers (`CallKernel.values`) runs, where it shares the code of this one."""
    count = len(kernel.extents)
    known = ir.run_time_integers(kernel.roots())
    new = {id(old): ir.const(number, ir.INDEX) for old, number in zip(known, numbers[count:], strict=True)}
    roots = calls.replaced(kernel.roots(), new)
    stores = tuple(replace(store, index=roots[2 * i], value=roots[2 * i + 1]) for i, store in enumerate(kernel.stores))
    return replace(kernel, geometry=kernel.geometry.with_extents(list(numbers[:count])), stores=stores)


# --- products


def _product(g: Any, end: Epilogue) -> Product | None:
    """A product of matrices by rows is that of their transposes by columns, the other way round."""
    if g.dtype not in OF_PRODUCTS:
        return None
    a = Tensor(0, 0, (g.batch, g.m, g.k), tuple(g.a_strides))
    b = Tensor(1, 0, (g.batch, g.k, g.n), tuple(g.b_strides))
    for turned in (True, False):
        left, right = (_by_columns(b, True), _by_columns(a, True)) if turned else (
            _by_columns(a, False), _by_columns(b, False))
        result = _by_columns(_tensor(end.result, end.axes), turned)
        if left is None or right is None or result is None or result.turned or (g.batch > 1 and not result.step):
            continue
        ends = _of_product(end, turned)
        if ends is None:
            continue
        rows, columns = (g.n, g.m) if turned else (g.m, g.n)
        return Product(g.dtype, g.batch, rows, columns, g.k, left, right, result, *ends, end.relu)
    return None


def _of_product(end: Epilogue, turned: bool) -> tuple[Matrix | None, Tensor | None, float, float] | None:
    """The added matrix, the bias, alpha and beta; None where the library has not what the epilogue adds. turned:
    whether the rows of the library's result are the columns of the kernel's."""
    added, bias, beta = None, None, 0.0
    along = 2 if turned else 1
    for scale, place in end.added:
        alone = all(step == (axis == along) for axis, step in enumerate(place.steps) if end.axes[axis] > 1)
        if alone and scale == 1 and bias is None:
            bias = Tensor(place.buffer, place.offset, (end.axes[along],), (1,))
            continue
        matrix = _by_columns(_tensor(place, end.axes), turned)
        if added is not None or matrix is None or matrix.turned or (end.axes[0] > 1 and not matrix.step):
            return None
        added, beta = matrix, scale
    return added, bias, end.scale, beta


def _tensor(place: Place, axes: tuple[int, ...]) -> Tensor:
    return Tensor(place.buffer, place.offset, axes, place.steps)


def _by_columns(array: Tensor, transposed: bool) -> Matrix | None:
    """A batch of matrices, or of their transposes, as a library by columns has it; None where neither its rows nor its
    columns lie together."""
    (_, rows, columns), (step, down, right) = array.shape, array.strides
    if transposed:
        rows, columns, down, right = columns, rows, right, down
    if (down == 1 or rows == 1) and (columns == 1 or right >= rows):
        return Matrix(array, rows, columns, right if columns > 1 else rows, step, False)
    if (right == 1 or columns == 1) and (rows == 1 or down >= columns):
        return Matrix(array, columns, rows, down if rows > 1 else columns, step, True)
    return None


# --- convolutions


def _convolution(g: Any, end: Epilogue) -> Convolved | None:
    w = g.window
    if g.dtype not in OF_CONVOLUTIONS or end.scale != 1:
        return None
    first = 1 if (w.data[0], w.out[0], w.kernel[0], w.pad[0]) == (1, 1, 1, 0) else 0  # of the spatial axes
    data, out = (w.batch, w.groups * w.channels, *w.data), (w.batch, w.groups * w.filters, *w.out)
    weight = (w.groups * w.filters, w.channels, *w.kernel)
    after = tuple(map(_after, w.data, w.out, w.kernel, w.stride, w.dilate, w.pad))
    if min(after) < 0:
        return None

    def strided(position: int, shape: tuple[int, ...], strides: Sequence[int]) -> Tensor | None:
        return _spatial(Tensor(position, 0, shape, tuple(strides)), first)

    dense = tuple(prod(weight[axis + 1:]) for axis in range(5))
    if isinstance(g, geometry.Convolution):
        kind, shape = "forward", out
        operands = strided(0, data, g.data_strides), strided(1, weight, dense)
    elif isinstance(g, geometry.ConvolutionDataGrad):
        kind, shape = "data", data
        operands = strided(0, out, g.out_strides), strided(1, weight, dense)
    else:
        kind, shape = "weight", weight
        operands = strided(0, data, g.data_strides), strided(1, out, g.out_strides)
    result = _spatial(_unmerged(end.result, end.axes, shape), first)
    ends = _of_convolution(end, shape, first)
    if operands[0] is None or operands[1] is None or result is None or ends is None:
        return None
    return Convolved(kind, g.dtype, operands[0], operands[1], result, *ends, end.relu, tuple(w.pad[first:]),
                     after[first:], tuple(w.stride[first:]), tuple(w.dilate[first:]))


def _after(data: int, out: int, kernel: int, stride: int, dilate: int, pad: int) -> int:
    """The padding behind an axis: as much as before it, where that gives as many results. -1 where none does."""
    reach = dilate * (kernel - 1) + 1
    if data + 2 * pad >= reach and (data + 2 * pad - reach) // stride + 1 == out:
        return pad
    return max(-1, (out - 1) * stride + reach - data - pad)


def _of_convolution(end: Epilogue, shape: tuple[int, ...], first: int,
                    ) -> tuple[Tensor | None, Tensor | None] | None:
    """The added array and the bias; None where the library has not what the epilogue adds."""
    added, bias = None, None
    for scale, place in end.added:
        if scale != 1:
            return None
        alone = all(step == (axis == 1) for axis, step in enumerate(place.steps) if end.axes[axis] > 1)
        if alone and bias is None:
            bias = Tensor(place.buffer, place.offset, (1, shape[1], *(1,) * (3 - first)),
                          (shape[1], 1, *(1,) * (3 - first)))
            continue
        if added is not None:
            return None
        added = _spatial(_unmerged(place, end.axes, shape), first)
        if added is None:
            return None
    return added, bias


def _unmerged(place: Place, axes: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """An array of the result's axes, the last of which may stand for several of `shape`."""
    count = len(axes) - 1  # axes before the last one
    inner = shape[count:]
    steps = *place.steps[:count], *(place.steps[-1] * prod(inner[i + 1:]) for i in range(len(inner)))
    return Tensor(place.buffer, place.offset, shape, steps)


def _spatial(array: Tensor, first: int) -> Tensor | None:
    """An array without the spatial axes before the `first` one; an axis of one element gets the stride that it has
    where elements lie densely. None where elements are repeated."""
    shape, strides = (*array.shape[:2], *array.shape[2 + first:]), [*array.strides[:2], *array.strides[2 + first:]]
    for axis in reversed(range(len(shape))):
        if shape[axis] == 1:
            strides[axis] = strides[axis + 1] * shape[axis + 1] if axis + 1 < len(shape) else 1
        elif strides[axis] <= 0:
            return None
    return Tensor(array.position, array.offset, shape, tuple(strides))
