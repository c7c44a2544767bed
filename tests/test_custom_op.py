"""Operators written in Python: on arrays, in graphs, with states, as losses, saved and loaded, and what is refused."""
from __future__ import annotations

import numpy as np
import pytest

import mxc as mx
from mxc import autograd, nd
from mxc.base import MXNetError

CALLS: list[tuple] = []


class PairOp(mx.operator.CustomOp):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, is_train, req, in_data, out_data, aux):
        CALLS.append(("forward", bool(is_train), autograd.is_recording(), autograd.is_training()))
        self.assign(out_data[0], req[0], in_data[0] * in_data[1] * self.factor)
        self.assign(out_data[1], req[1], in_data[0] + in_data[1])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        CALLS.append(("backward", tuple(req), autograd.is_recording()))
        np.testing.assert_allclose(out_data[1].asnumpy(), (in_data[0] + in_data[1]).asnumpy())
        self.assign(in_grad[0], req[0], out_grad[0] * in_data[1] * self.factor + out_grad[1])
        self.assign(in_grad[1], req[1], out_grad[0] * in_data[0] * self.factor + out_grad[1])


@mx.operator.register("test_pair")
class PairProp(mx.operator.CustomOpProp):
    """(a * b * factor, a + b)."""

    def __init__(self, factor="1"):
        super().__init__(need_top_grad=True)
        assert isinstance(factor, str)
        self.factor = float(factor)

    def list_arguments(self):
        return ["a", "b"]

    def list_outputs(self):
        return ["product", "total"]

    def infer_shape(self, in_shape):
        return [in_shape[0], in_shape[0]], [in_shape[0], in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        CALLS.append(("create", shapes, dtypes))
        return PairOp(self.factor)


class CountingOp(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if is_train:
            aux[0][:] += 1
        self.assign(out_data[0], req[0], in_data[0] + aux[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        aux[0][:] += 10
        self.assign(in_grad[0], req[0], in_data[0] * 0 + 7)


@mx.operator.register("test_counting")
class CountingProp(mx.operator.CustomOpProp):
    """A loss with a state."""

    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_auxiliary_states(self):
        return ["calls"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1,)]

    def create_operator(self, ctx, shapes, dtypes):
        return CountingOp()


def test_on_arrays():
    a, b = nd.array([1, 2]), nd.array([3, 4])
    a.attach_grad()
    b.attach_grad("add")
    CALLS.clear()
    with autograd.record():
        product, total = nd.Custom(a, b, op_type="test_pair", factor=5)
    assert product.asnumpy().tolist() == [15, 40] and total.asnumpy().tolist() == [4, 6]
    product.backward()
    assert a.grad.asnumpy().tolist() == [15, 20] and b.grad.asnumpy().tolist() == [5, 10]
    assert CALLS == [("create", [[2], [2]], [0, 0]), ("forward", True, False, True),
                     ("backward", ("write", "write"), False)]


def test_inputs_by_name_and_out():
    a, b, out = nd.array([1, 2]), nd.array([3, 4]), [nd.zeros((2,)), nd.zeros((2,))]
    nd.Custom(b=b, a=a, op_type="test_pair", out=out)
    assert [o.asnumpy().tolist() for o in out] == [[3, 8], [4, 6]]


def test_between_other_operators_and_without_a_gradient_for_one_input():
    a, b = nd.array([1, 2]), nd.array([3, 4])
    a.attach_grad()
    with autograd.record():
        product, total = nd.Custom(a * 2, b, op_type="test_pair")
        loss = (product * total).sum()
    CALLS.clear()
    loss.backward()
    x = np.array([2, 4])
    assert a.grad.asnumpy().tolist() == (2 * (b.asnumpy() * (x + b.asnumpy()) + x * b.asnumpy())).tolist()
    assert CALLS == [("backward", ("write", "null"), False)]


@pytest.mark.parametrize("request_", ["write", "add"])
def test_in_a_graph(request_: str):
    x = mx.sym.Variable("x")
    custom = mx.sym.Custom(x * 2, mx.sym.Variable("y"), op_type="test_pair", name="c", factor=5)
    assert custom.list_outputs() == ["c_product", "c_total"]
    symbol = mx.sym.Group([custom[0] + custom[1], custom[1]])
    for graph in (symbol, mx.sym.load_json(symbol.tojson())):
        executor = graph.simple_bind(mx.cpu(), x=(2,), y=(2,), grad_req={"x": request_, "y": "null"})
        executor.arg_dict["x"][:], executor.arg_dict["y"][:] = [1, 2], [3, 4]
        if request_ == "add":
            executor.grad_dict["x"][:] = 100
        first, second = executor.forward(is_train=True)
        assert first.asnumpy().tolist() == [35, 88] and second.asnumpy().tolist() == [5, 8]
        executor.backward([nd.ones((2,)), nd.ones((2,))])
        base = 100 if request_ == "add" else 0
        assert executor.grad_dict["x"].asnumpy().tolist() == [base + 34, base + 44]


def test_variables_are_made_and_shapes_inferred():
    symbol = mx.sym.Custom(mx.sym.Variable("x"), op_type="test_pair", name="c")
    assert symbol.list_arguments() == ["x", "c_b"]
    assert symbol.infer_shape(x=(2, 3)) == ([(2, 3), (2, 3)], [(2, 3), (2, 3)], [])
    assert symbol.infer_type(x="float64")[1] == [np.float64, np.float64]


def test_a_loss_with_a_state():
    executor = mx.sym.Custom(mx.sym.Variable("x"), op_type="test_counting", name="c").simple_bind(mx.cpu(), x=(2,))
    assert list(executor.aux_dict) == ["c_calls"]
    assert executor.forward(is_train=False)[0].asnumpy().tolist() == [0, 0]
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [1, 1]
    executor.backward()
    assert executor.grad_dict["x"].asnumpy().tolist() == [7, 7]
    assert executor.aux_dict["c_calls"].asnumpy().tolist() == [11]
    x, calls = nd.ones((2,)), nd.zeros((1,))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, calls, op_type="test_counting")
    y.backward()
    assert y.asnumpy().tolist() == [2, 2] and x.grad.asnumpy().tolist() == [7, 7]
    assert calls.asnumpy().tolist() == [11]


def test_defaults_of_a_property_class():
    prop = mx.operator.CustomOpProp()
    assert (prop.list_arguments(), prop.list_outputs(), prop.list_auxiliary_states()) == (["data"], ["output"], [])
    assert prop.infer_shape([(2, 3)]) == ([(2, 3)], ((2, 3),), ())
    assert prop.infer_type([np.float32]) == ([np.float32], [np.float32], [])
    assert prop.declare_backward_dependency([1], [2], [3]) == [1, 2, 3]
    assert mx.operator.CustomOpProp(need_top_grad=False).declare_backward_dependency([1], [2], [3]) == [2, 3]


def test_assign():
    op, array = mx.operator.CustomOp(), nd.ones((2,))
    for request_, value in (("null", 1), ("write", 3), ("inplace", 3), ("add", 6)):
        op.assign(array, request_, nd.ones((2,)) * 3)
        assert array.asnumpy().tolist() == [value, value]


def test_refusals(caplog):
    x = nd.ones((2,))
    with pytest.raises(MXNetError, match=r"Cannot find custom operator test_pear.*test_pair"):
        nd.Custom(x, op_type="test_pear")
    with pytest.raises(MXNetError, match="expects 2 inputs"):
        nd.Custom(x, op_type="test_pair")
    with pytest.raises(MXNetError, match="op_type"):
        mx.sym.Custom(mx.sym.Variable("x"))
    with pytest.raises(TypeError, match="must be NDArrays"):
        nd.Custom(3, x, op_type="test_pair")
    with pytest.raises(TypeError, match="no input c"):
        nd.Custom(x, c=x, op_type="test_pair")
    mx.operator.register("test_again")(CountingProp)
    mx.operator.register("test_again")(CountingProp)
    assert "overriding existing custom operator test_again" in caplog.text


def test_a_wrong_number_of_shapes_is_refused():
    @mx.operator.register("test_wrong_shapes")
    class Wrong(mx.operator.CustomOpProp):
        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0]] * 2, []

    with pytest.raises(MXNetError, match="gives 2 entries for 1 outputs"):
        nd.Custom(nd.ones((2,)), op_type="test_wrong_shapes")


