"""Plans in the cache: what the passes made of a graph, so that the next process need not run them.

An entry is as a kernel's (cache_files.py); its content is JSON. Its key has the graph, the arguments of the
compilation, what the environment changes in it, and the sources of the whole compiler.
"""
from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mxc.compiler import env
from mxc.compiler.cache_files import entry_key
from mxc.compiler.graph.graph import Graph, Shape
from mxc.compiler.ops import table
from mxc.compiler.plan import Plan

SMALLEST = 8  # nodes of a graph from which on its plan is worth a file
PRINTING = 3  # MXC_DEBUG from which on the passes have to run, because they print


@dataclass
class Stored:
    """A plan, and the text of the fusion groups."""

    plan: Plan
    groups: str


def key_of(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], grad_req: Mapping[str, str],
           is_train: bool, keeps: bool, target: Any) -> str:
    """The key of the plan that `compile_graph` makes of these arguments; "" for one that is not stored: of a small
    graph, of one with operators that the program made, of a target without such plans, and where passes are checked or
    print."""
    if not target.stores_plans or target.cache is None or len(graph.nodes) < SMALLEST:
        return ""
    plain = all(node.op is None or (not node.subgraphs and table.has(node.op.name)
                                    and table.get(node.op.name) is node.op) for node in graph.nodes)
    watched = env.debug_level() >= PRINTING or env.names("MXC_PRINT") or env.flag("MXC_CHECK")
    if not plain or watched:
        return ""
    nodes = [f"{node.op.name if node.op else ''}|{node.name}|{node.params!r}|{sorted(node.attrs.items())}|"
             f"{[(graph.ids[e.node], e.index) for e in node.inputs]}" for node in graph.nodes]
    outputs = [(graph.ids[e.node], e.index) for e in graph.outputs]
    asked = [sorted(facts.items()) for facts in (shapes, dtypes, grad_req)]
    settings = is_train, keeps, env.flag("MXC_STRICT"), sorted(env.names("MXC_SKIP"))
    return entry_key(json.dumps([nodes, outputs, graph.sinks, asked, settings], default=repr), _parts(target))


def _parts(target: Any) -> dict[str, str]:
    return target.parts | {"compiler": _digest()}


@functools.cache
def _digest() -> str:
    """Of all sources of the compiler."""
    root, total = Path(__file__).resolve().parent, hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), root / "ops.yaml"]):
        total.update(path.read_bytes())
    return total.hexdigest()[:16]


def read(key: str, target: Any) -> Stored | None:
    """The plan of that key, if there is one."""
    found = target.cache.get(key) if key else None
    if found is None:
        return None
    content = json.loads(found)
    return Stored(Plan.from_json(content["plan"]), content["groups"])


def write(key: str, target: Any, stored: Stored) -> None:
    """Keep a plan for other processes."""
    if key:
        content, parts = json.dumps({"plan": stored.plan.to_json(), "groups": stored.groups}), _parts(target)
        target.cache.put(key, parts, content.encode(), f"plan of {stored.plan.nodes} operators",
                         target.cache.explain(key, parts))
