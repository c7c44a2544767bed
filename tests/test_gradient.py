"""The gradient pass: the graphs it makes, what MXNet's gradients are, and finite differences for every operator."""
from collections.abc import Callable

import numpy as np
import pytest
from golden_graphs import answered, arrays_of, compare, graph_of, requests_of
from op_cases import Case, cases
from pass_checks import assert_graph, options

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.gradient_rule import is_loss
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.ops import table
from mxc.compiler.passes.gradient import HEAD, gradient
from mxc.compiler.passes.infer import infer
from mxc.compiler.targets.reference import interpreter


def joint(text: str, is_train: bool = True, **grad_req: str) -> Graph:
    made = gradient(parse_graph(text), options(is_train=is_train, grad_req=grad_req))
    check_graph(made)
    return made


# -- graphs

@pytest.mark.parametrize("text, grad_req, expected", [
    pytest.param("""graph(a: float32[2,3])
                    t = tanh(a)
                    return t""", {"a": "write"},
                 """graph(a: float32[2,3], _head_grad_0: float32[2,3])
                    t = tanh(a)
                    b = _backward_tanh_data(_head_grad_0, t)
                    return t, grad(a) = b""", id="formula"),
    pytest.param("""graph(a: float32[2,3])
                    t = tanh(a)
                    return t""", {"a": "null"},
                 """graph(a: float32[2,3])
                    t = tanh(a)
                    return t""", id="null"),
    pytest.param("""graph(a: float32[2,3])
                    return a""", {"a": "add"},
                 """graph(a: float32[2,3], _head_grad_0: float32[2,3])
                    return a, add grad(a) = _head_grad_0""", id="an output that is a variable"),
    pytest.param("""graph(a: float32[2,3], b: float32[2,3])
                    s = elemwise_add(a, a)
                    k = BlockGrad(b)
                    return s, k""", {"a": "write", "b": "write"},
                 """graph(a: float32[2,3], b: float32[2,3], _head_grad_0: float32[2,3])
                    s = elemwise_add(a, a)
                    k = BlockGrad(b)
                    d = elemwise_add(_head_grad_0, _head_grad_0)
                    z = _zeros(shape=(2, 3))
                    return s, k, grad(a) = d, grad(b) = z""", id="a variable used twice, one that nothing reaches"),
    pytest.param("""graph(a: float32[2,3], b: float32[3])
                    s = broadcast_add(a, b)
                    return s""", {"b": "write"},
                 """graph(a: float32[2,3], b: float32[3], _head_grad_0: float32[2,3])
                    s = broadcast_add(a, b)
                    t = sum(_head_grad_0, axis=(0,), keepdims=True)
                    r = Reshape(t, shape=(3,))
                    return s, grad(b) = r""", id="broadcast"),
    pytest.param("""graph(a: float32[2,3])
                    s = add_n(a, a, a, num_args=3)
                    return s, s""", {"a": "write"},
                 """graph(a: float32[2,3], _head_grad_0: float32[2,3], _head_grad_1: float32[2,3])
                    s = add_n(a, a, a, num_args=3)
                    h = elemwise_add(_head_grad_0, _head_grad_1)
                    d = add_n(h, h, h, num_args=3)
                    return s, s, grad(a) = d""", id="an output twice"),
    pytest.param("""graph(a: float16[2,3])
                    c = Cast(a, dtype=float32)
                    return c""", {"a": "write"},
                 """graph(a: float16[2,3], _head_grad_0: float32[2,3])
                    c = Cast(a, dtype=float32)
                    d = Cast(_head_grad_0, dtype=float16)
                    return c, grad(a) = d""", id="the argument's dtype"),
    pytest.param("""graph(a: float32[2,3])
                    l = MakeLoss(a, grad_scale=2)
                    k = BlockGrad(l)
                    return k""", {"a": "write"},
                 """graph(a: float32[2,3])
                    l = MakeLoss(a, grad_scale=2)
                    k = BlockGrad(l)
                    f = _full(shape=(2, 3), value=2)
                    return k, grad(a) = f""", id="a loss begins a gradient though nothing flows into it"),
    pytest.param("""graph(a: float32[2,3])
                    r = Activation(a, act_type=relu)
                    return r""", {"a": "write"},
                 """graph(a: float32[2,3], _head_grad_0: float32[2,3])
                    r = Activation(a, act_type=relu)
                    b = _backward_Activation_data(_head_grad_0, r, _head_grad_0, act_type=relu)
                    return r, grad(a) = b""", id="what the chosen formula does not read is not kept"),
    pytest.param("""graph(a: float32[2,3])
                    m = mean(a, axis=1)
                    return m""", {"a": "write"},
                 """graph(a: float32[2,3], _head_grad_0: float32[2])
                    m = mean(a, axis=1)
                    r = Reshape(_head_grad_0, shape=(2, 1))
                    d = _backward_mean_data(r, count=3)
                    w = broadcast_to(d, shape=(2, 3))
                    return m, grad(a) = w""", id="reduction"),
    pytest.param("""graph(a: float32[2,4])
                    s = SliceChannel(a, num_outputs=2)
                    return s.1""", {"a": "write"},
                 """graph(a: float32[2,4], _head_grad_0: float32[2,2])
                    s = SliceChannel(a, num_outputs=2)
                    z = _zeros(shape=(2, 2))
                    c = Concat(z, _head_grad_0, num_args=2)
                    return s.1, grad(a) = c""", id="an output that nothing flows into"),
    pytest.param("""graph(x: float32[2,3], w: float32[4,3], b: float32[4])
                    y = FullyConnected(x, w, b, num_hidden=4)
                    return y""", {"w": "write", "b": "add"},
                 """graph(x: float32[2,3], w: float32[4,3], b: float32[4], _head_grad_0: float32[2,4])
                    y = FullyConnected(x, w, b, num_hidden=4)
                    dw = dot(_head_grad_0, x, transpose_a=True)
                    db = sum(_head_grad_0, axis=(1,), exclude=True)
                    return y, grad(w) = dw, add grad(b) = db""", id="only what is asked for"),
])
def test_graph(text, grad_req, expected):
    assert_graph(joint(text, **grad_req), expected)


