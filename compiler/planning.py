"""From a graph to a plan and kernels: the passes, fusion, lowering, and memory, in their order."""
from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mxc.compiler.graph.graph import Graph, Shape
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.static import auxiliary_names, static_names
from mxc.compiler.graph.text import digest
from mxc.compiler.kernel.ir import Kernel
from mxc.compiler.lowering.chains import chained
from mxc.compiler.lowering.fuse import fuse, group_text
from mxc.compiler.lowering.lower import lower
from mxc.compiler.lowering.plan_memory import plan_memory
from mxc.compiler.lowering.schedule import schedule
from mxc.compiler.lowering.share_code import share_code
from mxc.compiler.passes.infer import infer
from mxc.compiler.passes.pipeline import transform
from mxc.compiler.plan import Plan
from mxc.compiler.system import env
from mxc.compiler.system.garbage import uncollected


@dataclass
class Planned:
    """What the passes made of a graph. groups: the text of the fusion groups, a line each; kernels: by key."""

    graph: Graph
    plan: Plan
    groups: str
    kernels: dict[str, Kernel]


def plan_graph(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
               is_train: bool, target: Any, keeps: bool) -> Planned:
    """The arguments are those of `compile_graph`. Prints what the environment asks for."""
    with uncollected():
        return _planned(graph, shapes, dtypes, grad_req, is_train, target, keeps)


def _planned(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
             is_train: bool, target: Any, keeps: bool) -> Planned:
    known, options = _prepared(graph, shapes, dtypes, grad_req, is_train, target, keeps)
    aux = auxiliary_names(known)
    args = {node.name for node in known.variables} - {*aux}
    final = transform(known, options)
    groups = fuse(final, options, merge="fuse" not in env.names("MXC_SKIP"))
    launches, outputs = lower(final, groups, args, {*aux})
    launches = schedule(chained(share_code(launches)))
    plan = plan_memory(launches, outputs, target)
    if any(launch.host is not None for launch in launches):
        plan.graph = digest(final)
    plan.nodes = sum(node.op is not None for node in known.nodes)
    kernels: dict[str, Kernel] = {}
    for step, launch in zip(plan.steps, launches, strict=True):
        kernels |= dict(zip([step.kernel, *(key for _, key in step.calls)], launch.kernels, strict=False))
    text = group_text(final, groups)
    _print_parts(text, plan, final, list(kernels.values()), target)
    return Planned(final, plan, text, kernels)


def watch_passes(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                 is_train: bool, target: Any, watch: Callable[[str, Graph, Graph], None] | None) -> Graph:
    """See api.watch_passes."""
    return transform(*_prepared(graph, shapes, dtypes, grad_req, is_train, target, True), watch)


def _prepared(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
              is_train: bool, target: Any, keeps: bool) -> tuple[Graph, Options]:
    """What the passes start from: the graph with its facts, and what it is compiled for."""
    known = graph if graph.has_facts(shapes, dtypes) else infer(graph, shapes, dtypes)
    wants = any(mode != "null" for mode in grad_req.values())
    static = static_names(known) if keeps and not (wants or is_train) else frozenset()
    return known, Options(target=target, is_train=is_train, grad_req=dict(grad_req), static=static,
                          strict=env.flag("MXC_STRICT"))


def _print_parts(groups: str, plan: Plan, graph: Graph, kernels: list[Kernel], target: Any) -> None:
    wanted, level = env.names("MXC_PRINT"), env.debug_level()
    if "fuse" in wanted or level >= 3:
        print(f"-- groups\n{groups}", file=sys.stderr, end="")
    if "plan" in wanted or level >= 3:
        print(f"-- plan\n{plan.text([node.name for node in graph.nodes])}", file=sys.stderr, end="")
    if level >= 4:
        from mxc.compiler.kernel.text import kernel_text

        for kernel in kernels:
            print(f"-- kernel\n{kernel_text(kernel)}\n-- source\n{target.source(kernel)}", file=sys.stderr)
            if level >= 5:
                print(f"-- assembly\n{target.assembly(kernel)}", file=sys.stderr)
