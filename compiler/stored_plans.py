"""Plans that were made before: in this process, and in the cache for others, so that the passes need not run again.

The description by which a plan is found holds no names: a program that makes a network twice gets other automatic names
the second time. Operators and variables are known by their places in the graph, and stored plans name arguments and
auxiliary states by these places too. An entry of the cache has the format of a kernel's (cache_files.py); its content
is JSON. Its key depends on the graph, the arguments of the compilation, the environment variables that change it, and
the sources of the whole compiler.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mxc.compiler.cache_files import entry_key
from mxc.compiler.graph.graph import Entry, Graph, Node, Shape
from mxc.compiler.graph.loop import LoopOperator
from mxc.compiler.graph.options import saves_memory
from mxc.compiler.ops import table
from mxc.compiler.plan import Buffer, Plan
from mxc.compiler.system import env, sources
from mxc.compiler.transformation import PRINTS_ALL

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget

KEPT = 512  # plans that a process remembers
_OF_VARIABLES = ("argument", "aux", "gradient")  # the pools whose buffers have a variable's name


def description(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
                is_train: bool, keeps: bool, target: KernelTarget) -> str:
    """All that the plan depends on which `compile_graph` makes of these arguments; `write` and `read` find it by this.

    "" for a plan that is made anew each time: where the graph has an operator whose dependencies nobody knows, where
    the target stores no plans, and where passes are checked or print.
    """
    watched = env.debug_level() >= PRINTS_ALL or env.names("MXC_PRINT") or env.flag("MXC_CHECK")
    places = _places(graph)
    if target.plans is None or watched or not (shapes.keys() | dtypes.keys()) <= places.keys():
        return ""
    is_known = graph.has_facts(shapes, dtypes)
    nodes: list[Any] = []
    for node in graph.nodes:
        if node.op is None:
            name = node.name
            nodes.append((places[name], shapes.get(name), dtypes.get(name), grad_req.get(name, "null"),
                          node.attrs.get("__shape__"), node.attrs.get("__dtype__")))
            continue
        signature = _signature(graph, node, is_known)
        if signature is None:
            return ""
        nodes.append((*signature, repr(node.params), [(graph.ids[e.node], e.index) for e in node.inputs]))
    outputs = [(graph.ids[e.node], e.index, s.kind, "" if s.kind == "output" else places.get(s.name, s.name), s.mode)
               for e, s in zip(graph.outputs, graph.sinks, strict=True)]
    settings = is_train, keeps, env.flag("MXC_STRICT"), saves_memory(), sorted(env.names("MXC_SKIP"))
    return repr((nodes, outputs, settings))


def key_of(known: str, target: KernelTarget) -> str:
    """The key of the cache's entry for the plan of that description."""
    return entry_key(known, _parts(target))


def _places(graph: Graph) -> dict[str, int]:
    """The number of each variable among the variables, by name."""
    places: dict[str, int] = {}
    for i, node in enumerate(graph.variables):
        places.setdefault(node.name, i)
    return places


def _signature(graph: Graph, node: Node, is_known: bool) -> tuple[Any, ...] | None:
    """What a plan depends on in a node's operator. That is the name for an operator of the table; for one that the
    program has made, the name, its own signature, and the node's shapes and dtypes. None where that is not known."""
    op = node.op
    assert op is not None
    if isinstance(op, LoopOperator):
        form = op.form
        parts = [_body(each, form.variables) for each in node.subgraphs]
        numbers = form.data, form.states, form.length, form.is_reversed, form.stops, form.streams, form.test is None
        return None if None in parts else (op.name, *numbers, parts)
    if node.is_control_flow:
        return None
    if op.signature is None:
        return (op.name,) if table.has(op.name) and table.get(op.name) is op else None
    if not is_known:
        return None
    ids = [graph.ids[e.node] for e in node.inputs] + [graph.ids[node]]
    return (op.name, op.signature, [(graph.facts.shape[i], graph.facts.dtype[i]) for i in ids])


def _body(graph: Graph, variables: Sequence[Node]) -> list[Any] | None:
    """What a plan depends on in a graph inside of a loop. None where that is not known."""
    nodes: list[Any] = []
    for node in graph.nodes:
        if node.op is None:
            nodes.append((variables.index(node), graph.shape(Entry(node)), graph.dtype(Entry(node))))
            continue
        signature = _signature(graph, node, True)
        if signature is None:
            return None
        nodes.append((*signature, repr(node.params), [(graph.ids[e.node], e.index) for e in node.inputs]))
    return [nodes, [(graph.ids[e.node], e.index) for e in graph.outputs]]


def _parts(target: KernelTarget) -> dict[str, str]:
    return {**target.parts, "compiler": _digest()}


@functools.cache
def _digest() -> str:
    """The digest of all sources of the compiler, the operator table among them."""
    return sources.digest("", suffixes=(".py", ".yaml"))


def _renamed(plan: Plan, rename: Callable[[str], str]) -> Plan:
    buffers = [Buffer(b.pool, b.dtype, b.shape, b.nbytes, rename(b.name), b.offset, b.node)
               if b.pool in _OF_VARIABLES else b for b in plan.buffers]  # `_replace` would take three times as long.
    return Plan(**{**vars(plan), "buffers": buffers})


def read(known: str, graph: Graph, target: KernelTarget, keeps: bool) -> Plan | None:
    """The plan of that description, for this graph's variables, if there is one. keeps: see `write`."""
    if not known or target.plans is None:
        return None
    nameless = target.plans.get(known)
    if nameless is None:
        found = target.cache.get(key_of(known, target)) if target.cache is not None and keeps else None
        if found is None:
            return None
        nameless = _remember(known, target, Plan.from_json(found.decode()))
    variables = graph.variables
    return _renamed(nameless, lambda place: variables[int(place)].name)


def write(known: str, graph: Graph, target: KernelTarget, plan: Plan, keeps: bool) -> None:
    """Keep a plan in this process, and with `keeps` also in a file for other processes. Plans of operators that are
    called on arrays come without `keeps`: a program has as many of them as it has shapes."""
    if not known:
        return
    places = _places(graph)
    nameless = _remember(known, target, _renamed(plan, lambda name: str(places[name])))
    if target.cache is not None and keeps:
        key, parts = key_of(known, target), _parts(target)
        target.cache.put(key, parts, nameless.to_json().encode(), f"plan of {plan.nodes} operators",
                         target.cache.explain(key, parts))


def _remember(known: str, target: KernelTarget, nameless: Plan) -> Plan:
    assert target.plans is not None
    if len(target.plans) >= KEPT:
        target.plans.clear()
    target.plans[known] = nameless
    return nameless
