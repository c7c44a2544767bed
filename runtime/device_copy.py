"""Copies between devices that share no memory, as steps of the tape: gradients go back to where values came from."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops.operator import InputSpec, Kind, Operator
from mxc.runtime import tape
from mxc.runtime.array import Array
from mxc.runtime.context import Context

if TYPE_CHECKING:
    from mxc.compiler.graph.gradient_rule import Gradient


class DeviceCopy(Operator):
    """A copy from one device to another, of which one is a GPU."""

    def __init__(self, source: Context, target: Context):
        super().__init__("_copy_to_device", Kind.OPAQUE, (InputSpec("data"),))
        self.source, self.target = source, target

    def rule(self, role: str) -> Callable | None:
        if role == "grad":
            return self._grad
        return (lambda params, ins, outs: (ins, [ins[0]])) if role in ("shape", "dtype") else None

    def _grad(self, g: Gradient) -> list[Entry | None]:
        node = Node(_operator(self.target, self.source), f"{g.node.name}_backward", inputs=[g.grad(0)])
        return list(g.builder.add(node))

    def call(self, arrays: Sequence[Array]) -> list[Array]:
        """The copy, recorded while the thread records."""
        return [_recorded(self, arrays[0], arrays[0].copied(context=self.target))]


# One for each pair of devices: programs of gradients are remembered by their operators.
_operator = functools.cache(DeviceCopy)


def _recorded(op: DeviceCopy, array: Array, copy: Array) -> Array:
    if tape.state.recording:
        tape.record(op, op.make_params({}), [array], [copy])
    return copy


def record_copy(array: Array, copy: Array) -> Array:
    """Note, while recording, that `copy` was copied from `array`, which may be on another device; `copy`."""
    if array.context.gpu_number == copy.context.gpu_number:
        return tape.record_view("_copyto", {}, array, copy)
    return _recorded(_operator(array.context, copy.context), array, copy)