BATCH_NORM = """graph(x: float32[4,3], g: float32[3], b: float32[3], m: float32[3], v: float32[3], w: float32[2,3])
                n = BatchNorm(x, g, b, m, v, fix_gamma=False)
                y = FullyConnected(n, w, num_hidden=2, no_bias=True)
                return y"""


@pytest.mark.parametrize("is_train, wanted, changes", [
    (True, ["x"], True), (True, ["b"], True),
    (True, ["w"], False),       # no gradient of the node leads there
    (True, [], False), (False, ["x"], False),
])
def test_moving_statistics_change_where_a_gradient_is_wanted(is_train, wanted, changes):
    made = joint(BATCH_NORM, is_train, **dict.fromkeys(wanted, "write"))
    assert [s.name for s in made.sinks if s.kind == "aux"] == (["m", "v"] if changes else [])


@pytest.mark.parametrize("above, below, wanted, changes", [
    ("x", "BlockGrad(n)", ["x"], True), ("x", "BlockGrad(n)", ["g"], True), ("x", "BlockGrad(n)", ["w"], False),
    ("x", "broadcast_greater(n, w)", ["x"], True), ("x", "LinearRegressionOutput(w, n)", ["x"], True),
    ("x", "where(n, w, w)", ["b"], True),
    ("BlockGrad(x)", "elemwise_mul(n, w)", ["x", "w"], False), ("BlockGrad(x)", "elemwise_mul(n, w)", ["b"], True),
    ("where(x, w, w)", "relu(n)", ["x"], False), ("SoftmaxOutput(w, x)", "relu(n)", ["x"], False),
])
def test_moving_statistics_beside_what_stops_gradients(above, below, wanted, changes):
    text = f"""graph(x: float32[4,3], g: float32[3], b: float32[3], m: float32[3], v: float32[3], w: float32[4,3])
               a = {above if above != "x" else "_copy(x)"}
               n = BatchNorm(a, g, b, m, v)
               y = {below}
               return y"""
    made = joint(text, **dict.fromkeys(wanted, "write"))
    assert [s.name for s in made.sinks if s.kind == "aux"] == (["m", "v"] if changes else [])


