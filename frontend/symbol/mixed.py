"""Casts in front of the operators of symbols, where automatic mixed precision is on."""
from __future__ import annotations

import logging
from typing import Any

from mxc.compiler.graph.graph import Node
from mxc.compiler.ops import table
from mxc.mixed_precision import WIDEST, Rules


def cast(rules: Rules, node: Node, apply: Any) -> Node:
    """The node, its inputs cast to the dtypes in which its operator computes. Auxiliary states stay as they are.
    apply: makes a symbol of an operator and symbols."""
    from mxc.symbol.symbol import Symbol

    op = node.op
    assert op is not None
    if rules.is_loss(op.name):
        logging.warning("%s does not support dynamic loss scaling in symbolic and hybridized execution.", op.name)
    way, states = rules.way(op.name, node.params), op.states(node.params)
    places = [i for i in range(len(node.inputs)) if i not in range(*states.indices(len(node.inputs)))]
    if way is None or not places:
        return node
    symbols = [Symbol([node.inputs[i]]) for i in places]
    if way == WIDEST:
        made = [*apply(table.get("amp_multicast"), "amp_multicast", symbols, {"num_outputs": len(symbols)})]
    else:
        names = op.all_names(node.params)
        wanted = [rules.dtype_for(op.name, way, names[i]) for i in places]
        made = [each if to is None else apply(table.get("amp_cast"), "amp_cast", [each], {"dtype": to})
                for each, to in zip(symbols, wanted, strict=True)]
    for i, each in zip(places, made, strict=True):
        node.inputs[i] = each.entries[0]
    return node
