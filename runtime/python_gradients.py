"""Operators whose gradient is a Python function: what the tape holds of `autograd.Function` and of custom operators."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.gradient_rule import Gradient, Shape
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops.operator import InputSpec, Kind, Operator
from mxc.runtime.array import Array

Function = Callable[[Sequence[Array]], list[Array]]


def _inputs(count: int) -> tuple[InputSpec, ...]:
    return tuple(InputSpec(f"data{i}") for i in range(count))


class HostBackward(Operator):
    """The gradient of one step: `function` takes what flows into each output and gives what flows into each input.

    As an operator it has the step's inputs as inputs too, although the function gets only the former: the result may
    depend on them, and a gradient through this operator, which has none, is then refused instead of being lost.
    """

    def __init__(self, name: str, count: int, heads: int, function: Function):
        super().__init__(f"_backward_{name}", Kind.OPAQUE, _inputs(heads + count),
                         outputs=tuple(f"grad{i}" for i in range(count)))
        self.function, self.heads = function, heads
        self.facts: list[tuple[Shape, str]] = []

    def rule(self, role: str) -> Callable | None:
        place = {"shape": 0, "dtype": 1}.get(role)
        return None if place is None else lambda params, ins, outs: (ins, [fact[place] for fact in self.facts])

    def call(self, arrays: Sequence[Array]) -> list[Array]:
        """What flows into each input. Raises MXNetError for a wrong number, shape or dtype of results."""
        results = self.function(arrays[:self.heads])
        if len(results) != len(self.facts):
            raise MXNetError(f"{self.name} must return as many arrays as forward takes: expected {len(self.facts)}, "
                             f"got {len(results)}")
        for i, (result, fact) in enumerate(zip(results, self.facts, strict=True)):
            if (result.shape, result.dtype) != fact:
                raise MXNetError(f"{self.name}: what flows into input {i} has the shape {result.shape} and dtype "
                                 f"{result.dtype}; the input has {fact[0]} and {fact[1]}")
        return results


class HostOperator(Operator):
    """A step that Python ran; `backward` has its gradient."""

    def __init__(self, name: str, count: int, results: int, backward: HostBackward):
        super().__init__(name, Kind.OPAQUE, _inputs(count), outputs=tuple(f"output{i}" for i in range(results)))
        self.backward = backward

    def rule(self, role: str) -> Callable | None:
        return self._grad if role == "grad" else None

    def _grad(self, g: Gradient) -> list[Entry | None]:
        self.backward.facts = [(g.shape(e), g.dtype(e)) for e in g.inputs]
        heads = [g.grad(i) for i in range(len(g.outputs))]
        node = Node(self.backward, f"{g.node.name}_backward", inputs=[*heads, *g.inputs])
        return list(g.builder.add(node))