def test_shared_moving_statistics_are_updated_twice():
    made = joint("""graph(x: float64[4,3], gamma: float64[3], beta: float64[3], m: float64[3], v: float64[3])
                    n = BatchNorm(x, gamma, beta, m, v, momentum=0.5)
                    k = BatchNorm(n, gamma, beta, m, v, momentum=0.5)
                    return k""", x="write")
    values = {"x": np.arange(12.0).reshape(4, 3) ** 2, "gamma": np.ones(3), "beta": np.full(3, 7.0), "m": np.zeros(3),
              "v": np.ones(3), f"{HEAD}0": np.ones((4, 3))}
    found = interpreter.run(made, values, {}, True)
    (mean,) = [found[e] for e, s in zip(made.outputs, made.sinks, strict=True) if s.name == "m"]
    np.testing.assert_allclose(mean, (0.5 * 7.0) * 0.5 + 0.5 * values["x"].mean(0))  # the last node's first


@pytest.mark.parametrize("shape, rows", [((6,), 1), ((4, 6), 4), ((2, 3, 4), 6), ((2, 3, 4, 5), 24)])
def test_make_loss_divides_by_rows(shape, rows):
    made = joint(f"""graph(x: float32[{",".join(map(str, shape))}])
                     y = MakeLoss(x, grad_scale=2, normalization=batch)
                     return y""", x="write")
    grad = made.outputs[1]
    np.testing.assert_allclose(interpreter.run(made, {"x": np.ones(shape)}, {}, True)[grad], 2 / rows)


def test_softmax_output_multiplies_by_what_flows_in():
    text = """graph(x: float64[4,3], label: float64[4])
              y = SoftmaxOutput(x, label, out_grad=OUT_GRAD)
              return y"""
    rng = np.random.default_rng(0)
    values = {"x": rng.uniform(-1, 1, (4, 3)), "label": np.array([0.0, 2.0, 1.0, 5.0]), f"{HEAD}0": rng.random((4, 3))}
    found = []
    for out_grad in ("False", "True"):
        made = joint(text.replace("OUT_GRAD", out_grad), x="write")
        found.append(interpreter.run(made, values, {}, True)[made.outputs[1]])
    np.testing.assert_allclose(found[1], found[0] * values[f"{HEAD}0"])


def test_no_gradient_is_an_error_that_says_what_to_do():
    op = table.get("_slice_assign_scalar")
    assert not op.differentiable and op.grad != "none"
    node = Node(op, "n", None, op.make_params({"begin": (0,), "end": (1,)}), [Entry(variable("a"))])
    with pytest.raises(MXNetError, match=r"n.* has no gradient.*BlockGrad"):
        gradient(infer(Graph([Entry(node)]), {"a": (2, 3)}, {}), options(is_train=True, grad_req={"a": "write"}))


# -- MXNet's answers

TRAINED = [a for a in answered() if a.grads]


@pytest.mark.parametrize("answer", TRAINED, ids=[a.case.name for a in TRAINED])
def test_golden(answer):
    graph = infer(graph_of(answer), {i.name: i.shape for i in answer.case.inputs},
                  {i.name: i.dtype for i in answer.case.inputs})
    made = gradient(graph, options(is_train=True, grad_req=requests_of(answer)))
    check_graph(made)
    values = interpreter.run(made, arrays_of(answer), {}, True)
    found = [values[e] for e in made.outputs]
    compare(answer, made.sinks, found, {s.name: f for s, f in zip(made.sinks, found, strict=True) if s.kind == "aux"})


# -- finite differences

# Nothing flows back from the state of the one, the other adds a penalty's slope: as in MXNet (see golden cases).
OTHER_SLOPES = "_contrib_hawkesll", "IdentityAttachKLSparseReg"


