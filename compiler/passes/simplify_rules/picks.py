"""Rules around pick, which reads one element of each line along an axis: what is computed for the others is not needed.

A loss over classes is the case in point. `pick(log_softmax(x), label)` needs two numbers of each row and one element of
x; its gradient needs the whole of log_softmax(x), which `recompute` makes anew from the same two numbers.
"""
from __future__ import annotations

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.graph.phases import BACKWARD
from mxc.compiler.ops.operator import Kind
from mxc.compiler.passes.simplify_rules.rule import Site, rule


def _reads_memory(site: Site, node: Node) -> bool:
    """True when `node` makes the forward part store what it reads; the backward part computes it again."""
    return node.op is None or (node.op.kind > Kind.REDUCTION and site.phase[node] != BACKWARD)


@rule("pick")
def pick_before_arithmetic(site: Site, node: Node) -> Entry | None:
    """pick(f(x, y)) -> f(pick(x), y), where y has one element along the axis and no kernel finds f(x, y) in memory"""
    data, index = node.inputs
    inner, shape = data.node, site.graph.shape(data)
    if inner.op is None or inner.op.kind > Kind.BROADCAST or inner.num_outputs != 1:
        return None
    if data in site.outputs or any(_reads_memory(site, n) for n, _ in site.consumers[data]):
        return None
    axis = node.params.axis % len(shape)
    line = (*shape[:axis], 1, *shape[axis + 1:])
    whole = [e for e in inner.inputs if site.graph.shape(e) == shape]
    if len(whole) != 1 or shape == line or any(site.graph.shape(e) != line for e in inner.inputs if e not in whole):
        return None
    picked = site.builder.make("pick", site.new(whole[0]), site.new(index), axis=axis, keepdims=True,
                               mode=node.params.mode)
    inputs = [picked if e in whole else site.new(e) for e in inner.inputs]
    made = site.builder.make(inner.op.name, *inputs, name="", **inner.params)
    return as_shape(site.builder, made, site.graph.shape(Entry(node)))


@rule("sum")
def sum_of_unpicked(site: Site, node: Node) -> Entry | None:
    """sum(unpick(g, index)) over the axis of the pick -> g: each line holds one element of g, and zeros"""
    inner = site.producer(node.inputs[0], "_mxc_unpick")
    same = inner is not None and site.graph.dtype(inner.inputs[0]) == site.graph.dtype(Entry(node))
    if inner is None or not same or node.params.exclude or node.params.axis != (inner.params.axis,):
        return None
    return as_shape(site.builder, site.new(inner.inputs[0]), site.graph.shape(Entry(node)))
