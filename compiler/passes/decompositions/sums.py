"""Sums of many arrays, a few at a time."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.building import as_dtype, widened
from mxc.compiler.passes.registry import Options

MOST_TERMS = 23  # arrays that one node adds up: with the sum they are as many as one kernel may have (passes/fuse.py)


def add_n(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry] | None:
    """The first terms, then that sum and the next ones, and so on: added in the order in which they come, as one
    expression would, whatever their number. Sums of float16 are rounded once, at the end."""
    if len(inputs) <= MOST_TERMS:
        return None
    terms = [widened(builder, e) for e in inputs]
    total = terms[0]
    for start in range(1, len(terms), MOST_TERMS - 1):
        some = [total, *terms[start:start + MOST_TERMS - 1]]
        total = builder.make("add_n", *some, num_args=len(some))
    return [as_dtype(builder, total, builder.dtype(inputs[0]))]