def test_operators_and_their_arguments_are_listed():
    assert "Activation" in mx.operator.get_all_registered_operators()
    arguments = mx.operator.get_operator_arguments("Activation")
    assert arguments.names == ["data", "act_type"] and arguments.narg == 2
    assert arguments.types[0] == "NDArray-or-Symbol"


@pytest.mark.parametrize("base", [mx.operator.NumpyOp, mx.operator.NDArrayOp])
def test_the_older_ways(base):
    class Softmax(base):
        def __init__(self):
            super().__init__(need_top_grad=False)

        def list_arguments(self):
            return ["data", "label"]

        def infer_shape(self, in_shape):
            return [in_shape[0], [in_shape[0][0]]], [in_shape[0]]

        def forward(self, in_data, out_data):
            out_data[0][:] = in_data[0] * 2

        def backward(self, out_grad, in_data, out_data, in_grad):
            in_grad[0][:] = out_data[0] - in_data[1].reshape((-1, 1))

    symbol = Softmax()(mx.sym.Variable("x"), name="s")
    assert symbol.list_arguments() == ["x", "s_label"] and symbol.list_outputs() == ["s_output"]
    executor = symbol.simple_bind(mx.cpu(), x=(2, 3))
    executor.arg_dict["x"][:], executor.arg_dict["s_label"][:] = 3, 1
    assert executor.forward(is_train=True)[0].asnumpy().tolist() == [[6] * 3] * 2
    executor.backward()
    assert executor.grad_dict["x"].asnumpy().tolist() == [[5] * 3] * 2
    with pytest.raises(NotImplementedError):
        mx.operator.PythonOp()()


