"""Index rules of operators that resample images."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.table import Params


def source(place: Value, size: int, out: int, align_corners: bool, dtype: str) -> tuple[Value, Value]:
    """Where element `place` of `out` lies among `size`: the element at or before it, and how far behind that one.

    With align_corners the first and last elements lie on each other, else the images' edges do, and what is before the
    first element counts as on it. In float32 as MXNet computes it; the distance in `dtype`.
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


def bilinear_resize(c: Context, params: Params, index: Index) -> Value:
    """The four elements around the place, weighted by how near it is along both axes; in the same size the data."""
    if c.shape(0)[2:] == c.out_shape[2:]:  # a weight of 0 beside NaN or an infinity would give NaN
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
