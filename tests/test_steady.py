"""Eager operators whose parameters stay: packed once, and again when they were written."""
from __future__ import annotations

import gc

import numpy as np
import pytest

import mxc as mx
from mxc import autograd, nd
from mxc.compiler.graph.graph import Node
from mxc.compiler.ops import table
from mxc.runtime import specializations
from mxc.runtime.steady import Steady

draw = np.random.default_rng(0)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each call that might have packed parameters whether it had."""
    told: list[bool] = []
    find = Steady.find

    def noted(self, inputs):
        result = find(self, inputs)
        told.append(result is not None)
        return result

    monkeypatch.setattr(Steady, "find", noted)
    monkeypatch.setattr(specializations, "remembered", {})
    return told


def random(*shape: int) -> mx.nd.NDArray:
    return nd.array(draw.uniform(-1, 1, shape))


def convolved(x: mx.nd.NDArray, w: mx.nd.NDArray) -> mx.nd.NDArray:
    return nd.Convolution(x, w, kernel=(3, 3), pad=(1, 1), num_filter=16, no_bias=True)


def test_weights_that_were_written_are_packed_again(found: list[bool]):
    x, w = random(1, 16, 20, 20), random(16, 16, 3, 3)
    first = convolved(x, w).asnumpy()
    for _ in range(2):
        np.testing.assert_allclose(convolved(x, w).asnumpy(), first, rtol=1e-4, atol=1e-4)
    assert found == [False, True, True]
    w *= 2
    for _ in range(3):
        np.testing.assert_allclose(convolved(x, w).asnumpy(), 2 * first, rtol=1e-4, atol=1e-4)
    assert found[3:] == [False, True, True]
    view = w[3:5]
    view[:] = 0
    for _ in range(2):
        got = convolved(x, w).asnumpy()
        assert not got[:, 3:5].any() and got[:, 5].any()
    assert found[6:] == [False, True]


def test_each_weight_of_one_shape_has_its_own(found: list[bool]):
    x, weights = random(1, 16, 20, 20), [random(16, 16, 3, 3) for _ in range(3)]
    want = [convolved(x, w).asnumpy() for w in weights]
    for _ in range(2):
        for w, value in zip(weights, want, strict=True):
            np.testing.assert_allclose(convolved(x, w).asnumpy(), value, rtol=1e-4, atol=1e-4)
    assert found == [False] * 3 + [True] * 6


def test_a_weight_that_is_gone_takes_what_was_made_of_it_along(found: list[bool]):
    x, w = random(1, 16, 20, 20), random(16, 16, 3, 3)
    for _ in range(2):
        convolved(x, w).wait_to_read()
    (steady,) = [s.steady for s in set(specializations.remembered.values()) if s.steady is not None]
    assert len(steady._seen) == 1
    del w
    gc.collect()
    assert not steady._seen


def test_normalization_reads_states_that_changed(found: list[bool]):
    x, gamma, beta, mean, variance = random(2, 8, 40, 40), random(8), random(8), random(8), nd.ones(8)

    def normalized() -> np.ndarray:
        return nd.BatchNorm(x, gamma, beta, mean, variance, fix_gamma=False, eps=0.).asnumpy()

    first = [normalized() for _ in range(3)]
    assert found == [False, True, True]
    np.testing.assert_allclose(first[0], first[2], rtol=1e-5, atol=1e-5)
    variance[:] = 4
    for _ in range(3):
        want = (first[0] - beta.asnumpy()[:, None, None]) / 2 + beta.asnumpy()[:, None, None]
        np.testing.assert_allclose(normalized(), want, rtol=1e-4, atol=1e-5)


def test_results_go_where_they_shall(found: list[bool]):
    x, w = random(1, 16, 20, 20), random(16, 16, 3, 3)
    want = convolved(x, w).asnumpy()
    out, given = nd.zeros((1, 16, 20, 20)), {"kernel": (3, 3), "pad": (1, 1), "num_filter": 16, "no_bias": True}
    nd.Convolution(x, w, out=out, **given)
    np.testing.assert_allclose(out.asnumpy(), want, rtol=1e-4, atol=1e-4)
    nd.Convolution(x, w, out=x, **given)
    np.testing.assert_allclose(x.asnumpy(), want, rtol=1e-4, atol=1e-4)
    assert found == [False, True, True]


def test_what_is_recorded_or_trains_packs_anew(found: list[bool]):
    x, w = random(1, 16, 20, 20), random(16, 16, 3, 3)
    w.attach_grad()
    for training in (True, False, False):
        with autograd.record(train_mode=training):
            y = convolved(x, w)
        y.backward()
        assert w.grad.asnumpy().any()
    with autograd.train_mode():
        convolved(x, w).wait_to_read()
    assert not found


def test_memory_that_others_may_write_is_read_each_time(found: list[bool]):
    x, w = random(1, 16, 20, 20), random(16, 16, 3, 3)
    own = np.from_dlpack(w)
    want = convolved(x, w).asnumpy()
    convolved(x, w).wait_to_read()
    own[:] = 0
    assert want.any() and not convolved(x, w).asnumpy().any()
    assert not any(found)


def test_parameters_that_are_parts_of_one_array(found: list[bool]):
    """All parts of an array have one variable and one version."""
    x, gamma, beta = nd.ones((4, 16, 8, 8)), nd.ones(16), nd.zeros(16)
    means, variances = nd.array([[0] * 16, [10] * 16]), nd.ones((2, 16))
    got = [nd.BatchNorm(x, gamma, beta, means[d], variances[d], fix_gamma=False).asnumpy()[0, 0, 0, 0]
           for d in (0, 0, 1, 0, 1, 1)]
    np.testing.assert_allclose(got, [0.9995, 0.9995, -8.9955, 0.9995, -8.9955, -8.9955], rtol=1e-4)
    assert found == [False, True, False, False, False, True]


@pytest.mark.parametrize("name", ["BatchNorm", "_contrib_quantized_batch_norm"])
def test_states_between_other_inputs_are_found_by_name(name: str):
    op = table.get(name)
    params = op.make_params({"min_calib_range": -1, "max_calib_range": 1} if "quantized" in name else {})
    inputs = op.all_names(params)
    dtypes = ["int8" if name != "BatchNorm" and i == 0 else "float32" for i in range(len(inputs))]
    shapes = [(2, 8, 4, 4) if i == 0 else (1,) if each.startswith(("min", "max")) else (8,)
              for i, each in enumerate(inputs)]
    special = specializations.special_of(Node(op, "", None, params), tuple(shapes), tuple(dtypes), False)
    assert [inputs[i] for i in special.learned] == ["gamma", "beta", "moving_mean", "moving_var"]
