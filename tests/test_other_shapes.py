"""A kernel serves every shape: training on other batches and images compiles nothing anew."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from programs import lowered

import mxc as mx
from mxc.compiler.targets.cpu.target import cpu_target


def normalised() -> mx.sym.Symbol:
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=8, name="c")
    return mx.sym.LinearRegressionOutput(mx.sym.sum(mx.sym.BatchNorm(net, fix_gamma=False, name="b"), axis=(1, 2, 3)),
                                         name="out")


def averaged() -> mx.sym.Symbol:
    net = mx.sym.FullyConnected(mx.sym.mean(mx.sym.tanh(mx.sym.Variable("data")), axis=(2, 3)), num_hidden=8, name="fc",
                                no_bias=True)
    return mx.sym.MakeLoss(mx.sym.mean(net, axis=(1,)))


@pytest.mark.parametrize("network", [normalised, averaged])
def test_training_on_other_shapes_has_the_same_kernels(network: Callable[[], mx.sym.Symbol]):
    def keys(shape: tuple[int, ...]) -> set[str]:
        requests = {name: "write" for name in network().list_arguments() if not name.endswith("label")}
        return set(lowered(network().graph, {"data": shape}, {}, requests, True, cpu_target()).kernels(cpu_target()))

    assert keys((6, 3, 12, 12)) == keys((7, 3, 14, 14))


def test_gradient_of_a_mean_over_more_elements_than_float16_counts():
    executor = mx.sym.mean(mx.sym.Variable("x")).simple_bind(mx.cpu(), type_dict={"x": "float16"}, x=(100_000,))
    executor.forward(is_train=True)
    executor.backward(mx.nd.full((1,), 1024, dtype="float16"))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy().astype("float64"), 1024 / 1e5, rtol=1e-3)
