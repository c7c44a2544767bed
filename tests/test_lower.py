"""Lowering: every golden case, fused and lowered, run by the kernels' NumPy definitions."""
from __future__ import annotations

import pytest
from golden.cases import Answer
from golden_graphs import answered, arrays_of, compare, graph_of, requests_of
from programs import lowered

RANDOM = ("Dropout",)


@pytest.mark.parametrize("answer", [a for a in answered() if a.case.op not in RANDOM], ids=lambda a: a.case.name)
def test_golden_case(answer: Answer) -> None:
    arrays = arrays_of(answer)
    program = lowered(graph_of(answer), {i.name: i.shape for i in answer.case.inputs},
                      {i.name: i.dtype for i in answer.case.inputs}, requests_of(answer), answer.case.train)
    results, aux = program.run(arrays)
    compare(answer, program.graph.sinks, results, aux)
