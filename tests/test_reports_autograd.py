"""Reports of users about gradients and graphs whose outputs are not what operators made."""
from __future__ import annotations

import numpy as np

import mxc as mx
from mxc import autograd, nd


def test_a02_outputs_that_are_inputs_constants_or_each_other():
    x = mx.sym.Variable("x")
    values = np.array([1, 2, 3], "float32")
    scaled = x * 3 + 1
    graph = mx.sym.Group([x, scaled, mx.sym.ones((3,)) * 5, x, scaled])
    array, grad = nd.array(values), nd.zeros((3,))
    executor = graph.bind(mx.cpu(), {"x": array}, {"x": grad})
    heads = [nd.array([1, 10, 100]) * k for k in (1, 2, 3, 4, 5)]
    for factor in (1, 2):
        array[:] = nd.array(values * factor)
        outputs = [o.asnumpy() for o in executor.forward(is_train=True)]
        wanted = [values * factor, values * factor * 3 + 1, np.full(3, 5), values * factor, values * factor * 3 + 1]
        np.testing.assert_array_equal(outputs, wanted)
        executor.backward(heads)
        np.testing.assert_array_equal(grad.asnumpy(), np.array([1, 10, 100]) * (1 + 4 + 3 * (2 + 5)))


def test_a02_the_same_in_an_imperative_program():
    x = nd.array([1, 2, 3])
    x.attach_grad()
    heads = [nd.array([1, 10, 100]) * k for k in (1, 2, 4, 5)]
    for factor in (1, 2):
        x[:] = nd.array([1, 2, 3]) * factor
        with autograd.record():
            scaled = x * 3 + 1
        autograd.backward([x, scaled, x, scaled], heads)
        np.testing.assert_array_equal(scaled.asnumpy(), np.array([1, 2, 3]) * factor * 3 + 1)
        np.testing.assert_array_equal(x.grad.asnumpy(), np.array([1, 10, 100]) * (1 + 4 + 3 * (2 + 5)))
