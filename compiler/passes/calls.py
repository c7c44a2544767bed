"""Anchors as calls of library kernels.

A call rule is `def NAME(c, params) -> (make, axes)`: `c` knows the shapes and dtypes of the node's inputs and output,
`axes[i]` is the template's output axis that is axis i of the node's output, and `make(name, buffers, stores)` builds
the CallKernel of the whole group, with `buffers` the dtypes of the operands and of what the epilogue touches.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mxc.compiler.graph.graph import Shape
from mxc.compiler.kernel import calls
from mxc.compiler.kernel.ir import CallKernel, Store
from mxc.compiler.ops.table import Params

if TYPE_CHECKING:
    from mxc.compiler.passes.lower_group import Call

Make = Callable[[str, Sequence[str], Sequence[Store]], CallKernel]
Triple = tuple[int, int, int]


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _triple(values: Sequence[int], fill: int) -> Triple:
    """The last three of `values`, with `fill` for the axes that are missing in front."""
    padded = (fill,) * (3 - len(values)) + tuple(values)
    return padded[0], padded[1], padded[2]


def _strides(shape: Shape) -> tuple[int, ...]:
    """Strides over (n, c, d, h, w) of an array with one to three spatial axes."""
    strides = dense(shape)
    return (*strides[:2], *_triple(strides[2:], 0))


def _axes(shape: Shape) -> tuple[int, ...]:
    """The template axes (n, c, d, h, w) of an array with one to three spatial axes."""
    return (0, 1, *range(7 - len(shape), 5))


def _window(params: Params, data: Shape, out: Shape, groups: int) -> calls.Window:
    """The geometry of a convolution of `data` to `out`, both (n, c, spatial...)."""
    spatial = len(data) - 2
    return calls.Window(batch=data[0], groups=groups, channels=data[1] // groups, filters=out[1] // groups,
                        data=_triple(data[2:], 1), out=_triple(out[2:], 1), kernel=_triple(params.kernel, 1),
                        stride=_triple(tuple(params.stride) or (1,) * spatial, 1),
                        dilate=_triple(_dilate(params) or (1,) * spatial, 1),
                        pad=_triple(tuple(params.pad) or (0,) * spatial, 0))


def _dilate(params: Params) -> Shape:
    return tuple(params.dilate) if "dilate" in params else ()


def _maker(template: Callable[..., CallKernel], c: Call, window: calls.Window, *strides: Sequence[int],
           **fixed: object) -> Make:
    """`make` for a template over a window: constructor(name, dtype, window, strides..., buffers, stores, fixed...)."""

    def make(name: str, buffers: Sequence[str], stores: Sequence[Store]) -> CallKernel:
        return template(name, c.dtype(0), window, *strides, buffers, stores, **fixed)

    return make


def by_panels(params: Params, data: Shape, out: Shape, dtype: str) -> bool:
    """Whether a convolution of plain arrays with packed weights is computed image by image, by `panel_convolution`."""
    return calls.fits_panels(_window(params, data, out, params.num_group), dtype)


def packed_convolution(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    data, out = c.shape(0), c.out_shape
    window = _window(params, data, out, params.num_group)
    if params.by_images:
        return _maker(calls.image_convolution, c, window, _strides(data)), _axes(out)
    template = calls.panel_convolution if params.block and calls.fits_panels(window, c.dtype(0)) else calls.convolution
    return _maker(template, c, window, _strides(data), block=params.block), _axes(out)


def _blocked_window(params: Params, data: Shape, out: Shape, groups: int, block: int) -> calls.Window:
    """The geometry of a convolution of `data`, (n, channel block, space..., block) or plain (block 1), to blocks.

    A single spatial axis counts as the rows, so that bands can divide it.
    """
    rank, channels = len(params.kernel), data[1] * block // groups
    filters = out[1] * out[-1] // groups
    space = [_rows_first(s, f) for s, f in ((data[2 : 2 + rank], 1), (out[2 : 2 + rank], 1), (params.kernel, 1),
                                            (params.stride, 1), (params.dilate, 1), (params.pad, 0))]
    return calls.Window(data[0], groups, channels, filters, *space)


def _rows_first(values: Sequence[int], fill: int) -> Triple:
    return (fill, values[0], fill) if len(values) == 1 else _triple(values, fill)


def _blocked_axes(rank: int) -> tuple[int, ...]:
    """The template axes (n, block, channel in the block, d, h, w) of a blocked array with `rank` spatial axes."""
    return (0, 1, *{1: (4,), 2: (4, 5), 3: (3, 4, 5)}[rank], 2)


def _blocked_strides(data: Shape, rank: int) -> tuple[int, ...]:
    """Strides over (n, block, d, h, w) of blocks, or of a plain array as of blocks of one channel."""
    strides = dense(data)
    return (*strides[:2], *_rows_first(strides[2 : 2 + rank], 0))


def blocked_convolution(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    data, rank = c.shape(0), len(params.kernel)
    data_block = data[-1] if len(data) == rank + 3 else 1
    window = _blocked_window(params, data, c.out_shape, params.num_group, data_block)
    copied = data_block != params.block or any(params.pad) or c.dtype(0) == "float16"
    make = _maker(calls.blocked_convolution, c, window, _blocked_strides(data, rank), data_block=data_block,
                  block=params.block, columns=params.columns, copied=copied)
    return make, _blocked_axes(rank)


def winograd_convolution(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    data, out = c.shape(0), c.out_shape
    window = calls.Window(batch=data[0], groups=1, channels=data[1] * data[-1], filters=out[1] * out[-1],
                          data=_triple(data[2:4], 1), out=_triple(out[2:4], 1), kernel=(1, 3, 3),
                          pad=_triple(params.pad, 0))
    make = _maker(calls.winograd_convolution, c, window, _blocked_strides(data, 2), block=data[-1], tiles=params.tiles,
                  columns=c.shape(1)[-1])
    return make, _blocked_axes(2)


def blocked_depthwise(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    data, rank = c.shape(0), len(params.kernel)
    window = _blocked_window(params, data, c.out_shape, data[1] * data[-1], data[-1])
    make = _maker(calls.blocked_depthwise, c, window, _blocked_strides(data, rank), block=data[-1])
    return make, _blocked_axes(rank)


def packed_convolution_data_grad(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    out, data = c.shape(0), c.out_shape
    window = _window(params, data, out, params.num_group)
    if params.by_images:
        return _maker(calls.image_data_grad, c, window, _strides(out)), _axes(data)
    return _maker(calls.convolution_data_grad, c, window, _strides(out), block=params.block), _axes(data)


def convolution_weight_grad(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    data, out = c.shape(0), c.shape(1)
    window = _window(params, data, out, params.num_group)
    return _maker(calls.convolution_weight_grad, c, window, _strides(data), _strides(out)), _axes(c.out_shape)


def depthwise(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    data, out = c.shape(0), c.out_shape
    return _maker(calls.depthwise, c, _window(params, data, out, data[1]), _strides(data)), _axes(out)


def depthwise_data_grad(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    out, data = c.shape(0), c.out_shape
    return _maker(calls.depthwise_data_grad, c, _window(params, data, out, data[1]), _strides(out)), _axes(data)


def depthwise_weight_grad(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    data, out = c.shape(0), c.shape(1)
    window = _window(params, data, out, data[1])
    return _maker(calls.depthwise_weight_grad, c, window, _strides(data), _strides(out)), _axes(c.out_shape)


def max_pool_grad(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    """Channels come second, or last where the layout says so: the template takes any strides."""
    data, out = c.shape(0), c.shape(1)
    rank = len(data)
    last = params.layout is not None and str(params.layout).endswith("C")
    order = (0, rank - 1, *range(1, rank - 1)) if last else tuple(range(rank))
    window = _window(params, _moved(data, order), _moved(out, order), data[order[1]])
    moved = [_moved(dense(shape), order) for shape in (data, out)]
    data_strides, out_strides = ((*s[:2], *_triple(s[2:], 0)) for s in moved)
    axes = [0] * rank
    for template_axis, axis in zip(_axes(data), order, strict=True):
        axes[axis] = template_axis
    return _maker(calls.max_pool_grad, c, window, data_strides, out_strides), axes


def _moved(values: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple(values[i] for i in order)


def _product(c: Call, sizes: tuple[int, int, int, int], transpose_a: bool, transpose_b: bool,
             packed_b: int = 0) -> Make:
    """`make` for dense matrices; sizes: batch, m, n, k."""
    _, m, n, k = sizes
    a_strides = (m * k, 1, m) if transpose_a else (m * k, k, 1)
    b_strides = (n * k, 1, k) if transpose_b else (n * k, n, 1)

    def make(name: str, buffers: Sequence[str], stores: Sequence[Store]) -> CallKernel:
        return calls.gemm(name, c.dtype(0), *sizes, a_strides, b_strides, buffers, stores, packed_b=packed_b)

    return make


def packed_fully_connected(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    rows, depth = c.shape(0)
    return _product(c, (1, rows, params.num_hidden, depth), False, True, params.block), (1, 2)


def fully_connected(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    rows, depth = c.shape(0)
    return _product(c, (1, rows, params.num_hidden, depth), False, True), (1, 2)


def dot(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    """The product of two matrices, each transposed first if asked."""
    left, right = c.shape(0), c.shape(1)
    m, depth = reversed(left) if params.transpose_a else left
    n = right[0] if params.transpose_b else right[1]
    return _product(c, (1, m, n, depth), params.transpose_a, params.transpose_b), (1, 2)


def batch_dot(c: Call, params: Params) -> tuple[Make, Sequence[int]]:
    """As dot, for every matrix of the batch."""
    left, right = c.shape(0), c.shape(1)
    batch, m, depth = _moved(left, (0, 2, 1)) if params.transpose_a else left
    n = right[1] if params.transpose_b else right[2]
    return _product(c, (batch, m, n, depth), params.transpose_a, params.transpose_b), (0, 1, 2)