def differentiable() -> list[Case]:
    """The cases of every operator whose gradient is its derivative: not of those that pass it straight through."""
    found = []
    for op in table.all_operators():
        straight = op.name.endswith("_ste") or (op.family == "image" and op.grad == {"data": "og"})
        if op.inputs and op.differentiable and not is_loss(op) and not straight and op.name not in OTHER_SLOPES:
            found += cases(op)
    return found


def more(op: str, *shapes: tuple[int, ...], low: float = -1, **params: object) -> Case:
    return Case(table.get(op), table.get(op).make_params(params), shapes, low)


MORE = [
    more("LeakyReLU", (2, 3, 2), act_type="selu"), more("LeakyReLU", (2, 3, 2), act_type="gelu"),
    more("LeakyReLU", (2, 3, 2), act_type="rrelu"), more("LeakyReLU", (2, 3, 2), (1,), act_type="prelu"),
    more("LeakyReLU", (4,), act_type="leaky"), more("SoftmaxActivation", (2, 3, 4), mode="instance"),
    more("Pooling", (1, 1, 3, 4, 3), kernel=(3, 2, 3), pad=(1, 1, 1), stride=(2, 1, 2), pool_type="avg"),
    more("Pooling", (1, 1, 6, 5), kernel=(3, 3), stride=(2, 2), pooling_convention="full", pool_type="avg"),
    more("BatchNorm", (2, 3, 4), *[(3,)] * 4, low=0.5, use_global_stats=True, fix_gamma=False),
    more("Dropout", (3, 4), p=0.3, axes=(0,)), more("Dropout", (3, 4), p=0.3, mode="always"),
]


@pytest.mark.parametrize("case", [*differentiable(), *MORE], ids=str)
def test_finite_differences(case):
    derivative_is_right(case, is_train=True)


@pytest.mark.parametrize("case", [
    more("BatchNorm", (2, 3, 4), *[(3,)] * 4, low=0.5, fix_gamma=False), more("Dropout", (3, 4)),
    more("LeakyReLU", (2, 3, 2), act_type="rrelu"), MORE[-1]], ids=str)
def test_finite_differences_in_inference_mode(case):
    derivative_is_right(case, is_train=False)


def derivative_is_right(case: Case, is_train: bool) -> None:
    """In float64, d(sum of outputs times heads) / d(input) by central differences."""
    op, params = case.op, case.params
    names = [*op.input_names(params), *op.aux_names(params)]
    values = dict(zip(names, case.arrays(), strict=True))
    node = Node(op, "op", None, params, [Entry(variable(name)) for name in names])
    outputs = [Entry(node, i) for i in range(op.num_visible(params))]
    graph = infer(Graph(outputs), {k: v.shape for k, v in values.items()}, dict.fromkeys(values, "float64"))
    if any(graph.dtype(e) != "float64" for e in graph.outputs):
        pytest.skip("the output is not float64")
    made = gradient(graph, options(is_train=is_train, grad_req=dict.fromkeys(op.input_names(params), "write")))
    check_graph(made)
    rng = np.random.default_rng(1)
    heads = {f"{HEAD}{i}": rng.uniform(-1, 1, graph.shape(e)) for i, e in enumerate(graph.outputs)}
    found = interpreter.run(made, {**values, **heads}, {}, is_train)

    def total() -> float:
        run = interpreter.run(graph, values, {}, is_train)
        return sum(float((run[e] * heads[f"{HEAD}{i}"]).sum()) for i, e in enumerate(graph.outputs))

    for entry, sink in zip(made.outputs, made.sinks, strict=True):
        counts = sink.name == "sample" and any(word in op.name for word in ("poisson", "binomial"))
        if sink.kind == "grad" and sink.name not in ("rois", "s") and not counts:  # as in MXNet, these have none
            expected = differences(total, values[sink.name])
            np.testing.assert_allclose(found[entry], expected, 1e-5, 1e-7, err_msg=f"gradient of {sink.name}")


def differences(total: Callable[[], float], value: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """d total() / d value, which is changed in place and restored."""
    found = np.zeros_like(value)
    for at in np.ndindex(value.shape):
        kept = value[at]
        value[at] = kept + step
        above = total()
        value[at] = kept - step
        found[at] = (above - total()) / (2 * step)
        value[at] = kept
    return found
