"""What a graph pass is: its name, what it needs and gives, and what happens around each run of it."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mxc.compiler.error import MXNetError, SettingError, nearest
from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.graph import Graph
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.text import graph_text
from mxc.compiler.system import env

PassFunction = Callable[[Graph, Options], Graph]


@dataclass(frozen=True)
class GraphPass:
    """A pass; calling it runs it, then checks the result (MXC_CHECK) and prints it (MXC_DEBUG=3, MXC_PRINT).

    needs, gives: what has to be true of the graph before, and what is true of it after ("shape", "dtype": the facts
    are complete; other names are the passes' own). A pass that gives nothing is optional: MXC_SKIP leaves it out.
    """

    name: str
    function: PassFunction
    needs: tuple[str, ...]
    gives: tuple[str, ...]

    @property
    def optional(self) -> bool:
        return not self.gives

    def __call__(self, graph: Graph, options: Options) -> Graph:
        """The graph after this pass. Raises MXNetError when MXC_CHECK finds it broken."""
        if self.optional and self.name in env.names("MXC_SKIP"):
            return graph
        result = self.function(graph, options)
        if env.flag("MXC_CHECK"):
            try:
                check_graph(result)
            except MXNetError as error:
                raise MXNetError(f"the graph is broken after pass {self.name}: {error}") from error
        if env.debug_level() >= 3 or self.name in env.names("MXC_PRINT"):
            self._print(graph, result)
        return result

    def _print(self, before: Graph, after: Graph) -> None:
        text = graph_text(after)
        if text == graph_text(before):
            print(f"-- {self.name}: no change", file=sys.stderr)
        else:
            print(f"-- after {self.name}: {len(before.nodes)} -> {len(after.nodes)} nodes\n{text}", file=sys.stderr)


def graph_pass(needs: Iterable[str] = (), gives: Iterable[str] = ()) -> Callable[[PassFunction], GraphPass]:
    """Make a function of (graph, options) a pass of the function's name."""

    def wrap(function: PassFunction) -> GraphPass:
        return GraphPass(function.__name__, function, tuple(needs), tuple(gives))

    return wrap


def check_order(passes: Sequence[GraphPass], known: Iterable[str]) -> None:
    """Raise MXNetError unless each pass finds what it needs: in `known`, or given by a pass before it."""
    have = set(known)
    for each in passes:
        missing = [need for need in each.needs if need not in have]
        if missing:
            raise MXNetError(f"pass {each.name} needs {', '.join(missing)}, which no pass before it gives")
        have.update(each.gives)


def check_names(passes: Sequence[GraphPass], stages: Sequence[str] = (), parts: Sequence[str] = ()) -> None:
    """Raise SettingError when MXC_SKIP names no pass, or one that cannot be left out, or MXC_PRINT nothing to print.

    stages: what follows the graph passes and can be left out as well. parts: what else can be printed.
    """
    optional = [*(each.name for each in passes if each.optional), *stages]
    by_name = {each.name: each for each in passes}
    for name in sorted(env.names("MXC_SKIP").difference(optional)):
        if name not in by_name:
            raise SettingError(f"MXC_SKIP: there is no pass {name!r}; "
                               f"expected one of {', '.join(optional)}{nearest(name, [*by_name, *stages])}")
        raise SettingError(f"MXC_SKIP: pass {name!r} cannot be left out: what follows needs "
                           f"{', '.join(by_name[name].gives)}; expected one of {', '.join(optional)}")
    printed = [*by_name, *stages, *parts]
    for name in sorted(env.names("MXC_PRINT").difference(printed)):
        raise SettingError(f"MXC_PRINT: there is no {name!r}; "
                           f"expected one of {', '.join(printed)}{nearest(name, printed)}")
