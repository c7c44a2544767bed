"""Gradients of composite operators without a rule: those of the operators that they are made of."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from op_cases import Case, cases
from test_gradient import derivative_is_right, more

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator
from mxc.compiler.passes.gradient import HEAD, differentiate
from mxc.compiler.passes.infer import infer
from mxc.compiler.targets.reference import interpreter


def without_rule(op: Operator) -> Operator:
    """The operator as it would be if nobody had written its gradient."""
    return dataclasses.replace(op, grad=None, rules={k: v for k, v in op.rules.items() if k != "grad"})


# Several outputs, integer inputs, auxiliary states, parameters that change what an operator is made of.
RULED = ("L2Normalization", "LRN", "moments", "softmax", "softmin", "log_softmax", "LayerNorm", "GroupNorm",
         "LeakyReLU", "UpSampling", "GridGenerator", "SpatialTransformer", "_contrib_AdaptiveAvgPooling2D", "_split_v2")
CASES = [*(case for name in RULED for case in cases(table.get(name))),
         more("BatchNorm", (2, 3, 4), *[(3,)] * 4, low=0.5, fix_gamma=False)]
CASES = [dataclasses.replace(case, op=without_rule(case.op)) for case in CASES]


@pytest.mark.parametrize("is_train", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_finite_differences(case: Case, is_train: bool) -> None:
    assert case.op.rule("grad") is None and case.op.differentiable
    if case.op.name == "LeakyReLU" and case.params.act_type == "rrelu" and is_train:
        pytest.skip("it draws slopes")
    derivative_is_right(case, is_train)


def gradients(op: Operator, params: dict[str, object], inputs: dict[str, np.ndarray], outputs: tuple[int, ...],
              wanted: tuple[str, ...], twice: bool = False) -> list[np.ndarray]:
    """The gradients of some outputs to some inputs; `twice`: of these gradients' sum to the inputs."""
    node = Node(op, "op", None, op.make_params(params), [Entry(variable(name)) for name in inputs])
    shapes, dtypes = {k: v.shape for k, v in inputs.items()}, {k: v.dtype.name for k, v in inputs.items()}
    graph = infer(Graph([Entry(node, i) for i in outputs]), shapes, dtypes)
    requests = dict.fromkeys(wanted, "write")
    made = differentiate(graph, requests, True, again=twice)
    rng = np.random.default_rng(3)
    values = inputs | {f"{HEAD}{i}": rng.uniform(0.5, 1, graph.shape(e)) for i, e in enumerate(graph.outputs)}
    if twice:
        first = Graph([e for e, s in zip(made.outputs, made.sinks, strict=True) if s.kind == "grad"])
        read = {node.name: values[node.name] for node in first.variables}
        known = infer(first, {k: v.shape for k, v in read.items()}, {k: v.dtype.name for k, v in read.items()})
        made = differentiate(known, requests, True)
        values |= {f"_{HEAD}{i}": np.ones(known.shape(e)) for i, e in enumerate(known.outputs)}
    check_graph(made)
    run = interpreter.run(made, values, {}, True)
    return [run[e] for e, s in zip(made.outputs, made.sinks, strict=True) if s.kind == "grad"]


DATA = np.random.default_rng(0).uniform(-1, 1, (3, 4))
PLACES = np.array([[0, 2, 0], [1, 3, 1]], "int32")  # one element twice


GROUPED = {"x": DATA.reshape(1, 4, 3), "gamma": np.array([2.0, 3.0]), "beta": np.ones(2)}
LENGTHS = {"x": DATA, "length": np.array([4, 1, 3], "int32")}


@pytest.mark.parametrize(("name", "params", "inputs", "outputs", "wanted", "twice"), [
    ("_split_v2", {"indices": (0, 1, 3), "axis": 1}, {"x": DATA}, (1,), ("x",), False),
    ("gather_nd", {}, {"x": DATA, "at": PLACES}, (0,), ("x",), False),
    ("GroupNorm", {"num_groups": 2}, GROUPED, (0,), ("gamma",), False),
    ("GroupNorm", {"num_groups": 2}, GROUPED, (0,), ("x", "gamma"), True),
    ("moments", {"axes": (1,)}, {"x": DATA}, (1,), ("x",), True),
    ("softmax", {"use_length": True}, LENGTHS, (0,), ("x",), False),
    ("softmax", {"use_length": True}, LENGTHS, (0,), ("x",), True),
], ids=lambda value: value if isinstance(value, str) else "twice" if value is True else "")
def test_the_same_as_by_its_rule(name: str, params: dict[str, object], inputs: dict[str, np.ndarray],
                                 outputs: tuple[int, ...], wanted: tuple[str, ...], twice: bool) -> None:
    """Some outputs have no gradient, integer inputs get none, and not all gradients are asked for."""
    op = table.get(name)
    by_rule, by_parts = (gradients(o, params, inputs, outputs, wanted, twice) for o in (op, without_rule(op)))
    for found, expected in zip(by_parts, by_rule, strict=True):
        np.testing.assert_allclose(found, expected, 1e-9, 1e-12)


