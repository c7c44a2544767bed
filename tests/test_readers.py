"""Values with several readers: random networks of them compute what the references do, on both sides of what passes
and kernels decide by."""
from __future__ import annotations

import numpy as np
import pytest
from reader_checks import LIBRARY, THRESHOLDS, Report, constants, lowered, lowered_for, modules, report, wrong
from reader_networks import SIZES, Network, network

import mxc as mx
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.lowering import split_winograd

SAMPLE = 36  # networks, which take about 20 seconds where no kernel was made before
FOUND_WITHIN = 100  # networks: the 11th, with AVX2


def test_every_threshold_is_known():
    """What is new in a pass is to be lowered in the search, or the networks' sizes are to be on both sides of it."""
    known = {name: set(own) for name, own in THRESHOLDS.items()}
    known |= {f"targets.cpu.library.{name}": set(own.split()) for name, own in LIBRARY.items()}
    found = {name: own for name in modules() if (own := constants(name))}
    assert found == known


def test_sample():
    """One network of each kind of operators, at another of its sizes each time."""
    seen, wrong = Report(), []
    for i in range(SAMPLE):
        wrong.append(report(i * SIZES + i % SIZES, seen))
    assert not any(wrong), "\n".join(wrong)


ROLES = {
    "data and weight": "graph(x1: float32[8,8,3,3])\n c = Convolution(x1, x1, kernel=(3, 3), pad=(1, 1), num_filter=8, "
                       "no_bias=True)\n s = elemwise_add(c, x1)\n return s, c",
    "data and depthwise weight": "graph(x1: float32[1,16,3,3])\n w = transpose(x1, axes=(1, 0, 2, 3))\n"
                                 " c = Convolution(x1, w, kernel=(3, 3), pad=(1, 1), num_filter=16, num_group=16, "
                                 "no_bias=True)\n s = elemwise_mul(c, x1)\n return s",
    "data and bias": "graph(x1: float32[1,16,8,8], w1: float32[16,16,3,3])\n m = mean(x1, axis=(0, 2, 3))\n"
                     " c = Convolution(x1, w1, m, kernel=(3, 3), pad=(1, 1), num_filter=16)\n s = elemwise_add(c, x1)\n"
                     " return s",
    "weight and summand": "graph(x1: float32[16,16], w1: float32[16,16])\n c = FullyConnected(x1, w1, num_hidden=16, "
                          "no_bias=True)\n s = elemwise_add(c, w1)\n t = elemwise_mul(s, x1)\n return t",
    "data of a convolution and of its gate": "graph(x1: float32[1,8,5,5], w1: float32[8,8,3,3])\n m = relu(x1)\n"
                                             " c = Convolution(m, w1, kernel=(3, 3), pad=(1, 1), num_filter=8, "
                                             "no_bias=True)\n p = Pooling(c, pool_type=avg, global_pool=True)\n"
                                             " s = sigmoid(p)\n a = broadcast_add(s, m)\n d = broadcast_sub(a, p)\n"
                                             " return a, d",
    "both matrices and factor": "graph(x1: float32[16,16])\n t = tanh(x1)\n c = dot(t, t)\n s = elemwise_mul(c, t)\n"
                                " return s",
}


@pytest.mark.parametrize("mode", ["inference", "training"])
@pytest.mark.parametrize("name", ROLES)
def test_roles(name, mode):
    graph = parse_graph(ROLES[name])
    asked = {} if mode == "inference" else {node.name: "write" for node in graph.variables}
    assert not wrong(Network(0, graph, mode, asked), Report())


@pytest.mark.slow
def test_many():
    """As `python tests/reader_networks.py --count 5000`, which also tells how far it is."""
    seen = Report()
    wrong = [text for seed in range(5000) if (text := report(seed, seen))]
    assert not wrong, "\n".join(wrong)
    for each in ("ChainKernel", "RoutineKernel", "map past the caches", "columns", "winograd_data"):
        assert seen.kinds[each] > 0, seen


def test_the_search_finds_an_operand_that_became_another(monkeypatch):
    """With the transformed data of a Winograd convolution in the place of the data that its epilogue reads too."""
    def is_wrong(seed: int) -> bool:
        with lowered(lowered_for(seed)):
            return bool(wrong(network(seed), Report()))

    monkeypatch.setattr(split_winograd, "_apart", lambda kernel: (kernel, 0))
    assert any(map(is_wrong, range(FOUND_WITHIN)))


def test_a_state_that_backward_reads_after_it_changed():
    """What flows through a product with a moving mean takes the mean of before, though two layers change it; the
    numbers are MXNet 1.9.1's."""
    x, mean, var, gamma, beta = map(mx.sym.var, ("x", "mean", "var", "gamma", "beta"))
    y = x
    for i in range(2):
        y = mx.sym.BatchNorm(y * (1 + i) + i, gamma, beta, mean, var, fix_gamma=False, momentum=0.5, eps=0.1)
    symbol = mx.sym.broadcast_mul(y, mx.sym.Reshape(mean, shape=(1, -1)))
    executor = symbol.simple_bind(mx.cpu(), x=(8, 3), gamma=(3,), beta=(3,))
    values = np.random.RandomState(0).randn(8, 3).astype("float32")
    executor.copy_params_from({"x": mx.nd.array(values), "gamma": mx.nd.ones(3) * 2, "beta": mx.nd.ones(3) * 0.3},
                              {"mean": mx.nd.array([1, 2, 3]), "var": mx.nd.ones(3)})
    executor.forward(is_train=True)
    executor.backward(mx.nd.array(values + 1))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy()[:2], [
        [0.00353021, -0.00036906, 0.00275026], [0.00554452, 0.00595119, -0.00176383]], atol=2e-6)
    np.testing.assert_allclose(executor.aux_dict["mean"].asnumpy(), [1.1141894, 1.142906, 1.043504], rtol=1e-5)
