"""The compiler's front door: a graph with shapes, dtypes and gradient requests in, a plan and loaded kernels out.

A plan that was made before comes from this process or the cache (stored_plans.py), so that a start that finds its plan
and its kernels there imports neither the passes nor what prints kernels.
"""
from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mxc.compiler import stored_plans
from mxc.compiler.graph.graph import Graph, Shape
from mxc.compiler.ops.operator import Operator
from mxc.compiler.plan import Plan
from mxc.compiler.system import env
from mxc.compiler.targets import kernel_target

if TYPE_CHECKING:
    from mxc.compiler.kernel.ir import Kernel, LoopKernel
    from mxc.compiler.planning import Planned
    from mxc.compiler.targets.launch import LoadedKernels
    from mxc.compiler.targets.protocol import KernelTarget, Launcher


@dataclass
class Compiled:
    """What `compile_graph` made. library: the kernels' code (`library.address(step.kernel)` is where it starts).

    seconds: of the whole compilation, code generation included. model: the graph that was compiled, as it was given.
    graph: what the passes made; kernels: by key; groups: the text of the fusion groups, a line each. Where the plan was
    there, these are made when they are asked for.
    """

    plan: Plan
    library: LoadedKernels
    seconds: float
    model: Graph = field(repr=False)
    make: Callable[[], Planned] = field(repr=False)

    @property
    def names(self) -> list[str]:
        """The names of the model's nodes, by the ids that `Step.origins` has."""
        return [node.name for node in self.model.nodes]

    @property
    def graph(self) -> Graph:
        return self.make().graph

    @property
    def kernels(self) -> dict[str, Kernel]:
        return self.make().kernels

    @property
    def groups(self) -> str:
        return self.make().groups


def compile_graph(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                  is_train: bool, target: KernelTarget | None = None, keeps: bool = True) -> Compiled:
    """Compile `graph` for arguments of these shapes and dtypes.

    graph: with facts, as `infer` gives it for these shapes and dtypes, or without.
    shapes, dtypes: by argument and auxiliary state; what is missing is inferred. grad_req: argument to "write", "add"
    or "null" (missing: "null"). is_train: operators in training mode. target: None for this machine's CPU.
    keeps: what the prepare part computes is kept from run to run; else parameters count as changing in every run.
    Raises MXNetError for what the graph, the shapes or the target do not allow.
    """
    start = time.perf_counter()
    target = target or kernel_target("cpu")
    known = stored_plans.description(graph, shapes, dtypes, grad_req, is_train, keeps, target)

    @functools.cache
    def make() -> Planned:
        from mxc.compiler.planning import plan_graph

        return plan_graph(graph, shapes, dtypes, grad_req, is_train, target, keeps)

    plan = stored_plans.read(known, graph, target, keeps)
    library = target.load_known(plan.kernels) if plan is not None else None
    if plan is None or library is None:
        planned = make()
        plan, library = planned.plan, target.load(planned.kernels)
        stored_plans.write(known, graph, target, plan, keeps)
    compiled = Compiled(plan, library, time.perf_counter() - start, graph, make)
    _print_summary(compiled)
    return compiled


def watch_passes(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                 is_train: bool, watch: Callable[[str, Graph, Graph], None] | None = None,
                 target: KernelTarget | None = None) -> Graph:
    """What the passes make of a graph, run as `compile_graph` does. watch: is told each one's name, the graph before it
    and after it. target: None for this machine's CPU."""
    from mxc.compiler import planning

    return planning.watch_passes(graph, shapes, dtypes, grad_req, is_train, target or kernel_target("cpu"), watch)


def compile_update(op: Operator, dtypes: Sequence[str], sizes: Sequence[int], out: str | None,
                   target: KernelTarget | None = None) -> tuple[int, tuple[int, ...], int, Launcher | None]:
    """Compile an operator that changes arrays in place (see `update_kernel`). target: None for this machine's CPU.
    Returns the address of its code, the integers that follow the buffers, the units of work, and what launches the
    code, if that is not the runtime's runner."""
    from mxc.compiler.kernel.updates import update_kernel

    return _loaded(update_kernel(op, dtypes, sizes, out), target or kernel_target("cpu"))


def compile_rows_update(op: Operator, dtypes: Sequence[str], count: int, inner: int,
                        ) -> tuple[int, tuple[int, ...], int]:
    """As `compile_update`, of `count` rows of `inner` elements (see `rows_update_kernel`), for this machine's CPU."""
    from mxc.compiler.kernel.updates import rows_update_kernel

    return _loaded(rows_update_kernel(op, dtypes, count, inner), kernel_target("cpu"))[:3]


def _loaded(loop: LoopKernel, target: KernelTarget) -> tuple[int, tuple[int, ...], int, Launcher | None]:
    from mxc.compiler.kernel.canonical import canonical

    kernel = canonical(loop)
    launch = target.launch(kernel)
    library = target.load({launch.key: kernel})
    return library.address(launch.key), launch.values, launch.units, library.launcher


def compile_routine(routine: str, dtypes: Sequence[str], integers: Sequence[int], constants: Mapping[str, object],
                    inputs: int) -> int:
    """Compile a routine that no operator calls (kernel/compressed.py) for this machine's CPU; the address of its code.

    dtypes: of its arrays, of which the first `inputs` are read. integers: any that it may be called with.
    """
    from mxc.compiler.kernel.ir import RoutineKernel

    kernel = RoutineKernel(routine, routine, tuple(sorted(constants.items())), tuple(dtypes), tuple(integers), inputs)
    target = kernel_target("cpu")
    key = target.launch(kernel).key
    return target.load({key: kernel}).address(key)


def _print_summary(compiled: Compiled) -> None:
    if env.debug_level() >= 1:
        plan, library = compiled.plan, compiled.library
        prepared = len(plan.steps_of("prepare"))
        print(f"mxc: {plan.nodes} nodes -> {len(plan.steps) - prepared} kernels"
              f"{f', {prepared} to prepare parameters' if prepared else ''}; arena {plan.arena_bytes} of "
              f"{plan.unplanned_bytes} bytes (live {plan.live_bytes}), prepared {plan.prepared_bytes}; "
              f"{compiled.seconds * 1e3:.0f} ms; cache {library.hits} hits, {library.misses} misses", file=sys.stderr)
