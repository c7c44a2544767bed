"""Windows and library calls of pooling."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mxc.compiler.kernel import calls
from mxc.compiler.kernel.call_rule import Called, CallNode, dense, permuted, strides, template_axes, triple, window_of
from mxc.compiler.kernel.ir import Value, apply, cast, computing_dtype, const
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.kernel.window_rule import WindowNode, all_of, plus, times
from mxc.compiler.operators.pooling.shape import Windows, windows
from mxc.compiler.ops.dtypes import lowest
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape


def _outside(dtype: str, empty: bool) -> Value:
    """The value that a maximum takes for an element outside of the image. empty: whether some windows lie outside
    altogether; their maximum is the lowest finite number."""
    if "float" in dtype:
        return const(lowest(dtype) if empty else float("-inf"), dtype)
    return const(int(np.iinfo(dtype).min), dtype)


def pooling_window(c: WindowNode, params: Params) -> Value:
    """Maximum, average, sum or p-norm over windows; what lies in the padding takes no part in a maximum.

    The divisor of an average counts the window's elements inside the padded image (`count_include_pad`, the default) or
    inside the image; what a `full` pooling convention adds beyond the padding is never counted.
    """
    size = c.shape(0)
    geometry = windows(params, size)
    place = list(c.index)
    inside: list[Value] = []
    for i, step in enumerate(c.window):
        d = geometry.first + i
        kernel, stride, pad = geometry.kernel[i], geometry.stride[i], geometry.pad[i]
        start = apply("add", times(c.index[d], stride), step)
        place[d] = plus(start, -pad)
        if pad:
            inside.append(apply("ge", place[d], number(0)))
        if (c.out_shape[d] - 1) * stride + kernel - pad > size[d]:
            inside.append(apply("lt", place[d], number(size[d])))
    when = all_of(inside)
    wide = computing_dtype(c.out_dtype)
    if params.pool_type == "max":
        last = [(n - 1) * s - p for n, s, p in zip(c.out_shape[geometry.first:], geometry.stride, geometry.pad,
                                                   strict=False)]
        empty = any(start >= n for start, n in zip(last, size[geometry.first:], strict=False))
        fill = None if when is None else _outside(c.dtype(0), empty)
        return c.accumulate("max", c.load(0, place, when, fill))
    element = cast(c.load(0, place, when), wide)
    if params.pool_type == "lp":
        power = int(params.p_value)
        return cast(_p_root(c.accumulate("sum", _power(element, power)), power), c.out_dtype)
    total = c.accumulate("sum", element)
    if params.pool_type == "avg":
        total = apply("div", total, cast(_divisor(params, geometry, c.index, c.out_shape, size), wide))
    return cast(total, c.out_dtype)


def _power(value: Value, power: int) -> Value:
    result = value
    for _ in range(power - 1):
        result = apply("mul", result, value)
    return result


def _p_root(total: Value, power: int) -> Value:
    if power == 1:
        return total
    if power == 2:
        return apply("sqrt", total)
    return apply("cbrt", total)


def _divisor(params: Params, geometry: Windows, index: Sequence[Value], out_shape: Shape, size: Shape) -> Value:
    """How many elements the average at an output index is over: the product over the spatial axes of the length of the
    window clipped to the padded image, or to the image."""
    include = params.count_include_pad is None or bool(params.count_include_pad)
    count: Value = number(1)
    for i, (kernel, stride, pad) in enumerate(zip(geometry.kernel, geometry.stride, geometry.pad, strict=True)):
        d = geometry.first + i
        start = times(index[d], stride)  # the place in the padded image where the window begins
        end = plus(start, kernel)
        if (out_shape[d] - 1) * stride + kernel > size[d] + 2 * pad:
            end = apply("min", end, number(size[d] + 2 * pad))
        if not include and pad:
            start = apply("max", start, number(pad))
            end = apply("min", end, number(size[d] + pad))
        length = number(kernel) if end is plus(start, kernel) else apply("sub", end, start)
        if (out_shape[d] - 1) * stride >= size[d] + pad or (not include and kernel <= pad):
            length = apply("max", length, number(1))  # A window beyond the image has the length 0, and the sum 0.
        count = length if count is number(1) else apply("mul", count, length)
    return count


def avg_pool_grad_window(c: WindowNode, params: Params) -> Value:
    """Each input element gets the output gradient of every window that covers it, over that window's divisor."""
    out = c.shape(0)
    geometry = windows(params, c.out_shape)
    place = list(c.index)
    inside: list[Value] = []
    for i, step in enumerate(c.window):
        d = geometry.first + i
        kernel, stride, pad = geometry.kernel[i], geometry.stride[i], geometry.pad[i]
        # The windows that may cover the element, from the last one on; numbered from `reach` on, to be above 0.
        reach = -(-kernel // stride)
        padded = plus(c.index[d], pad)
        number_of = apply("sub", plus(apply("div", padded, number(stride)) if stride > 1 else padded, reach), step)
        if kernel % stride:
            offset = apply("add", apply("mod", padded, number(stride)), times(step, stride))
            inside.append(apply("lt", offset, number(kernel)))
        inside.append(apply("ge", number_of, number(reach)))
        inside.append(apply("lt", number_of, number(reach + out[d])))
        place[d] = plus(number_of, -reach)
    wide = computing_dtype(c.out_dtype)
    when = all_of(inside)
    gradient = cast(c.load(0, place, when), wide)
    if params.pool_type == "avg":
        divisor = _divisor(params, geometry, place, out, c.out_shape)
        # Outside of the output the divisor has no meaning, and may be 0.
        divisor = apply("max", divisor, number(1))
        gradient = apply("div", gradient, cast(divisor, wide))
    return cast(c.accumulate("sum", gradient), c.out_dtype)


def pool_spread_call(c: CallNode, params: Params) -> Called:
    """Channels come second."""
    out = c.shape(0)
    divisor = "none" if params.pool_type == "sum" else "inside" if params.count_include_pad is False else "padded"
    window = window_of(params, c.out_shape, out, out[1])
    return calls.pool_spread(c.dtype(0), window, strides(out), divisor), template_axes(out)


def max_pool_grad_call(c: CallNode, params: Params) -> Called:
    """Channels come second, or last where the layout says so: the template takes any strides."""
    data, out = c.shape(0), c.shape(1)
    rank = len(data)
    last = params.layout is not None and str(params.layout).endswith("C")
    order = (0, rank - 1, *range(1, rank - 1)) if last else tuple(range(rank))
    window = window_of(params, permuted(data, order), permuted(out, order), data[order[1]])
    moved = [permuted(dense(shape), order) for shape in (data, out)]
    data_strides, out_strides = ((*s[:2], *triple(s[2:], 0)) for s in moved)
    axes = [0] * rank
    for template_axis, axis in zip(template_axes(data), order, strict=True):
        axes[axis] = template_axis
    return calls.max_pool_grad(c.dtype(0), window, data_strides, out_strides), axes
