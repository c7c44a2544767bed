"""Simplification: rules applied to every node until none applies any more. Nodes that nothing needs are dropped."""
from __future__ import annotations

import functools

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.passes.registry import graph_pass
from mxc.compiler.passes.simplify_rules import algebra, constants, picks, scales, shape
from mxc.compiler.passes.simplify_rules.rule import Rule, Site

# Tried in this order; the first that applies to a node wins, and the next round looks at what it made.
RULES: tuple[Rule, ...] = (
    constants.as_fill,
    algebra.same_dtype,
    algebra.neutral_scalar,
    algebra.neutral_array,
    algebra.integer_times_zero,
    algebra.where_of_constant,
    constants.fill_moved,
    constants.fill_computed,
    algebra.fill_as_scalar,
    algebra.scalar_chain,
    algebra.saturated_relu,
    algebra.double_negative,
    algebra.idempotent,
    shape.reshape_to_same,
    shape.reshape_of_reshape,
    shape.transpose_of_transpose,
    shape.transpose_as_reshape,
    shape.transpose_into_product,
    shape.takes_all,
    shape.broadcast_of_equal_shapes,
    picks.pick_before_arithmetic,
    picks.sum_of_unpicked,
    scales.scale_into_weight,
    scales.scale_before_shift,
    scales.shifts_together,
)

ROUNDS = 100  # a bound that no graph reaches: every rule makes the graph smaller or moves work towards the arguments


def apply_rules(graph: Graph, options: Options, rules: tuple[Rule, ...]) -> tuple[Graph, int]:
    """One round: (the new graph, how many nodes were simplified)."""
    builder = GraphBuilder(graph)
    site = Site(graph, builder, options)
    count = 0
    for node in graph.nodes:
        builder.at(node)
        entry = _simplified(site, node, rules)
        if entry is None:
            builder.copy(node)
        else:
            builder.map[Entry(node)] = entry
            for made in (*builder.made, entry.node):
                builder.came_from(made, *site.seen_through(node))
            count += 1
    return builder.finish([builder.map[e] for e in graph.outputs], graph.sinks), count


def _simplified(site: Site, node: Node, rules: tuple[Rule, ...]) -> Entry | None:
    """What the first rule that applies makes of `node`."""
    if node.op is None or node.num_outputs != 1:
        return None
    for each in _fitting(rules, node.op.name):
        site.read.clear()
        entry = each.apply(site, node)
        if entry is not None:
            return entry
    return None


@functools.cache
def _fitting(rules: tuple[Rule, ...], op: str) -> tuple[Rule, ...]:
    """Those of `rules` that are for nodes of `op`."""
    return tuple(each for each in rules if not each.ops or op in each.ops)


@graph_pass(needs=("shape", "dtype"))
def simplify(graph: Graph, options: Options) -> Graph:
    """Simplifies: algebra, constants, BatchNorm into weights, views, dead code (`simplify_rules/`)."""
    for _ in range(ROUNDS):
        graph, count = apply_rules(graph, options, RULES)
        if not count:
            break
    return graph
