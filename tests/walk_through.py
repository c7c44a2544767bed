"""The printed parts of docs/walk-through.md: what each step of the compiler prints for three small graphs.

    python tests/walk_through.py --write     to be run after a change of the passes, and its difference to be read

A comment of the document, `<!-- printed: GRAPH PART -->`, stands before a block of code that holds what is printed;
`--write` replaces these blocks and leaves the text between them alone. The target is a CPU of the level x86-64-v3, on
every machine.
"""
from __future__ import annotations

import difflib
import functools
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import mxc as mx
from mxc.compiler.graph.graph import Graph
from mxc.compiler.graph.text import graph_text
from mxc.compiler.kernel.ir import Kernel
from mxc.compiler.kernel.text import kernel_text
from mxc.compiler.plan import Step
from mxc.compiler.planning import Planned, plan_graph, watch_passes
from mxc.compiler.targets.cpu.build.jobs import job_of
from mxc.compiler.targets.cpu.emit.translate import translated
from mxc.compiler.targets.cpu.machine.isa import AVX2
from mxc.compiler.targets.cpu.machine.levels import LEVELS
from mxc.compiler.targets.cpu.target import CpuTarget
from mxc.runtime.runner import StepTable

DOCUMENT = Path(__file__).parents[1] / "docs" / "walk-through.md"
BLOCK = re.compile(r"(<!-- printed: (\w+) (\w+) -->\n```\w*\n)(.*?)(^```$)", re.S | re.M)
LEVEL = LEVELS["x86-64-v3"]


def softmax() -> mx.sym.Symbol:
    s = mx.sym.softmax(mx.sym.Variable("data"), name="s")
    return mx.sym.broadcast_mul(s, mx.sym.Variable("w"), name="m")


def dense() -> mx.sym.Symbol:
    fc = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(fc, name="softmax")


def conv() -> mx.sym.Symbol:
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=8, no_bias=True, name="c1")
    net = mx.sym.BatchNorm(net, fix_gamma=False, name="bn")
    net = mx.sym.Activation(net, act_type="relu", name="r")
    return mx.sym.Convolution(net, kernel=(1, 1), num_filter=8, no_bias=True, name="c2")


class Walk:
    """One graph on its way. `part` gives what a step of it prints."""

    def __init__(self, symbol: mx.sym.Symbol, shapes: Mapping[str, tuple[int, ...]], train: bool = False):
        self.symbol, self.shapes, self.train = symbol, shapes, train
        self.requests = dict.fromkeys(symbol.list_arguments(), "null")
        if train:
            self.requests |= {name: "write" for name in self.requests if name not in shapes}
        self.target = CpuTarget(LEVEL.name, LEVEL.features)
        self.target.isa = AVX2  # of a machine that is no x86-64 too

    @functools.cached_property
    def planned(self) -> Planned:
        return plan_graph(self.symbol.graph, self.shapes, {}, self.requests, self.train, self.target, True)

    @functools.cached_property
    def passes(self) -> dict[str, tuple[str, str]]:
        """The graph before and after each pass, in their order."""
        found: dict[str, tuple[str, str]] = {}

        def watch(name: str, before: Graph, after: Graph) -> None:
            found[name] = graph_text(before), graph_text(after)

        watch_passes(self.symbol.graph, self.shapes, {}, self.requests, self.train, self.target, watch)
        return found

    @property
    def kernel(self) -> Kernel:
        """That of the last step."""
        return self.planned.kernels[self.planned.plan.steps[-1].kernel]

    def part(self, name: str) -> str:
        """What the step `name` prints: the lines that a pass of that name changes, or what a method gives."""
        return self._changes(*self.passes[name]) if name in self.passes else str(getattr(self, f"_{name}")())

    @staticmethod
    def _changes(before: str, after: str) -> str:
        assert before != after, "this pass changes nothing"
        lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
        return "".join(f"{line}\n" for line in lines if not line.startswith("@@"))

    def _graph(self) -> str:
        return next(iter(self.passes.values()))[0] + "\n"

    def _json(self) -> str:
        return "\n".join(map(str.rstrip, self.symbol.tojson().splitlines())) + "\n"

    def _unchanged(self) -> str:
        """The passes that change nothing."""
        return " ".join(name for name, (before, after) in self.passes.items() if before == after) + "\n"

    def _groups(self) -> str:
        return self.planned.groups

    def _plan(self) -> str:
        return self.planned.plan.text([node.name for node in self.planned.graph.nodes])

    def _kernel(self) -> str:
        return kernel_text(self.kernel).rstrip() + "\n"

    def _product(self) -> str:
        """The kernel of the first step."""
        return kernel_text(self.planned.kernels[self.planned.plan.steps[0].kernel]).rstrip() + "\n"

    def _source(self) -> str:
        return self.target.source(self.kernel).rstrip() + "\n"

    def _llvm(self) -> str:
        """The two blocks of the loop that looks for the largest element, as the translator prints them."""
        text = translated(job_of(self.kernel, "kernel", AVX2), LEVEL.features)
        blocks = re.findall(r"^\w[\w.]*:\n(?:  .*\n)+", text, re.M)
        first = next(i for i, block in enumerate(blocks) if "@llvm.maximum" in block)
        return "".join(blocks[first - 1:first + 1])

    def _table(self) -> str:
        """A row for each step: the function, its arguments, units and grain. Addresses have the names of what is
        there."""
        steps = self.planned.plan.steps
        rows = StepTable([(0, (), step.units) for step in steps]).rows()
        return "".join(f"{{code of {step.label}, [{', '.join(self._arguments(step))}], {units}, {grain}}}\n"
                       for step, (_, _, units, grain) in zip(steps, rows, strict=True))

    def _arguments(self, step: Step) -> list[str]:
        buffers = [self.planned.plan.buffers[i] for i in step.buffers]
        places = [f"{b.pool} + {b.offset}" if b.pool in ("arena", "prepared") else f"{b.pool} {b.name}"
                  for b in buffers]
        return [*(f"&({place})" for place in places), *map(str, step.values)]


@functools.cache
def walks() -> dict[str, Walk]:
    return {
        "softmax": Walk(softmax(), {"data": (4, 10), "w": (10,)}),
        "dense": Walk(dense(), {"data": (4, 10), "softmax_label": (4,)}, train=True),
        "conv": Walk(conv(), {"data": (1, 8, 32, 32)}),
    }


def parts(text: str) -> list[tuple[str, str]]:
    """The graph and the part of each printed block of the document `text`."""
    return [(graph, part) for _, graph, part, _, _ in BLOCK.findall(text)]


def written(text: str) -> str:
    """The document `text` with each printed block as it is printed now."""
    return BLOCK.sub(lambda found: f"{found[1]}{walks()[found[2]].part(found[3])}{found[5]}", text)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
