"""bind, simple_bind and eval: the forms that arrays are given in, and what is refused."""
import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.passes import infer_shape

CPU = mx.cpu()


def net():
    """x + y, and a layer with auxiliary states over it."""
    return mx.sym.Variable("x") + mx.sym.Variable("y")


def arrays():
    return [mx.nd.array([[1.0, 2.0]]), mx.nd.array([[3.0, 4.0]])]


def named():
    return dict(zip(("x", "y"), arrays(), strict=True))


@pytest.mark.parametrize("args", [arrays, lambda: tuple(arrays()), named, lambda: {**named(), "other": arrays()[0]}])
def test_bind_takes_lists_and_dictionaries(args):
    executor = net().bind(CPU, args())
    assert list(executor.arg_dict) == ["x", "y"]
    np.testing.assert_array_equal(executor.forward()[0].asnumpy(), [[4, 6]])


@pytest.mark.parametrize("grad_req, grads, modes", [
    ("write", arrays, ["write", "write"]), ("add", lambda: {"x": arrays()[0]}, ["add", "null"]),
    (["write", "null"], arrays, ["write", "null"]), ({"y": "add"}, arrays, ["null", "add"]),
    ("write", lambda: [None, arrays()[0]], ["null", "write"]), ("write", lambda: None, ["null", "null"]),
])
def test_gradient_requests(grad_req, grads, modes):
    executor = net().bind(CPU, arrays(), args_grad=grads(), grad_req=grad_req)
    before = [None if g is None else g.asnumpy() for g in executor.grad_arrays]
    executor.forward(is_train=True)
    if any(mode != "null" for mode in modes):
        executor.backward(mx.nd.array([[10.0, 20.0]]))
    for grad, old, mode in zip(executor.grad_arrays, before, modes, strict=True):
        if mode != "null":
            np.testing.assert_array_equal(grad.asnumpy(), np.array([[10, 20]]) + (old if mode == "add" else 0))


@pytest.mark.parametrize("kwargs, error, text", [
    ({"args": {}}, ValueError, "key `x` is missing in `args`.*x, y"), ({"args": None}, TypeError, "list of NDArrays"),
    ({"args": arrays()[:1]}, ValueError, "Length of args does not match.*1 for 2"),
    ({"args": [1, 2]}, TypeError, "list of NDArrays"), ({"args": [arrays()[0], None]}, TypeError, "list of NDArrays"),
    ({"ctx": "cpu"}, TypeError, "Context"), ({"grad_req": "foo"}, ValueError, "'foo'"),
    ({"grad_req": ["write"]}, ValueError, "expected 2"),
    ({"args_grad": arrays()[:1]}, ValueError, "Length of args_grad"),
    ({"aux_states": arrays()}, ValueError, "Length of aux_states"),
    ({"args": [arrays()[0], mx.nd.array([1.0])]}, MXNetError, "x.*y|y.*x|shape"),
])
def test_bind_refuses(kwargs, error, text):
    with pytest.raises(error, match=text):
        net().bind(**{"ctx": CPU, "args": arrays(), **kwargs})


def test_auxiliary_states_are_needed():
    symbol = mx.sym.BatchNorm(mx.sym.Variable("x"), name="b")
    one = mx.nd.ones((2,))
    args = {"x": mx.nd.ones((3, 2)), "b_gamma": one, "b_beta": one}
    with pytest.raises(ValueError, match="key `b_moving_var` is missing in `aux_states`"):
        symbol.bind(CPU, args, aux_states={"b_moving_mean": one})
    with pytest.raises(ValueError, match="Length of aux_states"):
        symbol.bind(CPU, args)
    executor = symbol.bind(CPU, args, aux_states=[mx.nd.zeros((2,)), one])
    assert list(executor.aux_dict) == ["b_moving_mean", "b_moving_var"]


def test_two_arguments_of_one_name_are_refused():
    twice = mx.sym.Variable("q") + mx.sym.Variable("q")
    for call in (lambda: twice.bind(CPU, {"q": arrays()[0]}), lambda: twice.simple_bind(CPU, q=(2, 3))):
        with pytest.raises(MXNetError, match="both named 'q'"):
            call()


