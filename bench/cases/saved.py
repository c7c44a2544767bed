"""Detectors from a folder of saved models, whole and up to their heads."""
from __future__ import annotations

import json
from pathlib import Path

import mxc as mx
from mxc.symbol import Symbol


def whole(file: Path) -> Symbol:
    return mx.sym.load_json(file.read_text())


def heads(file: Path) -> Symbol:
    """The network up to its heads: the convolutions that no other convolution follows."""
    graph = json.loads(file.read_text())
    internals = mx.sym.load_json(file.read_text()).get_internals()
    before: list[set[int]] = []  # convolutions that a node depends on
    own, followed = [], set()
    for i, node in enumerate(graph["nodes"]):
        found = set().union(*(before[source] | ({source} & set(own)) for source, *_ in node["inputs"]))
        if node["op"] == "Convolution":
            own.append(i)
            followed |= found
        before.append(found)
    names = [graph["nodes"][i]["name"] for i in own if i not in followed]
    return mx.sym.Group([internals[f"{name}_output"] for name in names])
