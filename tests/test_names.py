"""Names: two nodes of one name are two nodes everywhere, and what passes make has names of its own."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import models
import networks
import numpy as np
import pytest

import mxc as mx
from mxc import artifact
from mxc.base import MXNetError
from mxc.compiler import api
from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.graph import Graph, GraphBuilder, Sink
from mxc.compiler.graph.names import with_distinct_names
from mxc.compiler.graph.text import digest, graph_text, parse_graph, same_graph
from mxc.symbol import Symbol

LARGE = 50_000  # bytes of a saved graph from which on its training graphs take seconds


class TimesOp(mx.operator.CustomOp):
    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        self.assign(out_data[0], req[0], in_data[0] * self.factor)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * self.factor)


def times(op_type: str, factor: float) -> None:
    class TimesProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> TimesOp:
            return TimesOp(factor)

    mx.operator.register(op_type)(TimesProp)


times("names_times2", 2)
times("names_times10", 10)


def alike() -> Symbol:
    """2 x and 10 x, both by an operator in Python of the name "c"."""
    x = mx.sym.Variable("x")
    return mx.sym.Group([mx.sym.Custom(x, op_type="names_times2", name="c"),
                         mx.sym.Custom(x, op_type="names_times10", name="c")])


def test_operators_in_python_of_one_name() -> None:
    executor = alike().simple_bind(mx.cpu(), x=(3,))
    executor.arg_dict["x"][:] = 1
    for is_train in (False, True):
        assert [o.asnumpy().tolist() for o in executor.forward(is_train=is_train)] == [[2] * 3, [10] * 3]
    executor.backward([mx.nd.ones((3,)), mx.nd.full((3,), 7)])
    assert executor.grad_dict["x"].asnumpy().tolist() == [72] * 3


def test_operators_in_python_of_one_name_in_an_artifact(tmp_path: Path) -> None:
    executor = alike().simple_bind(mx.cpu(), grad_req="null", x=(3,))
    artifact.save(tmp_path / "alike.mxc", [executor], ["x"])
    loaded = mx.load(tmp_path / "alike.mxc").executor()
    loaded.arg_dict["x"][:] = 1
    assert [o.asnumpy().tolist() for o in loaded.forward()] == [[2] * 3, [10] * 3]


def test_an_artifact_of_other_passes_does_not_run_operators_in_python(tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    executor = alike().simple_bind(mx.cpu(), grad_req="null", x=(3,))
    artifact.save(tmp_path / "alike.mxc", [executor], ["x"])
    monkeypatch.setattr(api, "watch_passes", lambda *_, **__: parse_graph(
        "graph(x: float32[3])\n y = exp(x)\n return y"))
    with pytest.raises(MXNetError, match="was compiled by other passes"):
        mx.load(tmp_path / "alike.mxc").predict(x=np.ones(3))


def test_checked_indices_of_one_name() -> None:
    table, far, near = (mx.sym.Variable(name) for name in ("table", "far", "near"))
    net = mx.sym.Group([mx.sym.take(table, index, mode="raise", name="t") for index in (far, near)])
    executor = net.simple_bind(mx.cpu(), grad_req="null", table=(4,), far=(2,), near=(2,))
    outputs = executor.forward(table=np.arange(4), far=np.array([3, 2]), near=np.array([0, 1]))
    assert [o.asnumpy().tolist() for o in outputs] == [[3, 2], [0, 1]]
    with pytest.raises(MXNetError, match="node 't': expected indices from 0 to 3"):
        executor.forward(near=np.array([0, 9]))[1].wait_to_read()


def test_a_program_may_use_the_names_of_head_gradients() -> None:
    net = mx.sym.Variable("_head_grad_0") * mx.sym.Variable("__head_grad_0")
    executor = net.simple_bind(mx.cpu(), _head_grad_0=(2,), __head_grad_0=(2,))
    executor.forward(is_train=True, _head_grad_0=np.array([3, 4]), __head_grad_0=np.array([5, 6]))
    executor.backward(mx.nd.array([1, 2]))
    assert executor.outputs[0].asnumpy().tolist() == [15, 24]
    assert executor.grad_dict["_head_grad_0"].asnumpy().tolist() == [5, 12]
    assert executor.grad_dict["__head_grad_0"].asnumpy().tolist() == [3, 8]


@pytest.mark.parametrize("mean, var, says", [
    ("g", "v", "an argument and an auxiliary state are both named 'g'"),
    ("v", "v", "two auxiliary states are both named 'v'")])
def test_arrays_of_one_name_are_refused(mean: str, var: str, says: str) -> None:
    net = mx.sym.BatchNorm(mx.sym.Variable("x"), *(mx.sym.Variable(name) for name in ("g", "b", mean, var)), name="bn")
    with pytest.raises(MXNetError, match=says):
        net.simple_bind(mx.cpu(), x=(4, 3))
    with pytest.raises(MXNetError, match=says):
        net.bind(mx.cpu(), [mx.nd.ones((4, 3)), mx.nd.ones((3,)), mx.nd.ones((3,))],
                 aux_states=[mx.nd.ones((3,)), mx.nd.ones((3,))])


def test_digests_have_no_names() -> None:
    text = "graph({0}: float32[2])\n {1} = {2}({0})\n return {1}, grad({0}) = {1}"
    first, other_names, other = (digest(parse_graph(text.format(*words))) for words in (
        ("a", "b", "exp"), ("c", "d", "exp"), ("a", "b", "tanh")))
    assert first == other_names != other


def test_what_a_program_named_twice_is_printed_apart() -> None:
    x = mx.sym.Variable("x")
    y = mx.sym.tanh(mx.sym.exp(mx.sym.exp(x, name="x"), name="c#2"), name="c")
    graph = mx.sym.Group([y, mx.sym.exp(y, name="c")]).simple_bind(mx.cpu(), x=(2,))._core.graph
    text = graph_text(graph)
    assert text == """graph(x: float32[2])
  'x#2' = exp(x)
  'c#2' = exp('x#2')
  c = tanh('c#2')
  'c#3' = exp(c)
  return c, output(c) = 'c#3'"""
    assert graph_text(parse_graph(text)) == text and same_graph(parse_graph(text), graph)
    check_graph(with_distinct_names(graph))
    with pytest.raises(MXNetError, match="two nodes have the name 'c'"):
        check_graph(graph)
    assert with_distinct_names(parse_graph("graph(a: float32[2])\n b = exp(a)\n return b")).nodes[1].name == "b"


def test_made_nodes_have_names_of_their_own() -> None:
    old = parse_graph("""graph(x: float32[4])
        Reshape1 = Reshape(x, shape=(2, 2))
        exp2 = exp(Reshape1)
        return exp2""")
    builder = GraphBuilder(old)
    builder.copy(old.nodes[0])
    wide = builder.make("Reshape", builder.map[old.nodes[1].inputs[0]], shape=(1, 4))
    for _ in range(2):
        wide = builder.make("exp", wide)
    builder.map[old.nodes[2].inputs[0]] = builder.make("Reshape", wide, shape=(2, 2))
    again = builder.make("exp", builder.copy(old.nodes[2])[0], name="exp2")
    made = builder.finish([again], [Sink("output", "exp2")])
    check_graph(made)
    assert [node.name for node in made.nodes] == ["x", "Reshape2", "exp1", "exp3", "Reshape4", "exp2", "exp2#2"]


def passes_of(symbol: Symbol, shapes: dict[str, tuple[int, ...]], is_train: bool) -> list[tuple[str, Graph]]:
    inputs = {"data", "softmax_label"}
    requests = {n: "write" for n in symbol.list_arguments() if n not in inputs} if is_train else {}
    made: list[tuple[str, Graph]] = []
    api.watch_passes(symbol.graph, shapes, {}, requests, is_train, lambda name, _, after: made.append((name, after)))
    return made


def check_texts(symbol: Symbol, shapes: dict[str, tuple[int, ...]], is_train: bool) -> None:
    """What each pass makes has distinct names, and its text is the text of the graph that is read from it."""
    known: set[str] = set()
    for name, graph in passes_of(symbol, shapes, is_train):
        names = [node.name for node in graph.nodes]
        assert len({*names}) == len(names), name
        text = graph_text(graph)
        assert text in known or graph_text(parse_graph(text)) == text, name
        known.add(text)


@pytest.mark.parametrize("is_train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", [*models.BUILT, *networks.LAYERS])
def test_the_text_of_what_passes_make_is_read_again(name: str, is_train: bool) -> None:
    if name in models.BUILT:
        symbol, shapes = models.network(name)
    else:
        symbol, shape = networks.layer(name)
        shapes = {"data": shape}
    check_texts(symbol, shapes, is_train)


def saved() -> list[Any]:
    """Every network of the folder, in inference and training; training of large ones is slow."""
    cases = models.SHARED / "cases.json"
    made = []
    for name, case in (json.loads(cases.read_text()) if cases.exists() else {}).items():
        is_large = (models.SHARED / case["symbol"]).stat().st_size > LARGE
        made += [pytest.param(name, False, id=f"{name}-inference"),
                 pytest.param(name, True, id=f"{name}-training", marks=[pytest.mark.slow] * is_large)]
    return made


@pytest.mark.parametrize("name, is_train", saved())
def test_the_text_of_what_passes_make_of_a_saved_network_is_read_again(name: str, is_train: bool) -> None:
    check_texts(*models.network(name), is_train)
