"""Window reductions (pooling and the gradient of average pooling) as loop kernels.

A window rule (`window:` in ops.yaml) is `def NAME(c, params) -> Value`: `c.index` is the index of the output's element,
`c.window` one axis for each spatial dimension of the window, `c.load` reads the input, `c.accumulate(combine, body)`
reduces over the window.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.graph.graph import Node, Shape
from mxc.compiler.kernel.index_rules.resize import source
from mxc.compiler.kernel.ir import INDEX, Value, apply, cast, computing_dtype, const
from mxc.compiler.ops.shapes.pooling import Windows, windows
from mxc.compiler.ops.table import Params

if TYPE_CHECKING:
    from mxc.compiler.passes.lower_group import Window


def number(value: int) -> Value:
    return const(value, INDEX)


def plus(value: Value, offset: int) -> Value:
    if offset == 0:
        return value
    return apply("add", value, number(offset)) if offset > 0 else apply("sub", value, number(-offset))


def times(value: Value, factor: int) -> Value:
    return value if factor == 1 else apply("mul", value, number(factor))


def _all(conditions: Sequence[Value]) -> Value | None:
    """The conjunction of `conditions`, None when there are none."""
    result: Value | None = None
    for condition in conditions:
        result = condition if result is None else apply("and", result, condition)
    return result


def _outside(dtype: str, empty: bool) -> Value:
    """What a maximum takes for an element outside of the image. empty: some windows lie outside altogether, and have
    the lowest finite number as their maximum."""
    if dtype.startswith("float"):
        return const(float(np.finfo(dtype).min) if empty else float("-inf"), dtype)
    return const(int(np.iinfo(dtype).min), dtype)


def pooling(c: Window, params: Params) -> Value:
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
    when = _all(inside)
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
        return cast(_root(c.accumulate("sum", _power(element, power)), power), c.out_dtype)
    total = c.accumulate("sum", element)
    if params.pool_type == "avg":
        total = apply("div", total, cast(_divisor(params, geometry, c.index, c.out_shape, size), wide))
    return cast(total, c.out_dtype)


def _power(value: Value, power: int) -> Value:
    result = value
    for _ in range(power - 1):
        result = apply("mul", result, value)
    return result


def _root(total: Value, power: int) -> Value:
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
        start = times(index[d], stride)  # in the padded image
        end = plus(start, kernel)
        if (out_shape[d] - 1) * stride + kernel > size[d] + 2 * pad:
            end = apply("min", end, number(size[d] + 2 * pad))
        if not include and pad:
            start = apply("max", start, number(pad))
            end = apply("min", end, number(size[d] + pad))
        length = number(kernel) if end is plus(start, kernel) else apply("sub", end, start)
        if (out_shape[d] - 1) * stride >= size[d] + pad or (not include and kernel <= pad):
            length = apply("max", length, number(1))  # of a window beyond the image, whose sum is 0
        count = length if count is number(1) else apply("mul", count, length)
    return count


def avg_pool_grad(c: Window, params: Params) -> Value:
    """Each input element gets the output gradient of every window that covers it, over that window's divisor."""
    out = c.shape(0)
    geometry = windows(params, c.out_shape)
    place = list(c.index)
    inside: list[Value] = []
    for i, step in enumerate(c.window):
        d = geometry.first + i
        kernel, stride, pad = geometry.kernel[i], geometry.stride[i], geometry.pad[i]
        # shifted by `kernel` strides, so that nothing that is divided is negative
        shifted = apply("sub", plus(c.index[d], pad + kernel * stride), step)
        if stride > 1:
            inside.append(apply("eq", apply("mod", shifted, number(stride)), number(0)))
        quotient = apply("div", shifted, number(stride)) if stride > 1 else shifted
        inside.append(apply("ge", quotient, number(kernel)))
        inside.append(apply("lt", quotient, number(kernel + out[d])))
        place[d] = plus(quotient, -kernel)
    wide = computing_dtype(c.out_dtype)
    when = _all(inside)
    gradient = cast(c.load(0, place, when), wide)
    if params.pool_type == "avg":
        divisor = _divisor(params, geometry, place, out, c.out_shape)
        # outside of the output the divisor is meaningless, and may be 0
        divisor = apply("max", divisor, number(1))
        gradient = apply("div", gradient, cast(divisor, wide))
    return cast(c.accumulate("sum", gradient), c.out_dtype)


