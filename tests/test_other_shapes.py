"""A kernel serves every shape: other batches and images compile nothing anew, unless maps become so small or large that
another kernel is faster."""
from __future__ import annotations

from collections.abc import Callable

import networks
import numpy as np
import pytest
from programs import lowered

import mxc as mx
from mxc.compiler.kernel.ir import CallKernel
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

    assert keys((6, 3, 14, 14)) == keys((7, 3, 16, 16))


@pytest.mark.parametrize("kind", networks.LAYERS)
def test_another_batch_has_the_same_kernels(kind: str):
    net, shape = networks.layer(kind)
    axis = int(net.list_arguments()[1] == "parameters")

    def keys(batch: int) -> set[str]:
        data = (*shape[:axis], batch, *shape[axis + 1:])
        return set(lowered(net.graph, {"data": data}, {}, {}, False, cpu_target()).kernels(cpu_target()))

    assert keys(shape[axis]) == keys(shape[axis] + 4)


def test_one_image_and_many_have_the_same_convolutions():
    """A batch of 1 is an axis like every other behind a convolution. Winograd's of few tiles is another one."""
    net = mx.sym.Variable("data")
    for i, (kernel, filters) in enumerate([((3, 3), 16), ((1, 1), 24), ((5, 5), 16), ((3, 3), 64), ((3, 3), 64)]):
        first = mx.sym.Convolution(net, kernel=kernel, num_filter=filters, pad=(kernel[0] // 2,) * 2, name=f"c{i}")
        second = mx.sym.Convolution(mx.sym.relu(first), kernel=(1, 1), num_filter=filters, name=f"d{i}")
        net = mx.sym.relu(first + mx.sym.BatchNorm(second, name=f"b{i}"))

    def keys(batch: int) -> set[str]:
        kernels = lowered(net.graph, {"data": (batch, 16, 96, 96)}, {}, {}, False, cpu_target()).kernels(cpu_target())
        return {key for key, kernel in kernels.items() if isinstance(kernel, CallKernel)}

    assert keys(1) and keys(1) == keys(2) == keys(5)


def test_gradient_of_a_mean_over_more_elements_than_float16_counts():
    executor = mx.sym.mean(mx.sym.Variable("x")).simple_bind(mx.cpu(), type_dict={"x": "float16"}, x=(100_000,))
    executor.forward(is_train=True)
    executor.backward(mx.nd.full((1,), 1024, dtype="float16"))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy().astype("float64"), 1024 / 1e5, rtol=1e-3)
