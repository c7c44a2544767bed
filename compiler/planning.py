"""From a graph to a plan and kernels: the passes and the stages, each in their order."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mxc.compiler.graph.graph import Graph, Shape
from mxc.compiler.graph.loop import LoopOperator
from mxc.compiler.graph.options import Options, saves_memory
from mxc.compiler.graph.purity import auxiliary_names, static_names
from mxc.compiler.graph.text import digest
from mxc.compiler.kernel.ir import Kernel
from mxc.compiler.lowering.fuse import group_text
from mxc.compiler.lowering.loop_plan import kernels_of, plan_loop
from mxc.compiler.lowering.stage import Program
from mxc.compiler.lowering.stages import STAGES
from mxc.compiler.passes.infer import infer
from mxc.compiler.passes.loops import options_inside
from mxc.compiler.passes.pipeline import PASSES, transform
from mxc.compiler.plan import Plan
from mxc.compiler.system import env
from mxc.compiler.system.garbage import uncollected
from mxc.compiler.transformation import check_names

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget


@dataclass
class Planned:
    """What the passes made of a graph. groups: the text of the fusion groups, a line each; kernels: by key."""

    graph: Graph
    plan: Plan
    groups: str
    kernels: dict[str, Kernel]


def plan_graph(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
               is_train: bool, target: KernelTarget, keeps: bool) -> Planned:
    """The plan, and what was made on the way, for the arguments of `compile_graph`. Prints what the environment asks
    for."""
    with uncollected():
        return _planned(graph, shapes, dtypes, grad_req, is_train, target, keeps)


def _planned(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
             is_train: bool, target: KernelTarget, keeps: bool) -> Planned:
    known, options = _starting_point(graph, shapes, dtypes, grad_req, is_train, target, keeps)
    program = program_of(known, options)
    for stage in STAGES:
        stage.run(program)
    plan = program.plan
    if any(launch.host is not None for launch in program.launches):
        plan.graph = digest(program.graph)
    plan.nodes = sum(node.op is not None for node in known.nodes)
    kernels = {**program.loop_kernels, **kernels_of(plan, program.launches)}
    _print_kernels(kernels.values(), target)
    return Planned(program.graph, plan, group_text(program.graph, program.groups), kernels)


def program_of(known: Graph, options: Options) -> Program:
    """What the stages start from: a graph with its facts, after all passes."""
    aux = frozenset(auxiliary_names(known))
    args = {node.name for node in known.variables} - aux
    return _with_loops(Program(transform(known, options), options, args, aux,
                               names=[node.name for node in known.nodes]))


def _with_loops(program: Program) -> Program:
    """The program, whose loops are planned."""
    options, target = program.options, program.target
    for node in program.graph.nodes if options.prefers.loops is not None else ():
        if not isinstance(node.op, LoopOperator):
            continue
        form = node.op.form
        inner, names = options_inside(form, options), frozenset(each.name for each in form.variables)
        parts = [_with_loops(Program(graph, inner, names, frozenset())) for graph in node.subgraphs]
        for part in parts:
            for stage in STAGES[:-1]:  # all but plan_memory
                stage.run(part)
        planned = plan_loop(form, parts[0], parts[1] if len(parts) > 1 else None, target)
        if planned is not None:
            program.loops[node], kernels = planned
            for found in (kernels, *(part.loop_kernels for part in parts)):
                program.loop_kernels.update(found)
    return program


def watch_passes(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                 is_train: bool, target: KernelTarget, watch: Callable[[str, Graph, Graph], None] | None) -> Graph:
    """Runs the passes and tells `watch` what each makes; api.watch_passes describes the arguments."""
    return transform(*_starting_point(graph, shapes, dtypes, grad_req, is_train, target, True), watch)


def _starting_point(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                    is_train: bool, target: KernelTarget, keeps: bool) -> tuple[Graph, Options]:
    """What the passes start from: the graph with its facts, and what it is compiled for.

    Raises SettingError when MXC_SKIP or MXC_PRINT names what is neither a pass nor a stage, and for other settings that
    cannot be.
    """
    check_names((*PASSES, *STAGES))
    known = graph if graph.has_facts(shapes, dtypes) else infer(graph, shapes, dtypes)
    wants = any(mode != "null" for mode in grad_req.values())
    static = static_names(known) if keeps and not (wants or is_train) else frozenset()
    return known, Options(target=target, is_train=is_train, grad_req=dict(grad_req), static=static,
                          strict=env.flag("MXC_STRICT"), small=saves_memory())


def _print_kernels(kernels: Iterable[Kernel], target: KernelTarget) -> None:
    level = env.debug_level()
    if level >= 4:
        from mxc.compiler.kernel.text import kernel_text

        for kernel in kernels:
            print(f"-- kernel\n{kernel_text(kernel)}\n-- source\n{target.source(kernel)}", file=sys.stderr)
            if level >= 5:
                print(f"-- assembly\n{target.assembly(kernel)}", file=sys.stderr)
