"""Write digests of everything that is printed for the graphs of the tests, to compare two versions of the compiler.

    python tests/printed.py BEFORE.txt      in one checkout, then in another, and `diff` of the files

A line has a graph's name and digests of its plan, of its kernels' text and of the source that the CPU target prints
for them: the networks of `models.py`, the recorded cases of `golden/`, and the samples of every operator, each for
inference and for training. A plan names kernels by their text and not by the compiler's version.
"""
from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import models
from golden_graphs import answered, graph_of, requests_of
from op_cases import cases

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node, Shape, variable
from mxc.compiler.kernel.ir import Kernel
from mxc.compiler.kernel.text import code_text, kernel_text
from mxc.compiler.ops import table
from mxc.compiler.planning import plan_graph
from mxc.compiler.targets.cpu.target import CpuTarget

# name, graph, shapes and dtypes of its arguments, requests, whether it is for training
Case = tuple[str, Graph, Mapping[str, Shape], Mapping[str, str], Mapping[str, str], bool]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def of_networks() -> Iterator[Case]:
    there = models.saved()
    for name in (*models.NAMES, *(name for name in models.SAVED if name in there)):
        symbol, shapes = models.network(name)
        yield f"{name} inference", symbol.graph, shapes, {}, {}, False
        requests = {n: "write" for n in symbol.list_arguments() if n not in shapes}
        yield f"{name} training", symbol.graph, shapes, {}, requests, True


def of_answers() -> Iterator[Case]:
    for answer in answered():
        case = answer.case
        shapes, dtypes = {i.name: i.shape for i in case.inputs}, {i.name: i.dtype for i in case.inputs}
        yield f"{case.name} recorded", graph_of(answer), shapes, dtypes, requests_of(answer), case.train


def of_samples() -> Iterator[Case]:
    for op in table.all_operators():
        if op.in_place:
            continue
        try:
            found = cases(op)
        except MXNetError:  # it has a required parameter, and no sample
            continue
        for case in found:
            names = [f"x{i}" for i in range(len(case.shapes))]
            for dtype in ("float32", "float16", "float64"):
                node = Node(op, "node", {}, case.params, [Entry(variable(name)) for name in names])
                graph = Graph([Entry(node, i) for i in range(op.num_outputs(case.params))])
                shapes, dtypes = dict(zip(names, case.shapes, strict=True)), dict.fromkeys(names, dtype)
                yield f"{case} {dtype} inference", graph, shapes, dtypes, {}, False
                yield f"{case} {dtype} training", graph, shapes, dtypes, dict.fromkeys(names, "write"), True


def main(path: Path) -> None:
    target = CpuTarget()
    del target.parts["mxc"]
    sources: dict[str, str] = {}

    def source(kernel: Kernel) -> str:
        text = code_text(kernel)
        if text not in sources:
            sources[text] = digest(target.source(kernel))
        return sources[text]

    lines = []
    for make in (of_samples, of_answers, of_networks):
        for name, *arguments in make():
            try:
                made = plan_graph(*arguments, target, True)  # type: ignore[call-arg]
            except MXNetError as error:  # what is refused is compared too
                lines.append(f"{name} refused {digest(str(error))}")
                continue
            kernels = list(made.kernels.values())
            plan = made.groups + made.plan.text([node.name for node in made.graph.nodes])
            lines.append(" ".join([name, digest(plan), digest("".join(map(kernel_text, kernels))),
                                   digest("".join(map(source, kernels)))]))
    path.write_text("\n".join(sorted(lines)) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