def adaptive_pool(c: Window, params: Params) -> Value:
    """Element i of n along an axis is over input elements floor(i * m / n) to ceil((i + 1) * m / n), of m.

    avg: their mean. spread: the sum of each over the length of its own window among the outputs, which is the gradient
    of avg: element y of m takes part in just the windows floor(y * n / m) to ceil((y + 1) * n / m).
    """
    size = c.shape(0)
    place = list(c.index)
    inside: list[Value] = []
    lengths: list[Value] = []
    for i, step in enumerate(c.window):
        d = 2 + i
        start, end = adaptive_bounds(c.index[d], size[d], c.out_shape[d])
        place[d] = apply("add", start, step)
        inside.append(apply("lt", place[d], end))
        if params.pool_type == "spread":
            start, end = adaptive_bounds(place[d], c.out_shape[d], size[d])
        lengths.append(apply("sub", end, start))
    wide = computing_dtype(c.out_dtype)
    count = cast(apply("mul", *lengths), wide)
    element = cast(c.load(0, place, _all(inside)), wide)
    if params.pool_type == "avg":
        return cast(apply("div", c.accumulate("sum", element), count), c.out_dtype)
    return cast(c.accumulate("sum", apply("div", element, count)), c.out_dtype)


def adaptive_bounds(index: Value, size: int, out: int) -> tuple[Value, Value]:
    """The first element of window `index` of `out` over `size` elements, and the one behind its last."""
    after = times(plus(index, 1), size)
    return (apply("div", times(index, size), number(out)), apply("div", plus(after, out - 1), number(out)))


def bilinear_resize_grad(c: Window, params: Params) -> Value:
    """Each input element gets the output gradient of every element that was read from it, by the same weights.

    Along an axis those are the elements that lie less than one input element away, and their neighbours: one window.
    """
    out = c.shape(0)
    wide = computing_dtype(c.out_dtype)
    place = list(c.index)
    inside: list[Value] = []
    weights: list[Value] = []
    for i, step in enumerate(c.window):
        d = 2 + i
        size = c.out_shape[d]
        place[d] = apply("add", _first_reader(c.index[d], size, out[d], params.align_corners), step)
        inside.append(apply("lt", place[d], number(out[d])))
        before, distance = source(place[d], size, out[d], params.align_corners, wide)
        after = apply("min", plus(before, 1), number(size - 1))
        zero, one = const(0.0, wide), const(1.0, wide)
        weights.append(apply("add", apply("where", apply("eq", before, c.index[d]), apply("sub", one, distance), zero),
                             apply("where", apply("eq", after, c.index[d]), distance, zero)))
    element = cast(c.load(0, place, _all(inside)), wide)
    return cast(c.accumulate("sum", apply("mul", element, apply("mul", *weights))), c.out_dtype)


def _first_reader(index: Value, size: int, out: int, align_corners: bool) -> Value:
    """The last output element at or before the input element in front of `index`; see passes/resizing.py."""
    if size == 1 or out == 1:
        return number(0)
    if align_corners:
        return apply("div", times(apply("sub", apply("max", index, number(1)), number(1)), out - 1), number(size - 1))
    edge = apply("max", apply("sub", times(index, 2 * out), number(out + size)), number(0))
    return apply("div", edge, number(2 * size))


def window_extents(node: Node) -> Shape:
    """The extents of a window: the operator's kernel."""
    return tuple(node.params.kernel)