@pytest.mark.parametrize(("what", "text"), [
    ({"infer_shape": lambda self, shapes: None}, "infer_shape of custom operator test_faulty must return 2 or 3 lists"),
    ({"infer_shape": lambda self, shapes: (shapes, [2], [])}, "infer_shape of custom operator test_faulty: TypeError"),
    ({"infer_shape": lambda self, shapes: (shapes, ["ab"], [])}, "infer_shape of custom operator test_faulty"),
    ({"infer_shape": lambda self, shapes: (shapes, [(2.0,)], [])}, "infer_shape of custom operator test_faulty"),
    ({"infer_type": lambda self, dtypes: None}, "infer_type of custom operator test_faulty must return 2 or 3 lists"),
    ({"infer_type": lambda self, dtypes: {}[0]}, r"infer_type of custom operator test_faulty: KeyError\(0\)"),
    ({"create_operator": lambda *facts: None}, "create_operator of custom operator test_faulty gives None"),
    ({"list_outputs": lambda self: []}, "list_outputs of custom operator test_faulty gives no names")])
def test_a_faulty_description_is_named(what, text):
    mx.operator.register("test_faulty")(type("Faulty", (mx.operator.CustomOpProp,), what))
    with pytest.raises(MXNetError, match=text):
        nd.Custom(nd.ones((2,)), op_type="test_faulty")
    with pytest.raises(MXNetError, match=text):
        mx.sym.Custom(mx.sym.Variable("x"), op_type="test_faulty").simple_bind(mx.cpu(), x=(2,)).forward()[0].asnumpy()


def test_an_operator_that_writes_to_its_inputs_leaves_the_arrays_as_they_are():
    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            in_data[0][:] = 5
            self.assign(out_data[0], req[0], in_data[0])

    mx.operator.register("test_writes")(
        type("Writes", (mx.operator.CustomOpProp,), {"create_operator": lambda *facts: Op()}))
    x = nd.ones((2,))
    assert nd.Custom(x, op_type="test_writes").asnumpy().tolist() == [5, 5] and x.asnumpy().tolist() == [1, 1]


class Raises(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        if in_data[0].asscalar() < 0:
            raise KeyError("negative")
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        raise ZeroDivisionError("no gradient")


@mx.operator.register("test_raises")
class RaisesProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Raises()


def test_what_a_custom_operator_raises_comes_at_the_wait_and_other_work_goes_on():
    x, bad = nd.array([3.0]), nd.array([-1.0])
    failed = nd.Custom(bad, op_type="test_raises")
    after, fine = failed + 1, nd.Custom(x, op_type="test_raises")
    assert fine.asscalar() == 6
    for array in (failed, after, nd.Custom(failed, op_type="test_raises")):
        with pytest.raises(MXNetError, match=r"operation Custom: .*negative"):
            array.wait_to_read()
    with pytest.raises(MXNetError) as raised:
        failed.asnumpy()
    assert isinstance(raised.value.__cause__, KeyError)
    mx.nd.waitall()
    failed[:] = 5
    assert (failed + 1).asscalar() == 6
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_raises")
    y.backward()
    with pytest.raises(MXNetError, match="operation Custom: no gradient"):
        mx.nd.waitall()
    with pytest.raises(MXNetError, match="no gradient"):
        x.grad.asnumpy()
    x.grad[:] = 1
    assert x.grad.asscalar() == 1 and x.asscalar() == 3
