"""Index rules of operators that make values from an element's place alone."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index, flatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.philox import TURN
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
    """Uniform in [0, 1) at the element's row-major position: the upper 24 bits of the generator's word in float32; in
    float64 27 bits of it and 26 of another."""
    position = ir.cast(flatten(index, c.out_shape), "int64")

    def bits(count: int, place: Value) -> Value:
        word = ir.make("rand", (c.seed(0), _stream(c, params), place), "uint32")
        upper = ir.cast(ir.apply("shr", word, ir.const(32 - count, "uint32")), "int32")
        return ir.cast(upper, c.out_dtype)

    if c.out_dtype == "float32":
        return ir.apply("mul", bits(24, position), ir.const(2.0**-24, "float32"))
    high = ir.apply("mul", bits(27, position), ir.const(2.0**26, "float64"))
    low = bits(26, ir.apply("add", position, ir.const(1 << TURN, "int64")))
    return ir.apply("mul", ir.apply("add", high, low), ir.const(2.0**-53, "float64"))


def key(c: Context, params: Params, index: Index) -> Value:
    """The run's seed, and the offset of the stream."""
    return ir.apply("where", ir.apply("eq", index[0], number(0)), c.seed(0), _stream(c, params))


def _stream(c: Context, params: Params) -> Value:
    return ir.apply("add", c.seed(1), ir.const(params.offset, "int64"))
