"""Index rules and library calls of convolutions."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mxc.compiler.kernel import calls, ir, plane_calls, word_calls
from mxc.compiler.kernel.call_rule import Called, CallNode, dense, strides, template_axes, triple, window_of
from mxc.compiler.kernel.geometry import Triple, Window
from mxc.compiler.kernel.index_rule import Index, IndexNode, unflatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.plain import fits_panels, fits_planes, is_pointwise
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.kernel.window_rule import WindowNode, all_of, plus, times
from mxc.compiler.operators.convolution.shape import column_geometry, column_windows
from mxc.compiler.ops.dtypes import NARROW
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape


def im2col(c: IndexNode, params: Params, index: Index) -> Value:
    """Row: channel and tap of the kernel; column: the window. Zero in the padding."""
    n, row, column = index
    g, shape = column_geometry(params), c.shape(0)
    channel, *taps = unflatten(row, (shape[1], *g.kernel))
    place, inside = [], ir.const(True, "bool")
    for window, tap, stride, dilate, pad, extent in zip(unflatten(column, column_windows(g, shape[2:])), taps, g.stride,
                                                        g.dilate, g.pad, shape[2:], strict=True):
        reach = ir.apply("add", ir.apply("mul", window, number(stride)), ir.apply("mul", tap, number(dilate)))
        at = ir.apply("sub", reach, number(pad))
        for test in (ir.apply("ge", at, number(0)), ir.apply("lt", at, number(extent))) if pad else ():
            inside = ir.apply("and", inside, test)
        place.append(at)
    return c.load(0, (n, channel, *place), inside, ir.const(0, c.out_dtype)) if any(g.pad) else \
        c.load(0, (n, channel, *place))


def col2im_window(c: WindowNode, params: Params) -> Value:
    """With stride 1: an element of the image is the sum, over the kernel's taps, of the elements of the columns whose
    windows have the tap there."""
    g, out = column_geometry(params), c.out_shape
    counts = column_windows(g, out[2:])
    row, column, inside = c.index[1], number(0), []
    for at, tap, size, dilate, pad, count in zip(c.index[2:], c.window, g.kernel, g.dilate, g.pad, counts, strict=True):
        window = plus(ir.apply("sub", at, times(tap, dilate)), pad)
        row, column = ir.apply("add", times(row, size), tap), ir.apply("add", times(column, count), window)
        inside += [ir.apply("ge", window, number(0)), ir.apply("lt", window, number(count))]
    element = ir.cast(c.load(0, (c.index[0], row, column), all_of(inside)), ir.computing_dtype(c.out_dtype))
    return ir.cast(c.accumulate("sum", element), c.out_dtype)


def packed_convolution_call(c: CallNode, params: Params) -> Called:
    data, out = c.shape(0), c.out_shape
    window = window_of(params, data, out, params.num_group)
    if params.by_images:
        return calls.image_convolution(c.dtype(0), window, strides(data)), template_axes(out)
    if params.by_filters:
        return plane_calls.filter_convolution(c.dtype(0), window, strides(data), params.block), template_axes(out)
    if params.block and fits_planes(window, c.dtype(0), c.prefers.planes):
        return plane_calls.plane_convolution(c.dtype(0), window, strides(data), params.block), template_axes(out)
    if params.block and fits_panels(window, c.dtype(0), c.prefers.panels):
        return calls.panel_convolution(c.dtype(0), window, strides(data), params.block), template_axes(out)
    return calls.convolution(c.dtype(0), window, strides(data), params.block), template_axes(out)


def blocked_window(params: Params, data: Shape, out: Shape, groups: int, block: int) -> Window[int]:
    """The geometry of a convolution of `data`, (n, channel block, space..., block) or plain (block 1), to blocks.

    A single spatial axis counts as the rows, so that bands can divide it.
    """
    rank, channels = len(params.kernel), data[1] * block // groups
    filters = out[1] * out[-1] // groups
    space = [_rows_first(s, f) for s, f in ((data[2 : 2 + rank], 1), (out[2 : 2 + rank], 1), (params.kernel, 1),
                                            (params.stride, 1), (params.dilate, 1), (params.pad, 0))]
    return Window(data[0], groups, channels, filters, *space)


def _rows_first(values: Sequence[int], fill: int) -> Triple:
    return (fill, values[0], fill) if len(values) == 1 else triple(values, fill)


def blocked_axes(rank: int) -> tuple[int, ...]:
    """The template axes (n, block, channel in the block, d, h, w) of a blocked array with `rank` spatial axes."""
    return (0, 1, *{1: (4,), 2: (4, 5), 3: (3, 4, 5)}[rank], 2)


def blocked_strides(data: Shape, rank: int) -> tuple[int, ...]:
    """Strides over (n, block, d, h, w) of an array in blocks; a plain array counts as one in blocks of one channel."""
    strides = dense(data)
    return (*strides[:2], *_rows_first(strides[2 : 2 + rank], 0))


def blocked_convolution_call(c: CallNode, params: Params) -> Called:
    data, rank = c.shape(0), len(params.kernel)
    data_block = data[-1] if len(data) == rank + 3 else 1
    window = blocked_window(params, data, c.out_shape, params.num_group, data_block)
    steps = blocked_strides(data, rank)
    copied = data_block != params.block or any(params.pad) or (c.dtype(0) in NARROW and not params.paired)
    if params.paired:
        window, steps = replace(window, channels=window.channels // 2), tuple(step // 2 for step in steps)
        data_block //= 2
    made = calls.blocked_convolution(c.dtype(0), window, steps, data_block, params.block, params.columns, copied,
                                     paired=params.paired)
    return made, blocked_axes(rank)


def tiled_convolution_call(c: CallNode, params: Params) -> Called:
    data, rank, per = c.shape(0), len(params.kernel), c.shape(1)[-1]
    is_plain = len(data) == rank + 2
    words = (data[0], -(-data[1] // per), *data[2:], 1) if is_plain else (*data[:-1], data[-1] // per)
    window = blocked_window(params, words, c.out_shape, params.num_group, words[-1])
    kind, steps = "bfloat16" if per == 2 else "int32", blocked_strides(data if is_plain else words, rank)
    made = word_calls.tiled_convolution(kind, window, steps, words[-1], params.block, params.columns, params.depth,
                                   data[1] if is_plain else 0)
    return made, blocked_axes(rank)


def winograd_convolution_call(c: CallNode, params: Params) -> Called:
    data, out = c.shape(0), c.out_shape
    window = Window(batch=data[0], groups=1, channels=data[1] * data[-1], filters=out[1] * out[-1],
                    data=triple(data[2:4], 1), out=triple(out[2:4], 1), kernel=(1, 3, 3), pad=triple(params.pad, 0))
    made = calls.winograd_convolution(c.dtype(0), window, blocked_strides(data, 2), data[-1], params.tiles,
                                      c.shape(1)[-1], transforms=params.transforms)
    return made, blocked_axes(2)


def _winograd_window(channels: int, filters: int, batch: int, out: Shape, data: Shape = (), pad: Shape = (),
                     ) -> Window[int]:
    return Window(batch=batch, groups=1, channels=channels, filters=filters, data=triple(data or out, 1),
                  out=triple(out, 1), kernel=(1, 3, 3), pad=triple(pad, 0))


def winograd_side_call(c: CallNode, params: Params) -> Called:
    n, channels, *space = c.shape(0)
    window = _winograd_window(channels, channels, n, params.out, tuple(space), params.pad)
    return calls.winograd_side(c.dtype(0), window, strides(c.shape(0)), params.block, params.of_results), (0, 1, 2, 3)


def winograd_weight_call(c: CallNode, params: Params) -> Called:
    filters, channels, _, _ = c.shape(0)
    window = _winograd_window(channels, filters, 1, (1, 1))
    return calls.winograd_weight(c.dtype(0), window, params.columns, params.turned), (0, 1, 2, 3)


def plain_winograd_call(c: CallNode, params: Params) -> Called:
    (_, blocks, _, lanes), (n, filters, *out) = c.shape(0), c.out_shape
    window = _winograd_window(blocks * lanes, filters, n, tuple(out))
    return calls.plain_winograd(c.dtype(0), window, lanes, c.shape(1)[-1]), template_axes(c.out_shape)


def winograd_weight_grad_call(c: CallNode, params: Params) -> Called:
    filters, channels, _, _ = c.out_shape
    window = _winograd_window(channels, filters, params.shape[0], params.shape[2:])
    return calls.winograd_weight_grad(c.dtype(0), window, c.shape(0)[-1]), template_axes(c.out_shape)


def blocked_depthwise_call(c: CallNode, params: Params) -> Called:
    data, rank = c.shape(0), len(params.kernel)
    window = blocked_window(params, data, c.out_shape, data[1] * data[-1], data[-1])
    return calls.blocked_depthwise(c.dtype(0), window, blocked_strides(data, rank), data[-1]), blocked_axes(rank)


def packed_convolution_data_grad_call(c: CallNode, params: Params) -> Called:
    out, data = c.shape(0), c.out_shape
    window = window_of(params, data, out, params.num_group)
    if params.by_images:
        return calls.image_data_grad(c.dtype(0), window, strides(out)), template_axes(data)
    if params.by_filters:
        return plane_calls.filter_data_grad(c.dtype(0), window, strides(out), params.block), template_axes(data)
    if params.block and fits_planes(window, c.dtype(0), c.prefers.planes, transposed=True):
        return plane_calls.plane_data_grad(c.dtype(0), window, strides(out), params.block), template_axes(data)
    turned = replace(window, channels=window.filters, filters=window.channels)
    if params.block and is_pointwise(window) and fits_panels(turned, c.dtype(0), c.prefers.panels):
        return calls.panel_convolution(c.dtype(0), turned, strides(out), params.block), template_axes(data)
    return calls.convolution_data_grad(c.dtype(0), window, strides(out), params.block), template_axes(data)


def convolution_weight_grad_call(c: CallNode, params: Params) -> Called:
    data, out = c.shape(0), c.shape(1)
    window = window_of(params, data, out, params.num_group)
    return calls.convolution_weight_grad(c.dtype(0), window, strides(data), strides(out)), template_axes(c.out_shape)


def depthwise_call(c: CallNode, params: Params) -> Called:
    data, out = c.shape(0), c.out_shape
    window = window_of(params, data, out, data[1])
    return calls.depthwise(c.dtype(0), window, strides(data)), template_axes(out)


def depthwise_data_grad_call(c: CallNode, params: Params) -> Called:
    out, data = c.shape(0), c.out_shape
    window = window_of(params, data, out, data[1])
    return calls.depthwise_data_grad(c.dtype(0), window, strides(out)), template_axes(data)


def depthwise_weight_grad_call(c: CallNode, params: Params) -> Called:
    data, out = c.shape(0), c.shape(1)
    window = window_of(params, data, out, data[1])
    return calls.depthwise_weight_grad(c.dtype(0), window, strides(data), strides(out)), template_axes(c.out_shape)
