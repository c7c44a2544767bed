"""Lowering: every golden case, fused and lowered, run by the kernels' NumPy definitions."""
from __future__ import annotations

import numpy as np
import pytest
from golden.cases import Answer
from golden_graphs import answered, arrays_of, compare, graph_of, requests_of
from programs import lowered

from mxc.compiler.graph.text import parse_graph

RANDOM = ("Dropout",)


@pytest.mark.parametrize("answer", [a for a in answered() if a.case.op not in RANDOM], ids=lambda a: a.case.name)
def test_golden_case(answer: Answer) -> None:
    arrays = arrays_of(answer)
    program = lowered(graph_of(answer), {i.name: i.shape for i in answer.case.inputs},
                      {i.name: i.dtype for i in answer.case.inputs}, requests_of(answer), answer.case.train)
    results, aux = program.run(arrays)
    compare(answer, program.graph.sinks, results, aux)


def test_what_only_a_view_reads_is_stored_once() -> None:
    """The gradient of b is the sum's result under another shape: added to the gradient, and nowhere else in memory."""
    graph = parse_graph("""graph(x: float32[4,3], b: float32[3])
      wide = Reshape(b, shape=(1, 3))
      y = broadcast_add(x, wide)
      return y""")
    program = lowered(graph, {"x": (4, 3), "b": (3,)}, grad_req={"b": "add"}, is_train=True)
    assert [s.pool for launch in program.launches for s in launch.writes] == ["output", "gradient"]
    head = np.arange(12, dtype="float32").reshape(4, 3)
    given = {"x": head, "b": np.ones(3, "float32"), "_head_grad_0": head}
    results, _ = program.run(given, {"b": np.full(3, 2, "float32")})
    np.testing.assert_array_equal(results[1], head.sum(axis=0) + 2)
