"""The code of one eager operator: a graph of one node, compiled."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.runtime import costs, faults, runner
from mxc.runtime.context import Context
from mxc.runtime.step_table import StepTable
from mxc.runtime.storage import MemoryBlock

if TYPE_CHECKING:
    from mxc.compiler.api import Compiled
    from mxc.compiler.targets.protocol import KernelTarget

Call = Callable[[], None]


class Code:
    """Phases of a plan as one table, which gets the addresses of its arrays in each call. Tables that no call uses are
    kept.

    small, brief: see `engine.place`. is_plain: whether the plan makes its only output of the inputs alone, and raises
    nothing.
    """

    def __init__(self, made: Compiled, phases: Sequence[str] = ("prepare", "forward")):
        self._compiled, plan = made, made.plan  # the kernels live as long as it does
        steps, address = [step for phase in phases for step in plan.steps_of(phase)], made.library.address
        self._rows = [(address(s.kernel), [*[0] * len(s.buffers), *s.numbers(address)], s.units) for s in steps]
        # of each buffer the pool, the position in what is given or in the pool's memory, and where tables have it
        self._places: list[tuple[str, int, list[tuple[int, int]]]] = []
        for number, b in enumerate(plan.buffers):
            users = [(row, k) for row, s in enumerate(steps) for k, used in enumerate(s.buffers) if used == number]
            pool, place = ("input", int(b.name[1:])) if b.pool in ("argument", "aux") else \
                ("output", int(b.name)) if b.pool == "output" else (b.pool, b.offset)
            if users:
                self._places.append((pool, place, users))
        self._scratch, self._statuses = plan.scratch_bytes, plan.status_bytes
        self._raising = faults.raising(plan, steps)
        self._plan, self._idle = plan, list[tuple[StepTable, Call]]()
        self.prepared_bytes = plan.prepared_bytes
        cost = sum(costs.of_phase(plan, phase) for phase in phases)
        self.small, self.brief = costs.is_small(cost), costs.is_brief(cost)
        used = [b for b in plan.buffers if b.pool not in ("argument", "aux", "arena", "prepared")]
        self.is_plain = len(used) == 1 and used[0].pool == "output" and not self._raising

    def run(self, inputs: Sequence[int], outputs: Sequence[int], where: Context, draw: tuple[int, int],
            prepared: int = 0) -> None:
        """Compute what the phases make. inputs, outputs: their addresses. where: the device whose memory the plan may
        use. draw: seed and offset of the numbers that are drawn. prepared: the address of what prepare steps made, or
        make, if that is to be kept."""
        places = {"prepared": prepared} if prepared else {}
        sizes = ("arena", self._plan.arena_bytes), ("prepared", 0 if prepared else self.prepared_bytes)
        blocks = [(pool, MemoryBlock(nbytes, where)) for pool, nbytes in sizes if nbytes]
        places.update((pool, block.address) for pool, block in blocks)
        if not self.is_plain:
            seed, statuses = np.array(draw, np.int64), np.zeros(self._statuses // faults.STATUS, np.int64)
            places |= {"seed": seed.__array_interface__["data"][0], "status": statuses.__array_interface__["data"][0]}
        try:
            table, call = self._idle.pop()
        except IndexError:  # all are in use by other threads
            table = StepTable(self._rows, 0, self._scratch)
            call = runner.bound(table, self.small)
        for pool, position, users in self._places:
            address = inputs[position] if pool == "input" else outputs[position] if pool == "output" else \
                places[pool] + position
            for row, argument in users:
                table.put(row, argument, address)
        if self._scratch:
            scratch = MemoryBlock(self._scratch * runner.num_threads(), where)
            table.lend(scratch.address)
        call()
        self._idle.append((table, call))
        if self._raising:
            faults.check(self._raising, statuses)


def compiled(node: Node, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], count: int, is_train: bool,
             keeps: bool = False, target: KernelTarget | None = None) -> Compiled | None:
    """A node's operator, compiled for inputs of these shapes and dtypes; its first `count` outputs. None where some of
    it would run as Python. keeps, target: see `compile_graph`. Raises MXNetError where the target does not serve it."""
    from mxc.compiler.api import compile_graph  # only now: small arrays need no compiler

    assert node.op is not None
    variables = [Node(None, f"i{k}") for k in range(len(shapes))]
    made = Node(node.op, "operator", node.op.attrs_of(node.params), node.params, [Entry(v, 0) for v in variables])
    graph = Graph([Entry(made, i) for i in range(count)])
    found = compile_graph(graph, {v.name: s for v, s in zip(variables, shapes, strict=True)},
                          {v.name: d for v, d in zip(variables, dtypes, strict=True)}, {}, is_train, target, keeps)
    outputs = {b.name for b in found.plan.buffers if b.pool == "output"}
    if any(s.host is not None for s in found.plan.steps) or outputs != {str(i) for i in range(count)}:
        return None
    return found
