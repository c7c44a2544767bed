"""Eager operators whose parameters stay as they are, as in the predictions of a model that is not hybridised: what an
operator makes of its parameters alone, as packed weights, is made once.

Such an operator is compiled as in a model that is bound for inference: its plan has one part for the parameters, and
one for the rest.
"""
from __future__ import annotations

import weakref
from collections.abc import Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Node
from mxc.compiler.system.forks import Lock
from mxc.runtime.array import Array
from mxc.runtime.eager_code import Code, compiled
from mxc.runtime.engine import Variable
from mxc.runtime.storage import MemoryBlock


class _Seen:
    """The parameters of an earlier call: their variables and versions, and their addresses, since all parts of an array
    have its variable. prepared: what was made of them; None as long as they came once."""

    __slots__ = ("addresses", "prepared", "variables", "versions")

    def __init__(self, variables: list[Variable], versions: list[int], addresses: list[int]):
        self.variables, self.versions, self.addresses = variables, versions, addresses
        self.prepared: MemoryBlock | None = None


class Steady:
    """An operator on inputs of given shapes and dtypes, outside of training; its first output. learned: the positions
    of its parameters and auxiliary states."""

    def __init__(self, node: Node, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], learned: Sequence[int]):
        self._node, self._shapes, self._dtypes, self._learned = node, shapes, dtypes, learned
        self._seen: weakref.WeakKeyDictionary[Array, _Seen] = weakref.WeakKeyDictionary()  # by the first parameter
        self._lock, self._is_tried = Lock(), False
        self._prepare: Code | None = None
        self._forward: Code | None = None

    def find(self, inputs: Sequence[Array]) -> tuple[Code, MemoryBlock] | None:
        """The code for inputs whose parameters are as they were in an earlier call, and what it reads in place of them;
        None where they are not, or nothing can be made of them alone."""
        if self._is_tried and self._forward is None:
            return None
        variables = [inputs[i].variable for i in self._learned]
        versions = []
        for variable in variables:
            if variable.busy is not None or variable.volatile:
                return None
            versions.append(variable.version)
        first, addresses = inputs[self._learned[0]], [inputs[i].address for i in self._learned]
        seen = self._seen.get(first)
        if seen is None or (seen.variables, seen.versions, seen.addresses) != (variables, versions, addresses):
            self._seen[first] = _Seen(variables, versions, addresses)
            return None
        if seen.prepared is None:
            seen.prepared = self._prepared(inputs)
        return None if seen.prepared is None or self._forward is None else (self._forward, seen.prepared)

    def forget(self, first: Array) -> None:
        """Let go of what was made of the parameters of which this is the first."""
        self._seen.pop(first, None)

    def _prepared(self, inputs: Sequence[Array]) -> MemoryBlock | None:
        with self._lock:
            if not self._is_tried:
                self._compile()
                self._is_tried = True
        if self._prepare is None:
            return None
        where = inputs[0].context.computing
        block = MemoryBlock(self._prepare.prepared_bytes, where)
        self._prepare.run([a.address for a in inputs], (), where, (0, 0), block.address)
        return block

    def _compile(self) -> None:
        try:
            made = compiled(self._node, self._shapes, self._dtypes, 1, False, keeps=True)
        except MXNetError:
            return
        if made is not None and made.plan.prepared_bytes and made.plan.steps_of("prepare"):
            forward = Code(made, ("forward",))
            if forward.is_plain:
                self._prepare, self._forward = Code(made, ("prepare",)), forward
