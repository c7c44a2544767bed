"""Index rules of operators that make values from an element's place alone."""
from __future__ import annotations

from mxc.compiler.kernel import ir, philox
from mxc.compiler.kernel.index_rules.context import Context, Index, flatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.table import Params


def _progression(params: Params, first: float, position: Value, dtype: str) -> Value:
    """first + step * (position // repeat), first and step cast to the dtype first."""
    start, step = (ir.const(number_as(n, dtype), dtype) for n in (first, params.step))
    place = ir.cast(ir.apply("div", position, number(params.repeat)), dtype)
    return ir.apply("add", start, ir.apply("mul", step, place))


def arange(c: Context, params: Params, index: Index) -> Value:
    """start + step * (i // repeat); with one number alone from 0 on."""
    return _progression(params, 0.0 if params.stop is None else params.start, index[0], c.out_dtype)


def arange_like(c: Context, params: Params, index: Index) -> Value:
    """start + step * (row-major position // repeat)."""
    return _progression(params, params.start, flatten(index, c.out_shape), c.out_dtype)


def rand(c: Context, params: Params, index: Index) -> Value:
    """Uniform in [0, 1) at the element's row-major position: of 24 bits in float32, of 53 in float64."""
    draw = philox.single if c.out_dtype == "float32" else philox.uniform
    return draw(c.seed(0), _stream(c, params), ir.cast(flatten(index, c.out_shape), "int64"))


def key(c: Context, params: Params, index: Index) -> Value:
    """The run's seed, and the offset of the stream."""
    return ir.apply("where", ir.apply("eq", index[0], number(0)), c.seed(0), _stream(c, params))


def _stream(c: Context, params: Params) -> Value:
    return ir.apply("add", c.seed(1), ir.const(params.offset, "int64"))
