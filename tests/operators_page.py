"""The tables of docs/operators.md: every operator of the table, and which of MXNet's are elsewhere or not there.

    python tests/operators_page.py --write     to be run after a change of operators, and its difference to be read

Where an operator's kernels are is found by planning its samples of ops.yaml, or a recorded case of `golden/`, for each
target, whatever the machine: for a CPU of the level x86-64-v3, and for an NVIDIA GPU (the extra `cuda`).
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from documents import with_tables
from golden.cases import load
from golden_graphs import graph_of
from op_cases import cases

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node, Shape, variable
from mxc.compiler.kernel.ir import RoutineKernel
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Kind, Operator
from mxc.compiler.ops.rules import file_of
from mxc.compiler.planning import Planned, plan_graph
from mxc.compiler.targets.cpu.machine.isa import AVX2
from mxc.compiler.targets.cpu.machine.levels import LEVELS
from mxc.compiler.targets.cpu.target import CpuTarget
from mxc.compiler.targets.cuda.ahead import CudaTarget
from mxc.compiler.targets.protocol import KernelTarget

DOCUMENT = Path(__file__).parents[1] / "docs" / "operators.md"
MOST_CASES = 3  # of an operator, that are planned: the first ones

# Operators of MXNet's registry that are no entries of the table, and where they are.
ELSEWHERE = {
    "Custom": "`mx.operator.CustomOp` (`runtime/custom.py`): Python runs it between kernels",
    "_foreach": "`contrib.foreach` (`compiler/graph/loop.py`): a loop of the plan",
    "_while_loop": "`contrib.while_loop`: as `_foreach`",
    "_cond": "`contrib.cond`: as `_foreach`",
    "_contrib_boolean_mask": "`mx.nd.contrib.boolean_mask`, of arrays: the shape of its result depends on values",
    "_cvimdecode": "`mx.image.imdecode`, of arrays",
    "_cvimread": "`mx.image.imread`, of arrays",
    "_imdecode": "`mx.nd.imdecode`, of arrays",
    "_set_value": "`mx.nd._internal._set_value`, of arrays",
    "_CachedOp": "what a hybridised block is called by (`runtime/cached_op.py`), which no file has",
    "_CachedOpThreadSafe": "as `_CachedOp`",
    "_CrossDeviceCopy": "copies between devices, which MXNet puts into graphs when it binds them",
    "_CustomFunction": "`mx.autograd.Function`",
}
# Those that are not there, and why.
LEFT_OUT = {
    **{f"_contrib_dgl_{name}": "samples graphs for DGL, which has code of its own for this since its version 0.5"
       for name in ("adjacency", "csr_neighbor_non_uniform_sample", "csr_neighbor_uniform_sample", "graph_compact",
                    "subgraph")},
    "_NDArray": "operators in Python of before `Custom`, known by addresses in the process that made them",
    "_Native": "operators in Python of before `Custom`, known by addresses in the process that made them",
    **dict.fromkeys(
        ("_NoGradient", "_broadcast_backward", "_contrib_backward_hawkesll", "_contrib_backward_index_copy",
         "_contrib_backward_quadratic", "_split_v2_backward"),
        "part of a gradient: MXNet makes such nodes when it differentiates, and no file has them; here gradients are "
        "made of the table's operators"),
}
# Others that MXNet's registry does not list everywhere, for a build may lack them.
BRIDGES = {
    "`_contrib_tvm_...`": "kernels that TVM has compiled into MXNet, where it was built with it",
    "`_contrib_intgemm_...`": "products over int8 of the library intgemm; the quantized operators have kernels here",
    "`_sg_mkldnn_selfatt_qk`, `_sg_mkldnn_selfatt_valatt`":
        "`optimize_for` makes them of `interleaved_matmul_selfatt_qk` and `_valatt`, which are there",
    "`_npi_...`, `_np_...`, `_npx_...`": "the interface `mx.np`, which is not there",
}


class Found(NamedTuple):
    """What planning cases of an operator showed. targets: those that have code for all of its kernels. fuses: whether
    there are kernels that fuse, other than routines. hosts: by what parts of it are computed that have no kernels."""

    targets: tuple[str, ...]
    fuses: bool
    hosts: tuple[str, ...]


@functools.cache
def targets() -> dict[str, KernelTarget]:
    level = LEVELS["x86-64-v3"]
    cpu = CpuTarget(level.name, level.features)
    cpu.isa = AVX2  # of a machine that is no x86-64 too
    return {"cpu": cpu, "cuda": CudaTarget("sm_90")}


@functools.cache
def recorded() -> Mapping[str, list[tuple[Graph, dict[str, Shape], dict[str, str]]]]:
    """Graph, shapes and dtypes of the first recorded cases of each operator."""
    found: dict[str, list[tuple[Graph, dict[str, Shape], dict[str, str]]]] = {}
    for answer in load():
        case = answer.case
        if answer.error is None and table.has(case.op) and len(found.setdefault(case.op, [])) < MOST_CASES:
            found[case.op].append((graph_of(answer), {i.name: i.shape for i in case.inputs},
                                   {i.name: i.dtype for i in case.inputs}))
    return found


def graphs(op: Operator) -> Iterator[tuple[Graph, dict[str, Shape], dict[str, str]]]:
    """Graphs of the operator alone, with shapes and dtypes of their variables."""
    samples = list(recorded().get(op.name, ()))
    if not samples:
        try:
            own = cases(op)[:MOST_CASES]
        except MXNetError:  # it has a required parameter, and no sample
            own = []
        for case in own:
            names = [f"x{i}" for i in range(len(case.shapes))]
            node = Node(op, "node", {}, case.params, [Entry(variable(name)) for name in names])
            samples.append((Graph([Entry(node, i) for i in range(op.num_outputs(case.params))]),
                            dict(zip(names, case.shapes, strict=True)), dict.fromkeys(names, "float32")))
    yield from samples


def is_native(planned: Planned, target: KernelTarget) -> bool:
    return all(step.host is None for step in planned.plan.steps) and not any(
        target.lacks(kernel) for kernel in planned.kernels.values())


@functools.cache
def found(op: Operator) -> Found | None:
    """What planning the operator shows; None where there is nothing to plan."""
    native, fuses, hosts, count = dict.fromkeys(targets(), True), False, dict[str, None](), 0
    for graph, shapes, dtypes in graphs(op):
        for name, target in targets().items():
            try:
                planned = plan_graph(graph, shapes, dtypes, {}, False, target, False)
            except MXNetError:  # a sample of another dtype than float32
                continue
            count += 1
            native[name] = native[name] and is_native(planned, target)
            fuses = fuses or any(not isinstance(kernel, RoutineKernel) for kernel in planned.kernels.values())
            hosts |= {table.get(step.label).host: None for step in planned.plan.steps if step.host is not None}
    return Found(tuple(name for name, there in native.items() if there), fuses, tuple(hosts)) if count else None


def fuses(op: Operator, seen: Found | None) -> str:
    if op.in_place:
        return "with its like"
    if op.kind < Kind.ANCHOR:
        return "yes"
    if op.kind is Kind.ANCHOR:
        return "what follows it"
    return "its parts" if "decompose" in op.rules and (seen is None or seen.fuses) else "no"


def native(op: Operator, seen: Found | None) -> str:
    if op.host:
        return f"none: {op.host}"
    if op.in_place:
        return "cpu" if op.update or op.many else "none: NumPy"
    return "cpu" if seen is None else ", ".join(seen.targets) or f"none: {', '.join(seen.hosts)}"


def inputs_of(op: Operator) -> str:
    named = {spec.name: spec for spec in op.inputs}
    shown = []
    for name in op.listed_inputs:
        spec = named.get(name)
        ending = "..." if spec is not None and spec.variadic else "?" if spec is not None and spec.condition else ""
        shown.append(f"{name}{ending}")
    return ", ".join(shown)


def parameters_of(op: Operator) -> str:
    return ", ".join(name if kind.required else f"{name}={kind.text(kind.default)}" for name, kind in op.params.items())


def row(op: Operator) -> str:
    seen = None if op.in_place or op.is_host else found(op)
    cells = (f"`{op.name}`", op.kind.name.lower(), inputs_of(op), parameters_of(op), fuses(op, seen), native(op, seen))
    return f"| {' | '.join(cell.replace('|', ' or ') for cell in cells)} |\n"


def users_operators() -> list[Operator]:
    return [op for op in table.all_operators() if not op.name.startswith("_mxc_")]


def operators() -> str:
    """A table for each family, in the order of the table of operators."""
    families: dict[str, list[Operator]] = {}
    for op in users_operators():
        families.setdefault(op.family, []).append(op)
    text = ""
    for family, members in families.items():
        door = file_of(family, "__init__")
        assert door is not None and door.__doc__ is not None
        text += (f"\n### {family}\n\n{door.__doc__.splitlines()[0]}\n\n"
                 "| operator | kind | inputs | parameters | fuses | kernels |\n|---|---|---|---|---|---|\n")
        text += "".join(map(row, sorted(members, key=lambda op: op.name.lower().lstrip("_"))))
    return text + "\n"


def reasons(names: Mapping[str, str]) -> str:
    """A line for each reason, with the operators that it holds for."""
    of: dict[str, list[str]] = {}
    for name, reason in names.items():
        of.setdefault(reason, []).append(name if "`" in name else f"`{name}`")
    return "\n" + "".join(f"- {', '.join(group)}: {reason}.\n" for reason, group in of.items()) + "\n"


TABLES = {"operators": operators, "elsewhere": lambda: reasons(ELSEWHERE),
          "missing": lambda: reasons(LEFT_OUT | BRIDGES)}


def written(text: str) -> str:
    """The document `text` with each table as it is now."""
    return with_tables(text, TABLES)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
