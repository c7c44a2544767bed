"""The compiler's front door: a graph with shapes, dtypes and gradient requests in, a plan and loaded kernels out."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mxc.compiler import env
from mxc.compiler.graph.graph import Graph, Shape
from mxc.compiler.kernel.ir import Kernel
from mxc.compiler.ops.table import Operator
from mxc.compiler.passes.chains import chained
from mxc.compiler.passes.fuse import fuse, group_text
from mxc.compiler.passes.infer import infer
from mxc.compiler.passes.lower import lower
from mxc.compiler.passes.pipeline import transform
from mxc.compiler.passes.plan_memory import plan_memory
from mxc.compiler.passes.registry import Options
from mxc.compiler.passes.schedule import schedule
from mxc.compiler.plan import Plan


@dataclass
class Compiled:
    """What `compile_graph` made. library: addresses of the kernels' code (`library.address(step.kernel)`).

    groups: the text of the fusion groups, a line each. seconds: of the whole compilation, code generation included.
    """

    graph: Graph
    plan: Plan
    library: Any
    groups: str
    kernels: dict[str, Kernel]
    seconds: float


def auxiliary_names(graph: Graph) -> list[str]:
    """Names of the variables that operators take as auxiliary states, in topological order."""
    found: dict[str, None] = {}
    for node in graph.nodes:
        found.update(dict.fromkeys(e.node.name for e in node.states if e.node.is_variable))
    return list(found)


def static_names(graph: Graph) -> frozenset[str]:
    """Arguments that are read as learned parameters only (`parameters:` in ops.yaml), and auxiliary states."""
    learned: set[str] = set()
    other: set[str] = set()
    for node in graph.nodes:
        if node.op is None:
            continue
        names = node.op.input_names(node.params)
        for position, entry in enumerate(node.inputs):
            if entry.node.is_variable:
                is_learned = position >= len(names) or names[position] in node.op.parameters
                (learned if is_learned else other).add(entry.node.name)
    return frozenset(learned - other - {e.node.name for e in graph.outputs})


def compile_graph(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                  is_train: bool, target: Any = None, keeps: bool = True) -> Compiled:
    """Compile `graph` for arguments of these shapes and dtypes.

    shapes, dtypes: by argument and auxiliary state; what is missing is inferred. grad_req: argument to "write", "add"
    or "null" (missing: "null"). is_train: operators in training mode. target: None for this machine's CPU.
    keeps: what the prepare part computes is kept from run to run; else parameters count as changing in every run.
    Raises MXNetError for what the graph, the shapes or the target do not allow.
    """
    start = time.perf_counter()
    target = target or _this_cpu()
    known, options = _prepared(graph, shapes, dtypes, grad_req, is_train, target, keeps)
    aux = frozenset(auxiliary_names(known))
    final = transform(known, options)
    groups = fuse(final, options, merge="fuse" not in env.names("MXC_SKIP"))
    launches, outputs = lower(final, groups, aux)
    launches = schedule(chained(launches))
    plan = plan_memory(launches, outputs, target)
    plan.nodes = sum(node.op is not None for node in known.nodes)
    kernels: dict[str, Kernel] = {}
    for step, launch in zip(plan.steps, launches, strict=True):
        kernels |= dict(zip([step.kernel, *(key for _, key in step.calls)], launch.kernels, strict=False))
    text = group_text(final, groups)
    _print_parts(text, plan, list(kernels.values()), target)
    library = target.load(kernels)
    compiled = Compiled(final, plan, library, text, kernels, time.perf_counter() - start)
    _print_summary(compiled)
    return compiled


def watch_passes(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                 is_train: bool, watch: Callable[[str, Graph, Graph], None] | None = None) -> Graph:
    """What the passes make of a graph, run as `compile_graph` does. watch: is told each one's name, the graph before it
    and after it."""
    return transform(*_prepared(graph, shapes, dtypes, grad_req, is_train, _this_cpu(), True), watch)


def _this_cpu() -> Any:
    from mxc.compiler.targets.cpu.target import cpu_target

    return cpu_target()


def _prepared(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
              is_train: bool, target: Any, keeps: bool) -> tuple[Graph, Options]:
    """What the passes start from: the graph with its facts, and what it is compiled for."""
    known = infer(graph, shapes, dtypes)
    wants = any(mode != "null" for mode in grad_req.values())
    static = static_names(known) if keeps and not (wants or is_train) else frozenset()
    return known, Options(target=target, is_train=is_train, grad_req=dict(grad_req), static=static,
                          strict=env.flag("MXC_STRICT"))


def compile_update(op: Operator, dtypes: Sequence[str], sizes: Sequence[int], out: str | None,
                   ) -> tuple[int, tuple[int, ...], int]:
    """An operator that changes arrays in place (see `update_kernel`), for this machine's CPU: the address of its code,
    the integers behind the buffers, and the units of work."""
    from mxc.compiler.kernel.canonical import canonical
    from mxc.compiler.kernel.updates import update_kernel

    kernel, target = canonical(update_kernel(op, dtypes, sizes, out)), _this_cpu()
    launch = target.launch(kernel)
    return target.load({launch.key: kernel}).address(launch.key), kernel.values(), launch.units


def _print_parts(groups: str, plan: Plan, kernels: list[Kernel], target: Any) -> None:
    wanted, level = env.names("MXC_PRINT"), env.debug_level()
    if "fuse" in wanted or level >= 3:
        print(f"-- groups\n{groups}", file=sys.stderr, end="")
    if "plan" in wanted or level >= 3:
        print(f"-- plan\n{plan.text()}", file=sys.stderr, end="")
    if level >= 4:
        from mxc.compiler.kernel.text import kernel_text

        for kernel in kernels:
            print(f"-- kernel\n{kernel_text(kernel)}\n-- source\n{target.source(kernel)}", file=sys.stderr)
            if level >= 5:
                print(f"-- assembly\n{target.assembly(kernel)}", file=sys.stderr)


def _print_summary(compiled: Compiled) -> None:
    if env.debug_level() >= 1:
        plan, library = compiled.plan, compiled.library
        prepared = len(plan.steps_of("prepare"))
        print(f"mxc: {plan.nodes} nodes -> {len(plan.steps) - prepared} kernels"
              f"{f', {prepared} to prepare parameters' if prepared else ''}; arena {plan.arena_bytes} of "
              f"{plan.unplanned_bytes} bytes (live {plan.live_bytes}), prepared {plan.prepared_bytes}; "
              f"{compiled.seconds * 1e3:.0f} ms; cache {library.hits} hits, {library.misses} misses", file=sys.stderr)
