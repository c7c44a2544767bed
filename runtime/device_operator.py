"""Operators that a program calls one by one on arrays of a GPU: each is compiled as a graph of one node."""
from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.plan import Buffer
from mxc.compiler.system.forks import Lock
from mxc.runtime.array import Array
from mxc.runtime.context import Context
from mxc.runtime.eager import Specialization
from mxc.runtime.eager_code import compiled
from mxc.runtime.executor_memory import Memory
from mxc.runtime.executor_plan import BoundPlan


class DeviceOperator:
    """A specialization, compiled for a GPU. Raises MXNetError where it cannot be."""

    def __init__(self, special: Specialization, context: Context):
        made = compiled(special.node, special.in_shapes, special.in_dtypes, len(special.shapes), special.is_train,
                        target=context.target())
        if made is None:
            raise MXNetError(f"operator {special.op.name} runs as Python")
        self._made, self._context, self._special = made, context, special
        places = {(b.pool, b.name): i for i, b in enumerate(made.plan.buffers)}
        names = [("argument", f"i{i}") for i in range(len(special.in_shapes))]
        aux = [("aux", name) for _, name in names]
        self._inputs = [places.get(given, places.get(state)) for given, state in zip(names, aux, strict=True)]
        self._outputs = [places["output", str(i)] for i in range(len(special.shapes))]
        self._idle: list[tuple[BoundPlan, Array]] = []  # bound plans that no thread uses

    def _bound(self) -> tuple[BoundPlan, Array]:
        seed = Array.of(np.zeros(2, np.int64), context=self._context)

        def find(buffer: Buffer) -> Array | None:
            return seed if buffer.pool == "seed" else None

        changing = {i for i in (*self._inputs, *self._outputs) if i is not None}
        return BoundPlan(self._made, find, Memory(self._context), self._special.is_train, changing=changing), seed

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array], draw: tuple[int, int]) -> None:
        """Compute the outputs, in the middle of work that reads the inputs and writes these."""
        try:
            plan, seed = self._idle.pop()
        except IndexError:
            plan, seed = self._bound()
        now = {i: a for i, a in zip((*self._inputs, *self._outputs), (*inputs, *outputs), strict=True) if i is not None}
        plan.rebind(now)
        seed.memory[:] = draw
        try:
            plan.run("forward", draw)
        finally:
            for position in now:
                plan.arrays[position] = None
        self._idle.append((plan, seed))


_found: weakref.WeakKeyDictionary[Specialization, dict[Context, DeviceOperator | None]] = weakref.WeakKeyDictionary()
_lock = Lock()


def compute(special: Specialization, inputs: Sequence[Array], results: Sequence[Array], draw: tuple[int, int]) -> None:
    """Write the first outputs of an operator on a GPU's arrays. Where there is no code for it, and where arrays have no
    elements, the operator's reference computes it on the host."""
    context = (*results, *inputs)[0].context
    code = None if special.is_empty or special.refusal else _code(special, context)
    if code is None:
        special.compute(inputs, results, None, draw)
        return
    read = {a.variable for a in inputs}
    facts = list(zip(special.shapes, special.dtypes, strict=True))
    targets = [r if r.dtype == d and r.variable not in read else Array.empty(s, d, context)
               for r, (s, d) in zip(results, facts, strict=False)]
    hidden = [Array.empty(s, d, context) for s, d in facts[len(results):]]
    code.run(inputs, [*targets, *hidden], draw)
    for result, target in zip(results, targets, strict=True):
        if target is not result:
            result.fill(target)


def _code(special: Specialization, context: Context) -> DeviceOperator | None:
    with _lock:
        known = _found.setdefault(special, {})
        if context not in known:
            try:
                known[context] = DeviceOperator(special, context)
            except MXNetError:
                if special.is_only_code:
                    raise
                known[context] = None
        return known[context]
