"""Index rules of Winograd's convolution."""
from __future__ import annotations

import numpy as np

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops import winograd
from mxc.compiler.ops.table import Params


def winograd_factors(c: Context, params: Params, index: Index) -> Value:
    """G g G' as a matrix times the flat g: the product of an element of G for the rows and one for the columns."""
    (rows, columns), (taps_down, taps_across) = (_pair(i, n) for i, n in zip(index, winograd.KERNEL.shape, strict=True))
    return ir.apply("mul", _element(rows, taps_down), _element(columns, taps_across))


def _pair(flat: Value, extent: int) -> tuple[Value, Value]:
    return ir.apply("div", flat, number(extent)), ir.apply("mod", flat, number(extent))


def _element(row: Value, column: Value) -> Value:
    """KERNEL[row, column]"""
    flat = ir.apply("add", ir.apply("mul", row, number(winograd.KERNEL.shape[1])), column)
    result = ir.const(0.0, "float32")
    for place, value in enumerate(winograd.KERNEL.ravel()):
        if value:
            here = ir.apply("eq", flat, number(place))
            result = ir.apply("where", here, ir.const(float(np.float32(value)), "float32"), result)
    return result
