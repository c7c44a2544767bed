"""What a stage is: a function from launches to launches, or one of the few that lead from a graph to launches and from
launches to a plan; and what happens around each run of it."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from mxc.compiler.graph.graph import Graph, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.kernel.ir import Kernel
from mxc.compiler.lowering.launches import Launch, Storage
from mxc.compiler.lowering.text import launches_text
from mxc.compiler.plan import Loop, Plan
from mxc.compiler.transformation import Transformation

if TYPE_CHECKING:
    from mxc.compiler.lowering.fuse import Group
    from mxc.compiler.targets.preferences import Preferences
    from mxc.compiler.targets.protocol import KernelTarget

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Program:
    """A graph on its way to a plan. Its attributes are the facts that stages need and give.

    graph: what the passes made; options: what it is compiled for. args, aux: names of the arguments and of the
    auxiliary states among its variables; the others are head gradients. loops: what its loops do, by node, and
    loop_kernels: their kernels by key. groups: nodes that share a kernel, in an order
    in which they can run. launches: what `lower` made of the groups; those of each phase are in an order in which they
    can run. outputs: the storages of the graph's outputs. names: of the nodes of the model's graph, by id.
    """

    graph: Graph
    options: Options
    args: Set[str]
    aux: Set[str]
    loops: dict[Node, Loop] = field(default_factory=dict)
    loop_kernels: dict[str, Kernel] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    outputs: list[Storage] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    names: Sequence[str] = ()

    @property
    def target(self) -> KernelTarget:
        return self.options.target

    @property
    def prefers(self) -> Preferences:
        """The target's figures."""
        return self.options.prefers

    def launches_text(self) -> str:
        return launches_text(self.launches, [node.name for node in self.graph.nodes])


GIVEN = ("graph", "options", "target", "prefers", "args", "aux", "loops")  # the facts before the first stage


@dataclass(frozen=True)
class Stage(Transformation, Generic[P, R]):
    """A stage; `run` runs it on a program and prints what it made (MXC_DEBUG=3, MXC_PRINT), calling it calls its
    function alone.

    The function's arguments are the program's facts `needs`. What it returns are the facts `gives`, one or a tuple of
    them; new launches if it gives nothing. instead: what is called in its place where MXC_SKIP names it. text: what the
    program looks like afterwards.
    """

    function: Callable[P, R]
    instead: Callable[..., R] | None = None
    text: Callable[[Program], str] = Program.launches_text

    @property
    def optional(self) -> bool:
        return not self.gives or self.instead is not None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def run(self, program: Program) -> None:
        """Change the program as the stage does."""
        function: Callable[..., Any] | None = self.instead if self.is_skipped else self.function
        if function is None:
            return
        made = self.gives or ("launches",)
        before = program.launches
        start = time.perf_counter()
        result = function(*(getattr(program, need) for need in self.needs))
        seconds = time.perf_counter() - start
        for fact, value in zip(made, result if len(made) > 1 else (result,), strict=True):
            setattr(program, fact, value)
        if self.is_printed:
            if self.gives:
                self.print_change(", ".join(self.gives), self.text(program), seconds)
            elif before == program.launches:  # The launches are the same, in the same order.
                self.print_unchanged(seconds)
            else:
                self.print_change(f"{len(before)} -> {len(program.launches)} launches", self.text(program), seconds)


def lowering_stage(needs: Iterable[str], gives: Iterable[str] = (), also: str = "",
                   instead: Callable[..., Any] | None = None, text: Callable[[Program], str] = Program.launches_text,
                   ) -> Callable[[Callable[P, R]], Stage[P, R]]:
    """Make a function a stage of the function's name; see `Stage`."""

    def wrap(function: Callable[P, R]) -> Stage[P, R]:
        return Stage(function.__name__, function, tuple(needs), tuple(gives), also, instead, text)

    return wrap
