"""Numbers that take several draws each."""
from __future__ import annotations

from math import prod

from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call


def gamma(c: Context, params: Params) -> Call:
    """key, alpha (n, m) -> (n, each), m being 1 or each."""
    return _each("gamma", c)


def poisson(c: Context, params: Params) -> Call:
    """key, rate (n, m) -> (n, each), m being 1 or each."""
    return _each("poisson", c)


def _each(routine: str, c: Context) -> Call:
    count = prod(c.out_shapes[0])
    return call(routine, (count, count // prod(c.shape(1))))


def integers(c: Context, params: Params) -> Call:
    """key -> whole numbers, low <= x < high."""
    bits = (params.high - 1 - params.low).bit_length()
    mask = (1 << bits) - 1 if bits < 64 else -1
    return call("integers", (prod(c.out_shapes[0]), params.low, params.high, mask))


def zipfian(c: Context, params: Params) -> Call:
    """key -> classes (rows, n), tries (rows,)."""
    return call("zipfian", (*c.out_shapes[0], params.range_max))
