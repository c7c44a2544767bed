"""Host steps: a node of an opaque operator runs in Python between the kernels, inference and training."""
from __future__ import annotations

import numpy as np
import pytest

from mxc import nd
from mxc.compiler import api
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import InputSpec, Kind, Operator
from mxc.executor import Executor
from mxc.runtime.context import cpu
from mxc.runtime.executor import BoundArrays


class SortedRows(Operator):
    """Rows in ascending order, and how many elements there are: two outputs, no kernel."""

    def __init__(self) -> None:
        super().__init__("sorted_rows", Kind.OPAQUE, (InputSpec("data"),), outputs=("output", "count"), grad="none")

    def rule(self, role):
        same = {"shape": lambda params, ins, outs: (ins, [ins[0], ins[0]]),
                "dtype": lambda params, ins, outs: (ins, [ins[0], ins[0]])}
        return same.get(role)

    def reference(self, params, arrays, out_dtypes, is_train, rng):
        return [np.sort(arrays[0], axis=1), np.full_like(arrays[0], arrays[0].size)]


def network() -> Graph:
    """(2 x) sorted, plus the count, plus x: kernels before and after the host step."""
    x = Entry(variable("x"))
    scale, add = table.get("_mul_scalar"), table.get("elemwise_add")
    twice = Entry(Node(scale, "twice", params=scale.make_params({"scalar": 2.0}), inputs=[x]))
    host = Node(SortedRows(), "rows", inputs=[twice])
    total = Entry(Node(add, "total", params=add.make_params({}), inputs=[Entry(host, 0), Entry(host, 1)]))
    return Graph([Entry(Node(add, "out", params=add.make_params({}), inputs=[total, x])), Entry(host, 0)])


class Bare:
    """As much of a symbol as an executor needs."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def list_outputs(self) -> list[str]:
        return ["out_output", "rows_output"]


def test_the_plan_names_the_host_step() -> None:
    compiled = api.compile_graph(network(), {"x": (3, 4)}, {}, {}, False)
    assert [(s.label, s.host) for s in compiled.plan.steps_of("forward")] == [
        ("_mul_scalar", None), ("sorted_rows", 2), ("elemwise_add+elemwise_add", None)]
    assert compiled.graph.nodes[2].name == "rows" and "sorted_rows (host step of node 2): " in compiled.plan.text()
    assert "sorted_rows (host step of rows): " in compiled.plan.text([node.name for node in compiled.graph.nodes])


@pytest.mark.parametrize("is_train", [False, True])
def test_an_executor_runs_it(is_train: bool) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")
    array, grad = nd.array(x), nd.zeros((3, 4))
    executor = Executor(Bare(network()), cpu(), BoundArrays({"x": array}, {"x": grad}, {"x": "write"}, {}))
    for _ in range(2):
        out, rows = executor.forward(is_train=is_train)
        np.testing.assert_allclose(rows.asnumpy(), np.sort(2 * x, axis=1), rtol=1e-6)
        np.testing.assert_allclose(out.asnumpy(), np.sort(2 * x, axis=1) + 12 + x, rtol=1e-6)
    executor.backward([nd.ones((3, 4)), nd.ones((3, 4))])
    np.testing.assert_allclose(grad.asnumpy(), np.ones((3, 4)))