def test_recorded_programs() -> None:
    """What is made for a graph works for a tape too, and twice."""
    x = mx.nd.array([[3.0, 1.0, 2.0], [0.5, 0.75, 0.25]])
    x.attach_grad()
    with mx.autograd.record():
        ordered = mx.nd.sort(x, axis=1)
        first = mx.autograd.grad((ordered * mx.nd.array([1.0, 10.0, 100.0]) * ordered).sum(), [x], create_graph=True)[0]
    np.testing.assert_allclose(first.asnumpy(), [[600, 2, 40], [10, 150, 0.5]])
    first.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [[200, 2, 20], [20, 200, 2]])


def test_nothing_is_made_that_no_gradient_reads() -> None:
    op = without_rule(table.get("SpatialTransformer"))
    params = op.make_params({"target_shape": (2, 3), "transform_type": "affine", "sampler_type": "bilinear"})
    node = Node(op, "op", None, params, [Entry(variable(name)) for name in ("data", "loc")])
    graph = infer(Graph([Entry(node)]), {"data": (1, 2, 4, 3), "loc": (1, 6)}, {})
    made = differentiate(graph, {"data": "write"}, True)
    assert not [n.name for n in made.nodes if n.op is not None and n.op.name == "BilinearSampler"]


@pytest.mark.parametrize(("name", "params", "shapes", "message"), [
    ("Dropout", {"p": 0.5}, [(2, 3)], "op> has no gradient.* draws random numbers.*BlockGrad"),
    ("take", {}, [(2, 3), (2,)], "op> has no gradient.* not made of other operators.*BlockGrad"),
    ("FullyConnected", {"num_hidden": 2}, [(2, 3), (2, 3), (2,)], "op> has no gradient.* made of FullyConnected again"),
])
def test_what_parts_do_not_tell_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, params: dict[str, object],
                                           shapes: list[tuple[int, ...]], message: str) -> None:
    op = table.get(name)
    monkeypatch.setattr(op, "rules", {k: v for k, v in op.rules.items() if k != "grad"})
    monkeypatch.setattr(op, "grad", None)
    inputs = {f"x{i}": np.ones(shape) for i, shape in enumerate(shapes)}
    with pytest.raises(MXNetError, match=message):
        gradients(op, params, inputs, (0,), ("x0",))


def test_random_numbers_of_parts_of_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other ones would be drawn, also where the part that draws is composite itself."""
    op, own = table.get("Flatten"), Operator.rule
    monkeypatch.setattr(op, "rules", {k: v for k, v in op.rules.items() if k != "grad"})
    monkeypatch.setattr(op, "grad", None)
    monkeypatch.setattr(Operator, "rule", lambda each, role: own(each, role) if (each, role) != (op, "decompose") else (
        lambda builder, node, inputs, options: [builder.make("Dropout", inputs[0])]))
    with pytest.raises(MXNetError, match=r"op> has no gradient.* draws random numbers"):
        gradients(op, {}, {"x": np.ones((2, 3))}, (0,), ("x",))


def test_a_gradient_that_mxnet_refuses_is_refused() -> None:
    op = table.get("batch_take")
    assert op.rule("decompose") is not None and not op.differentiable
    with pytest.raises(MXNetError, match=r"op> has no gradient, and one was asked for.*BlockGrad"):
        gradients(op, {}, {"a": DATA, "indices": np.array([0, 1, 2], "int32")}, (0,), ("a",))
    graph = infer(Graph([Entry(Node(op, "op", None, op.make_params({}), [Entry(variable(n)) for n in ("a", "i")]))]),
                  {"a": (3, 4), "i": (3,)}, {"i": "int32"})
    assert differentiate(graph, {}, True).outputs == graph.outputs
