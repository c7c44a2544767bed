"""Index rules and windows of operators that resample images."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode
from mxc.compiler.kernel.ir import Value, apply, cast, computing_dtype, const
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.kernel.window_rule import WindowNode, all_of, plus, times
from mxc.compiler.ops.operator import Params


def source(place: Value, size: int, out: int, align_corners: bool, dtype: str) -> tuple[Value, Value]:
    """Where element `place` of `out` lies among `size`: the element at or before it, and how far behind that one.

    With align_corners the first and last elements lie on each other, else the images' edges do, and a place before the
    first element counts as on it. The place is computed in float32, as MXNet does; the distance is in `dtype`.
    """
    if out == 1:
        return number(0), ir.const(0.0, dtype)

    def real(value: Value) -> Value:
        return ir.cast(value, "float32")

    if align_corners:
        position = ir.apply("mul", ir.apply("div", real(number(size - 1)), real(number(out - 1))), real(place))
    else:
        half, ratio = ir.const(0.5, "float32"), ir.apply("div", real(number(size)), real(number(out)))
        position = ir.apply("sub", ir.apply("mul", ratio, ir.apply("add", real(place), half)), half)
        position = ir.apply("max", position, ir.const(0.0, "float32"))
    before = ir.apply("min", ir.cast(position, ir.INDEX), number(size - 1))
    return before, ir.cast(ir.apply("sub", position, real(before)), dtype)


def bilinear_resize(c: IndexNode, params: Params, index: Index) -> Value:
    """The four elements around the place, weighted by how near it is along both axes; in the same size the data."""
    if c.shape(0)[2:] == c.out_shape[2:]:  # Here a neighbour's weight is 0, which times NaN or infinity would be NaN.
        return c.load(0, index)
    wide = ir.computing_dtype(c.out_dtype)
    places, weights = [], []
    for axis in (2, 3):
        size = c.shape(0)[axis]
        before, distance = source(index[axis], size, c.out_shape[axis], params.align_corners, wide)
        after = ir.apply("min", ir.apply("add", before, number(1)), number(size - 1))
        places.append((before, after))
        weights.append((ir.apply("sub", ir.const(1.0, wide), distance), distance))
    total = ir.const(0.0, wide)
    for y, down in zip(places[0], weights[0], strict=True):
        row = ir.const(0.0, wide)
        for x, across in zip(places[1], weights[1], strict=True):
            element = ir.cast(c.load(0, (*index[:2], y, x)), wide)
            row = ir.apply("add", row, ir.apply("mul", across, element))
        total = ir.apply("add", total, ir.apply("mul", down, row))
    return ir.cast(total, c.out_dtype)


def adaptive_pool_window(c: WindowNode, params: Params) -> Value:
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
    element = cast(c.load(0, place, all_of(inside)), wide)
    if params.pool_type == "avg":
        return cast(apply("div", c.accumulate("sum", element), count), c.out_dtype)
    return cast(c.accumulate("sum", apply("div", element, count)), c.out_dtype)


def adaptive_bounds(index: Value, size: int, out: int) -> tuple[Value, Value]:
    """The first element of window `index` of `out` over `size` elements, and the one behind its last."""
    after = times(plus(index, 1), size)
    return (apply("div", times(index, size), number(out)), apply("div", plus(after, out - 1), number(out)))


def bilinear_resize_grad_window(c: WindowNode, params: Params) -> Value:
    """Each input element gets the output gradient of every element that was read from it, by the same weights.

    Along an axis those are the elements that lie less than one input element away, and their neighbours: one window.
    Along an axis of the same size it is the element itself.
    """
    out = c.shape(0)
    wide = computing_dtype(c.out_dtype)
    place = list(c.index)
    inside: list[Value] = []
    weights: list[Value] = []
    for i, step in enumerate(c.window):
        d = 2 + i
        size = c.out_shape[d]
        if size == out[d]:
            continue
        place[d] = apply("add", _first_reader(c.index[d], size, out[d], params.align_corners), step)
        inside.append(apply("lt", place[d], number(out[d])))
        before, distance = source(place[d], size, out[d], params.align_corners, wide)
        after = apply("min", plus(before, 1), number(size - 1))
        zero, one = const(0.0, wide), const(1.0, wide)
        weights.append(apply("add", apply("where", apply("eq", before, c.index[d]), apply("sub", one, distance), zero),
                             apply("where", apply("eq", after, c.index[d]), distance, zero)))
    element = cast(c.load(0, place, all_of(inside)), wide)
    for weight in weights:
        element = apply("mul", element, weight)
    return cast(c.accumulate("sum", element), c.out_dtype)


def _first_reader(index: Value, size: int, out: int, align_corners: bool) -> Value:
    """The last output element at or before the input element in front of `index`; see most_readers in graph.py."""
    if size == 1 or out == 1:
        return number(0)
    if align_corners:
        return apply("div", times(apply("sub", apply("max", index, number(1)), number(1)), out - 1), number(size - 1))
    edge = apply("max", apply("sub", times(index, 2 * out), number(out + size)), number(0))
    return apply("div", edge, number(2 * size))
