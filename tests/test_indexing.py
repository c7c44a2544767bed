"""Indexing of arrays does what MXNet 1.9.1 does (golden/indexing.json): values, shapes, shared memory, refusals."""
import builtins
import json
from pathlib import Path

import numpy as np
import pytest
from golden import make_indexing

import mxc as mx
from mxc import autograd
from mxc.compiler.error import MXNetError

GOLDEN = Path(__file__).parent / "golden"

REAL = json.loads((GOLDEN / "indexing.json").read_text())
# MXNet's classes that say nothing of the key are MXNetError here.
CLASSES = {**vars(builtins), **dict.fromkeys(("AssertionError", "AttributeError", "MXNetError"), MXNetError)}
OTHERS = {  # refused here for a plainer reason
    "z[[0]]": IndexError, "a[0:0][[0]]": IndexError, "a[nd.array([1],dtype='bool')] = 1": ValueError,
    **dict.fromkeys((f"nd.indexing_key_expand_implicit_axes((nd.array(A[0]>3,dtype='bool'){t},),(2,3,4))"
                     for t in ("", ".T")), ValueError)}


def test_every_case_is_recorded():
    assert list(REAL) == make_indexing.CASES and len(REAL) > 700


@pytest.mark.parametrize("case", [c for c in REAL if "error" not in REAL[c]])
def test_selects_what_mxnet_selects(case):
    assert make_indexing.answer(mx, case) == REAL[case]


@pytest.mark.parametrize("case", [c for c in REAL if "error" in REAL[c]])
def test_refuses_what_mxnet_refuses(case):
    names = make_indexing.arrays(mx)
    with pytest.raises(OTHERS.get(case) or CLASSES[REAL[case]["error"][0]]):
        (exec if "] = " in case else eval)(case, names)


KEYS = (1, (0, 1), (0, 1, 2), slice(0, 1), (slice(None), 1), (..., slice(None, None, -2)), None, (0, None, 1), [0, 0],
        (slice(None), [0, 2, 0]), (0, slice(None), [0, 3, 3]), ([[0, 1], [1, 0]], slice(1, 3), None, [[1], [-1]]))


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_gradients_arrive_where_elements_were_read(key):
    x = mx.nd.array(np.arange(24).reshape(2, 3, 4))
    places = x[key].asnumpy().astype(int)
    weights = np.arange(1, places.size + 1, dtype="float32").reshape(places.shape)
    x.attach_grad()
    with autograd.record():
        total = (x[key] * mx.nd.array(weights)).sum()
    total.backward()
    expected = np.zeros(24, "float32")
    np.add.at(expected, places, weights)
    np.testing.assert_array_equal(x.grad.asnumpy().ravel(), expected)


def test_assignment_while_recording():
    x, y = mx.nd.ones((2, 3)), mx.nd.zeros((2, 3))
    x.attach_grad()
    with autograd.record():
        y[:] = x * 2
        for refused in (lambda: x.__setitem__(0, 1), lambda: mx.nd.zeros((2, 3)).__setitem__(0, x[1])):
            with pytest.raises(MXNetError):
                refused()
        mx.nd.zeros((2, 3))[0] = 1
        total = y.sum()
    total.backward()
    assert (x.grad.asnumpy() == 2).all()


def test_o13_index_arrays_out_of_range_are_refused():
    x = mx.nd.arange(3)
    for index in ([10], [-4], np.array([3]), mx.nd.array([3]), mx.nd.array([float("nan")]), [2**40]):
        for use in (lambda i: x[i], lambda i: x.__setitem__(i, 1)):
            with pytest.raises(IndexError, match="out of bounds for axis 0 with size 3"):
                use(index)
    assert x.asnumpy().tolist() == [0, 1, 2]


def test_assignments_that_differ_from_mxnet():
    x = mx.nd.arange(4)
    x[[-1, 0]] = [8, 9]
    assert x.asnumpy().tolist() == [9, 1, 2, 8]
    x[1:] = x[:-1]
    assert x.asnumpy().tolist() == [9, 9, 1, 2]
    x[:-1] = x[1:]
    assert x.asnumpy().tolist() == [9, 1, 2, 2]
    assert mx.nd.array([[1, 2], [3, 4]])[:, -9:1].asnumpy().tolist() == [[1], [3]]
    flags = mx.nd.array([1, 0, 1], dtype="bool")
    flags[1:] = mx.nd.array([3, 0], dtype="int32")
    assert flags.asnumpy().tolist() == [True, True, False]


def test_an_array_without_dimensions():
    x = mx.nd.array(5)
    assert x[()].shape == x[:].shape == () and x[None].shape == (1,)
    x[()] = 3
    assert x.asscalar() == 3
    with pytest.raises(IndexError):
        x[0]


def test_a_value_is_taken_when_it_is_assigned():
    x, y, values = mx.nd.zeros((2, 3)), mx.nd.ones((3,)), np.full(3, 2, "float32")
    x[0], x[1] = values, y
    values[:], y[:] = 7, 7
    x[:, [0, 1]][:] = 5
    assert x.asnumpy().tolist() == [[2, 2, 2], [1, 1, 1]]


def test_index_arrays_without_axes_are_refused():
    x = mx.nd.ones((2, 3))
    for key in (np.array(1), (np.array(1), 0), ([0, 1], np.array(1))):
        with pytest.raises(mx.base.MXNetError, match=r"index array of shape \(\) for axis \d: it must have axes"):
            x[key]
