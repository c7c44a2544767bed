"""How many places a node reads for one element."""
from __future__ import annotations

import pytest

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder
from mxc.compiler.lowering.index_reads import places_read

CASES = [("transpose", [(3, 4)], {}, (1,)), ("Concat", [(3, 4), (3, 5)], {"num_args": 2, "dim": 1}, (1, 1)),
         ("take", [(5, 4), (3,)], {}, (1, 1)), ("_contrib_BilinearResize2D", [(1, 1, 4, 5)], {"height": 7, "width": 9},
                                                (4,)),
         ("slice_axis", [(5,)], {"axis": 0, "begin": 1, "end": 3}, (1,))]


@pytest.mark.parametrize(("op", "shapes", "params", "expected"), CASES)
def test_places(op, shapes, params, expected):
    builder = GraphBuilder()
    inputs = [builder.variable(f"x{k}", shape, "float32") for k, shape in enumerate(shapes)]
    made = builder.make(op, *inputs, **params)
    graph = builder.finish([made], Graph([made]).sinks)
    assert places_read(graph, Entry(made.node)) == expected
