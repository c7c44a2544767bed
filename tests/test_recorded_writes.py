"""Copies of arrays while recording, and NumPy arrays written into arrays of the graph."""
from __future__ import annotations

import numpy as np
import pytest

import mxc as mx
from mxc import autograd, nd
from mxc.base import MXNetError


def gradient_of(function) -> list[float]:
    """The gradient at [1, 2] of what a function makes of x and of y = 2 x."""
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        z = function(x, x * 2)
    z.backward()
    return x.grad.asnumpy().tolist()


def test_a_copy_made_by_array_has_the_gradient_of_what_it_copies():
    assert gradient_of(lambda x, y: nd.array(x) * 3) == [3, 3]
    assert gradient_of(lambda x, y: nd.array(x, dtype="float64") * 3) == [3, 3]
    assert gradient_of(lambda x, y: nd.array(y) + x) == [3, 3]
    assert gradient_of(lambda x, y: nd.array(y, ctx=mx.cpu(1))) == [2, 2]
    assert gradient_of(lambda x, y: nd.array(y.asnumpy()) + x) == [1, 1]


def test_a_copy_made_by_array_shares_nothing():
    x = nd.array([1, 2], dtype="int8")
    copied = nd.array(x)
    copied[:] = 5
    assert copied.dtype == np.int8 and x.asnumpy().tolist() == [1, 2]
    assert nd.array(x, ctx=mx.cpu(1)).context == mx.cpu(1)


@pytest.mark.parametrize("key", [slice(None), ..., slice(0, 2), (), None, (slice(None),), slice(None, None, 1)])
def test_numpy_arrays_may_replace_all_elements(key):
    def replaced(x, y):
        y[key] = np.array([5, 6])
        assert y.asnumpy().tolist() == [5, 6]
        return y

    assert gradient_of(replaced) == [2, 2]


def test_the_gradient_is_at_the_elements_that_replaced_others():
    def before(x, y):
        x[:] = np.array([7, 7])
        return x * x

    def behind(x, y):
        z = x * x
        x[:] = np.array([7, 7])
        return z

    assert gradient_of(before) == gradient_of(behind) == [14, 14]


@pytest.mark.parametrize(("key", "value"), [
    (slice(None), [1, 2]), (slice(None), 3), (slice(None), np.float32(3)), (slice(None), nd.ones(2)),
    (0, np.ones(1)), (slice(None, None, -1), np.ones(2)), ([0, 1], np.ones(2)), (slice(1, 2), np.ones(1))])
def test_other_writes_into_the_graph_are_refused(key, value):
    def write(x, y):
        y[key] = value
        return y

    with pytest.raises(MXNetError, match="already in a computational graph"):
        gradient_of(write)


def test_concatenate_is_recorded():
    assert gradient_of(lambda x, y: nd.concatenate([x, y])) == [3, 3]
