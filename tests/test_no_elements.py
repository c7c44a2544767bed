"""Arrays without elements, and without axes, in executors and recorded programs: as MXNet 1.9.1 (no_elements.json)."""
import json
from pathlib import Path

import numpy as np
import pytest
from golden import make_no_elements

import mxc as mx
from mxc import nd

REAL = json.loads((Path(__file__).parent / "golden" / "no_elements.json").read_text())


def test_every_case_is_recorded():
    assert list(REAL) == make_no_elements.CASES


@pytest.mark.filterwarnings("ignore:Cannot decide shape")
@pytest.mark.parametrize("case", REAL)
def test_answers_are_mxnets(case):
    found = make_no_elements.answer(mx, case)
    assert json.dumps(found) == json.dumps(REAL[case])  # as text, in which NaN is NaN


WINDOW = {"kernel": (3, 3), "num_filter": 4}
BATCH = [("FullyConnected", {"num_hidden": 4}, (0, 3)), ("Convolution", WINDOW, (0, 3, 5, 5)),
         ("Deconvolution", WINDOW, (0, 3, 5, 5)), ("LayerNorm", {}, (0, 3)),
         ("Embedding", {"input_dim": 4, "output_dim": 3}, (0,)), ("LeakyReLU", {"act_type": "prelu"}, (0, 3))]


@pytest.mark.parametrize(("op", "params", "shape"), BATCH, ids=[op for op, *_ in BATCH])
def test_a_batch_of_none_gives_parameters_no_gradient(op, params, shape):
    """MXNet crashes or refuses these."""
    with mx.np_shape():
        net = mx.sym.SoftmaxOutput(mx.sym.Flatten(getattr(mx.sym, op)(mx.sym.Variable("x"), name="f", **params)))
        for mode, left in ("write", 0), ("add", 5):
            bound = net.simple_bind(mx.cpu(), x=shape, grad_req=mode)
            for grad in bound.grad_arrays:
                grad[:] = 5
            (out,) = bound.forward(is_train=True)
            bound.backward()
            assert out.shape[0] == 0
            for name, grad in bound.grad_dict.items():
                assert grad.shape == bound.arg_dict[name].shape and (grad.asnumpy() == left).all()


def test_sums_over_nothing_are_zero_and_their_other_terms_have_gradients():
    with mx.np_shape():
        x, w, bias = nd.zeros((2, 0)), nd.zeros((3, 0)), nd.array([1, 2, 3])
        for array in (x, w, bias):
            array.attach_grad()
        with mx.autograd.record():
            y = nd.FullyConnected(x, w, bias, num_hidden=3) + nd.dot(x, w.T)
        y.backward()
        bound = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="f").bind(
            mx.cpu(), {"x": x, "f_weight": w, "f_bias": bias}, {"f_bias": nd.zeros((3,))})
        out = bound.forward(is_train=True)[0]
        bound.backward(nd.ones((2, 3)))
    assert y.asnumpy().tolist() == out.asnumpy().tolist() == [[1, 2, 3]] * 2
    assert bias.grad.asnumpy().tolist() == bound.grad_dict["f_bias"].asnumpy().tolist() == [2, 2, 2]
    assert x.grad.shape == (2, 0) and w.grad.shape == (3, 0)


def test_an_executor_of_arrays_without_elements_does_what_others_do():
    """Head gradients that are missing or do not fit, forward that has not run, a monitor, another mode, reshape."""
    seen = []
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    net = mx.sym.concat(a, mx.sym.Dropout(b, name="drop", p=0.5), dim=0, name="both")
    with mx.np_shape():
        bound = net.simple_bind(mx.cpu(), a=(0, 3), b=(64, 3))
        with pytest.raises(mx.MXNetError, match="forward"):
            bound.backward(nd.ones((64, 3)))
        bound.forward(is_train=True, b=nd.ones((64, 3)))
        for heads in (None, nd.ones((3, 3))):
            with pytest.raises(mx.MXNetError, match="head gradient"):
                bound.backward(heads)
        bound.backward(nd.ones((64, 3)))
        np.testing.assert_array_equal(bound.grad_dict["b"].asnumpy(), bound.outputs[0].asnumpy())  # the same mask
        bound.backward(nd.ones((64, 3)), is_train=False)
        assert bound.grad_dict["b"].asnumpy().all()
        bound.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
        bound.forward()
        assert ("both_output", (64, 3)) in seen
        with pytest.raises(mx.MXNetError, match="nothing is compiled"):
            bound.compiled()
        assert (bound.reshape(a=(1, 3), b=(2, 3), allow_up_sizing=True).forward()[0].shape) == (3, 3)
        with pytest.raises(mx.MXNetError, match=r"max: of arrays without elements, of the shapes \(0, 3\)"):
            mx.sym.max(a, axis=0).simple_bind(mx.cpu(), a=(0, 3)).forward()[0].wait_to_read()
        with pytest.raises(mx.MXNetError, match=r"expected the same shape, got \(0, 3\) and \(2, 3\)"):
            (a + b).simple_bind(mx.cpu(), a=(0, 3), b=(2, 3))


@pytest.mark.parametrize("shape", [(0, 3), ()])
def test_outside_of_the_scope_they_are_refused(shape):
    with mx.np_shape():
        array = nd.zeros(shape)
    with pytest.raises(mx.MXNetError, match=r"argument 'a' has the shape .*np_shape\(\)"):
        (mx.sym.Variable("a") + 1).bind(mx.cpu(), {"a": array})
