"""NumPy's shape semantics: arrays have the shapes that MXNet 1.9.1 gives them (golden/np_shape.json)."""
import json
from pathlib import Path

import numpy as np
import pytest
from golden import make_np_shape

import mxc as mx
from mxc import autograd, nd

GOLDEN = Path(__file__).parent / "golden"

REAL = json.loads((GOLDEN / "np_shape.json").read_text())


def test_every_case_is_recorded():
    assert list(REAL) == make_np_shape.CASES


@pytest.mark.parametrize("case", REAL)
def test_shapes_are_mxnets(case):
    found, real = make_np_shape.answer(mx, case), REAL[case]
    if case == "nd.exp(v[0] - 1)":
        assert found[:2] == real[:2] and found[2] == pytest.approx(real[2])
    else:
        assert found == real


def test_an_element_shares_memory_and_can_be_assigned():
    with mx.np_shape():
        x = nd.zeros((2, 2))
        x[0, 1][()] = 3
        x[1][0][:] = 4
        x[1, 1] = nd.array([5])
        y = nd.zeros((2,))
        y[0], y[1] = nd.ones(()), nd.array([2])
    assert x.asnumpy().tolist() == [[0, 3], [4, 5]] and y.asnumpy().tolist() == [1, 2]
    assert x[0, 0].shape == (1,)  # out of the scope


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_through_elements_without_axes(create_graph):
    x = nd.array([[1, 2], [3, 4]])
    x.attach_grad()
    with mx.np_shape(), autograd.record():
        z = x[0, 1] * x[1][0] * x[0:1, 0:1].reshape(())
        assert z.shape == ()
        if create_graph:
            z = autograd.grad(z, [x], create_graph=True)[0][1, 0]
    with mx.np_shape():
        z.backward()
    wanted = [[2, 1], [0, 0]] if create_graph else [[6, 3], [2, 0]]
    assert x.grad.asnumpy().tolist() == wanted


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("key", [True, False, (True, 1), (1, False), (True,), (slice(None), True)], ids=str)
def test_selection_by_truth_while_recording(key, active):
    x = nd.array(np.arange(6).reshape(2, 3))
    with mx.np_shape(active):
        places = x[key].asnumpy().astype(int)
        x.attach_grad()
        with autograd.record():
            y = (x[key] * 2).sum()
        y.backward()
    expected = np.zeros(6, "float32")
    np.add.at(expected, places.ravel(), 2)
    np.testing.assert_array_equal(x.grad.asnumpy().ravel(), expected)


def test_what_has_no_elements_is_refused():
    """Out of the scope, also by an operator that had such arrays in it; by parameters."""
    with mx.np_shape():
        empty = nd.zeros((0, 3))
        assert (empty + 1).shape == nd.exp(empty).shape == (0, 3)
        for refused in (lambda: nd.max(empty),
                        lambda: nd.take(empty, nd.ones((2,))),
                        lambda: nd.Pooling(nd.zeros((1, 1, 0, 4)), kernel=(3, 3), pool_type="max")):
            with pytest.raises(mx.MXNetError):
                refused().wait_to_read()
    for refused in (lambda: empty + 1, lambda: nd.sum(empty)):
        with pytest.raises(mx.MXNetError, match=r"np_shape\(\)"):
            refused()


def test_arrays_without_elements_are_joined_in_and_out_of_the_scope():
    """`concatenate` alone takes them everywhere, as MXNet's, which copies part by part."""
    rows, none = nd.array([[1, 2, 3], [4, 5, 6]]), nd.array([1])[0:0]
    assert nd.concatenate([rows[0:0], rows]).asnumpy().tolist() == rows.asnumpy().tolist()
    assert nd.concatenate([none, nd.array([1, 2]), none]).asnumpy().tolist() == [1, 2]
    assert nd.concatenate([none, none]).shape == nd.concatenate([none]).shape == (0,)
    for refused in (lambda: nd.concatenate([none, rows]), lambda: nd.concat(none, none, dim=0), lambda: nd.full((), 2),
                    lambda: nd.random.uniform(shape=(0, 3)), lambda: nd.random.uniform(shape=())):
        with pytest.raises(mx.MXNetError):
            refused()


def test_counts_of_zero_out_of_the_scope():
    """Operators give arrays without elements where they count, as MXNet's; graphs do in the scope alone."""
    assert nd.one_hot(nd.array([1, 2]), 0).shape == (2, 0) and nd.eye(0, 3).shape == (0, 3)
    x = mx.sym.Variable("x")
    with pytest.raises(mx.MXNetError, match=r"no elements.*np_shape\(\)"):
        mx.sym.one_hot(x, depth=0).infer_shape(x=(3,))
    with mx.np_shape():
        assert mx.sym.one_hot(x, depth=0).infer_shape(x=(3,)) == ([(3,)], [(3, 0)], [])
        assert mx.sym.one_hot(x, depth=0).simple_bind(mx.cpu(), x=(3,)).forward()[0].shape == (3, 0)
        assert nd.random.shuffle(nd.ones(())).shape == () and nd.random.shuffle(nd.zeros((0, 2))).shape == (0, 2)


def test_a_large_array_beside_one_without_elements():
    large = nd.ones((1_100_000, 3))
    with mx.np_shape():
        both = nd.concat(nd.zeros((0, 3)), large, nd.zeros((0, 3)), dim=0)
        bound = mx.sym.concat(mx.sym.Variable("a"), mx.sym.Variable("b"), dim=0).bind(
            mx.cpu(), {"a": nd.zeros((0, 3)), "b": large})
    assert both.shape == bound.outputs[0].shape == large.shape and both.asnumpy().all()
