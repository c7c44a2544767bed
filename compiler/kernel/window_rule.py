"""What a window rule sees of its node, and arithmetic that rules share.

Window reductions (pooling and the gradient of average pooling) become loop kernels. A window rule (`window:` in
ops.yaml) is `def NAME(c, params) -> Value`: `c.index` is the index of the output's element, `c.window` one axis for
each spatial dimension of the window, `c.load` reads the input, `c.accumulate(combine, body)` reduces over the window.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mxc.compiler.kernel.index_rule import Index, IndexNode
from mxc.compiler.kernel.ir import Value, apply
from mxc.compiler.kernel.simplify_index import index as number


class WindowNode(IndexNode, Protocol):
    """What a window rule sees of its node: the output's index and the window's axes too."""

    index: Index
    window: tuple[Value, ...]

    def accumulate(self, combine: str, body: Value) -> Value: ...


def plus(value: Value, offset: int) -> Value:
    if offset == 0:
        return value
    return apply("add", value, number(offset)) if offset > 0 else apply("sub", value, number(-offset))


def times(value: Value, factor: int) -> Value:
    return value if factor == 1 else apply("mul", value, number(factor))


def all_of(conditions: Sequence[Value]) -> Value | None:
    """The conjunction of `conditions`, None when there are none."""
    result: Value | None = None
    for condition in conditions:
        result = condition if result is None else apply("and", result, condition)
    return result