def test_simple_bind():
    executor = net().simple_bind(CPU, grad_req={"x": "write"}, type_dict={"x": "float64"}, x=(2, 3), other=(4,))
    assert [(a.shape, a.dtype) for a in executor.arg_arrays] == [((2, 3), np.float64)] * 2
    assert not executor.arg_dict["x"].asnumpy().any()
    assert executor.grad_dict["y"] is None and executor.grad_dict["x"].shape == (2, 3)
    assert net().simple_bind(CPU, grad_req=None, x=[2, 3]).grad_arrays == [None, None]
    assert net().simple_bind(CPU, x=(2, 3)).arg_arrays[1].dtype == np.float32


@pytest.mark.parametrize("kwargs, text", [
    ({}, "x"), ({"x": (0, 5)}, "x.*0|dimension"), ({"x": (2, 5), "y": (3, 5)}, "_plus"),
    ({"x": (2, 5), "grad_req": "foo"}, "foo"), ({"x": (2, 5), "grad_req": ["write"]}, "expected 2"),
    ({"x": (2, 5), "grad_req": []}, "empty list"), ({"x": (2, 5), "grad_req": {}}, "empty dict"), ({"x": 5}, "tuple"),
    ({"x": (2, 5), "stype_dict": {"x": "coo"}}, "coo"),
])
def test_simple_bind_refuses(kwargs, text):
    with pytest.raises(MXNetError, match=text):
        net().simple_bind(CPU, **kwargs)


def test_simple_bind_shares_arrays():
    pool = {}
    first = net().simple_bind(CPU, shared_buffer=pool, x=(2, 3))
    second = net().simple_bind(CPU, shared_buffer=pool, x=(2, 3))
    assert set(pool) == {"x", "y", "grad of x", "grad of y"}
    assert second.arg_dict["x"] is first.arg_dict["x"]
    third = net().simple_bind(CPU, shared_exec=first, shared_arg_names=["y"], x=(2, 3))
    assert third.arg_dict["y"] is first.arg_dict["y"] and third.arg_dict["x"] is not first.arg_dict["x"]


def test_eval():
    np.testing.assert_array_equal(net().eval(**named())[0].asnumpy(), [[4, 6]])
    np.testing.assert_array_equal(net().eval(CPU, **named(), other=arrays()[0])[0].asnumpy(), [[4, 6]])
    with pytest.raises(ValueError, match="key `y` is missing"):
        net().eval(x=arrays()[0])


def inferred(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets the name of the graph's last node at each inference of shapes."""
    seen: list[str] = []
    infer = infer_shape._infer

    def counted(graph, *rest):
        seen.append(graph.nodes[-1].name)
        return infer(graph, *rest)

    monkeypatch.setattr(infer_shape, "_infer", counted)
    return seen


@pytest.mark.parametrize("is_train", [False, True])
def test_shapes_are_inferred_once(is_train, monkeypatch):
    """By whoever binds: compiling for inference and for training takes the graph with its facts."""
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc"), name="once")
    seen = inferred(monkeypatch)
    simple = net.simple_bind(mx.cpu(), data=(5, 7))
    simple.forward(is_train=is_train)
    assert seen.count("once") == 1
    given = net.bind(mx.cpu(), simple.arg_dict, args_grad=simple.grad_dict)
    given.forward(is_train=is_train)
    assert seen.count("once") == 2
    again = simple.reshape(partial_shaping=True, data=(4, 7), once_label=(4,))
    again.forward(is_train=is_train)
    again.compiled(not is_train)
    assert seen.count("once") == 3 and again.outputs[0].shape == (4, 3)


def test_a_reshape_infers_again_what_does_not_follow(monkeypatch):
    """`b` follows from nothing: it keeps its shape, of which the output's follows."""
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    executor = mx.sym.dot(a, b, name="product").simple_bind(mx.cpu(), a=(6, 4), b=(4, 5))
    seen = inferred(monkeypatch)
    smaller = executor.reshape(a=(2, 4))
    assert seen == ["product", "product"]
    smaller.arg_dict["a"][:] = 1
    smaller.arg_dict["b"][:] = 2
    np.testing.assert_array_equal(smaller.forward()[0].asnumpy(), np.full((2, 5), 8))
