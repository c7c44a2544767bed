"""The window of LRN's sums."""
from __future__ import annotations

from mxc.compiler.kernel.ir import Value, apply, cast, computing_dtype
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.kernel.window_rule import WindowNode, plus
from mxc.compiler.ops.operator import Params


def squares_around_window(c: WindowNode, params: Params) -> Value:
    """The sum of the squares of as many neighbours along axis 2 as the kernel has elements, half of them before."""
    place = list(c.index)
    place[2] = plus(apply("add", place[2], c.window[0]), -(params.kernel[0] // 2))
    inside = apply("and", apply("ge", place[2], number(0)), apply("lt", place[2], number(c.shape(0)[2])))
    element = cast(c.load(0, place, inside), computing_dtype(c.out_dtype))
    return cast(c.accumulate("sum", apply("mul", element, element)), c.out_dtype)
