"""At how many places a node reads its inputs for one element of its output: found by asking its index rule."""
from __future__ import annotations

import functools
from collections.abc import Sequence

from mxc.compiler.graph.graph import Entry, Graph, Shape
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import INDEX, Value
from mxc.compiler.ops.operator import Operator, Params

REMEMBERED = 512  # answers that are kept: fusion asks for a node again with every group that it might join


class _Asked:
    """What an index rule sees (kernel/index_rule.py); notes at which places it loads each input."""

    def __init__(self, output: int, shapes: Sequence[Shape], dtypes: Sequence[str]):
        """The facts of the inputs, then those of the output."""
        self.output, self.count = output, len(shapes) - 1
        self.out_shape, self.out_dtype = shapes[-1], dtypes[-1]
        self.shape, self.dtype = shapes.__getitem__, dtypes.__getitem__
        self.places: list[set[tuple[Value, ...]]] = [set() for _ in range(self.count)]

    def seed(self, position: int) -> Value:
        return ir.load(0, ir.const(position, INDEX), "int64")

    def load(self, k: int, index: Sequence[Value], when: Value | None = None, fill: Value | None = None) -> Value:
        self.places[k].add(tuple(index))
        return ir.make("load", tuple(index), self.dtype(k), k)  # never computed, but it may be part of another index


def places_read(graph: Graph, entry: Entry) -> tuple[int, ...]:
    """For each input of a node with an index rule, at how many places one element of `entry` reads it."""
    node = entry.node
    assert node.op is not None
    facts = [*node.inputs, entry]
    return _places(node.op, node.params, entry.index, tuple(map(graph.shape, facts)), tuple(map(graph.dtype, facts)))


@functools.lru_cache(REMEMBERED)
def _places(op: Operator, params: Params, output: int, shapes: tuple[Shape, ...],
            dtypes: tuple[str, ...]) -> tuple[int, ...]:
    rule = op.rule("index")
    assert rule is not None, op
    asked = _Asked(output, shapes, dtypes)
    rule(asked, params, tuple(ir.axis(i) for i in range(len(asked.out_shape))))
    return tuple(map(len, asked.places))
