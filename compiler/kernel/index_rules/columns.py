"""The index rule of im2col."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index, unflatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.shapes.columns import column_geometry, column_windows
from mxc.compiler.ops.table import Params


def im2col(c: Context, params: Params, index: Index) -> Value:
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
