"""Backward by one plan, which a structure gets when it came often enough, against backward operator by operator."""
from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import numpy as np
import pytest

import mxc as mx
from mxc import autograd, nd
from mxc.runtime import backward, gradient_plans
from mxc.runtime.gradient_plans import GradientPlan

Program = Callable[[], list[np.ndarray]]
draw = np.random.default_rng(0)
X, W, B = (draw.uniform(-1, 1, shape).astype(np.float32) for shape in ((4, 6), (5, 6), (5,)))
IMAGES = draw.uniform(-1, 1, (2, 3, 6, 6)).astype(np.float32)


def marked(values: np.ndarray, request: str = "write") -> mx.nd.NDArray:
    array = nd.array(values, dtype=values.dtype)
    array.attach_grad(request)
    return array


def dense() -> list[np.ndarray]:
    x, w, b = map(marked, (X, W, B))
    with autograd.record():
        loss = nd.log_softmax(nd.relu(nd.FullyConnected(x, w, b, num_hidden=5))).pick(nd.array([0, 1, 2, 4]))
    loss.backward()
    return [a.grad.asnumpy() for a in (x, w, b)]


def heads_with_and_without_gradients() -> list[np.ndarray]:
    x, w = map(marked, (X, W))
    with autograd.record():
        product = nd.dot(x, w.T)
        both = [product * product, nd.sin(x)]
    autograd.backward(both, [None, nd.array(X)])
    return [a.grad.asnumpy() for a in (x, w)]


def added() -> list[np.ndarray]:
    x, w = marked(X, "add"), marked(W, "null")
    found = []
    for _ in range(2):
        with autograd.record():
            y = nd.tanh(nd.dot(x, w.T))
        y.backward()
        found.append(x.grad.asnumpy())
    return found


def kept_graph() -> list[np.ndarray]:
    x = marked(X)
    with autograd.record():
        y = nd.softmax(nd.exp(x) * 2).sum()
    y.backward(retain_graph=True)
    first = x.grad.asnumpy()
    x[:] = 0.5  # values count as they are when backward runs
    y.backward()
    return [first, x.grad.asnumpy()]


def states() -> list[np.ndarray]:
    x, gamma, beta = marked(IMAGES), marked(np.ones(3, np.float32)), marked(np.zeros(3, np.float32))
    mean, variance = nd.zeros(3), nd.ones(3)
    with autograd.record():
        y = nd.BatchNorm(x, gamma, beta, mean, variance, fix_gamma=False, momentum=0.5)
        y = nd.Convolution(y * y, marked(np.ones((2, 3, 3, 3), np.float32)), kernel=(3, 3), num_filter=2, no_bias=True)
    y.backward()
    return [a.asnumpy() for a in (x.grad, gamma.grad, beta.grad, mean, variance)]


def drawn() -> list[np.ndarray]:
    x = marked(X)
    mx.random.seed(7)
    with autograd.record():
        y = nd.Dropout(nd.dot(x, nd.array(W.T)), p=0.5)
    y.backward()
    return [y.asnumpy(), x.grad.asnumpy()]


def equal_gradients() -> list[np.ndarray]:
    x, y = marked(X), marked(X)
    with autograd.record():
        z = nd.sin(x + y) * 3
    z.backward(nd.array(X))
    return [x.grad.asnumpy(), y.grad.asnumpy()]


def read_from_its_own_gradient() -> list[np.ndarray]:
    x = marked(X)
    x.grad[:] = 2
    with autograd.record():
        y = nd.exp(x * x.grad)
    y.backward()
    return [x.grad.asnumpy()]


def flowing_from_its_own_gradient() -> list[np.ndarray]:
    """What flows into a head lies where the gradient goes, each element of which is made of a whole column."""
    draw = np.random.default_rng(0)
    x, square = marked(draw.uniform(-1, 1, (90, 70)).astype(np.float32)), nd.array(draw.uniform(-1, 1, (90, 90)))
    x.grad[:] = x
    with autograd.record():
        y = nd.dot(square, x) + nd.sin(x)
    y.backward(x.grad)
    return [x.grad.asnumpy()]


def halves() -> list[np.ndarray]:
    x, w = marked(X.astype(np.float16)), marked(W.astype(np.float16))
    with autograd.record():
        y = nd.FullyConnected(x, w, num_hidden=5, no_bias=True)
    y.backward()
    return [x.grad.asnumpy(), w.grad.asnumpy()]


def two_devices() -> list[np.ndarray]:
    x = nd.array(X, ctx=mx.cpu(1))
    x.attach_grad()
    with autograd.record():
        y = nd.sin(x.as_in_context(mx.cpu(0)) * 3)
    y.backward()
    assert x.grad.context == mx.cpu(1)
    return [x.grad.asnumpy()]


@functools.cache
def block() -> mx.gluon.nn.Dense:
    net = mx.gluon.nn.Dense(3, in_units=6)
    net.initialize()
    net.hybridize()
    for parameter in net.collect_params().values():
        parameter.set_data(nd.array(draw.uniform(-1, 1, parameter.shape)))
    return net


def with_a_block_that_is_a_plan() -> list[np.ndarray]:
    """Operators before the block, behind it, and beside it."""
    net, x = block(), marked(X)
    with autograd.record():
        y = nd.tanh(nd.sin(x) * 2)
        loss = nd.log_softmax(net(y)).pick(nd.array([0, 1, 2, 0])) * y.sum(axis=1)
    loss.backward()
    return [x.grad.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values())]


def new_arrays() -> list[np.ndarray]:
    x = marked(X)
    with autograd.record():
        y = nd.dot(nd.sin(x), x.T)
    return [g.asnumpy() for g in autograd.grad([y], [x])]


PROGRAMS = [dense, heads_with_and_without_gradients, added, kept_graph, states, drawn, equal_gradients,
            read_from_its_own_gradient, flowing_from_its_own_gradient, halves, two_devices,
            with_a_block_that_is_a_plan, new_arrays]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of what plans were asked for. No structure is known at first, and no bundle serves one."""
    asked: list[int] = []
    run = GradientPlan.run

    def noted(self, values, is_train, targets):
        asked.append(len(self.sought))
        return run(self, values, is_train, targets)

    monkeypatch.setattr(GradientPlan, "run", noted)
    monkeypatch.setattr(backward, "_programs", {})
    monkeypatch.setattr(backward, "bundle_of", lambda *args: None)
    return asked


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_plans_give_what_operators_give(program: Program, planned: list[int]):
    want = program()
    for _ in range(gradient_plans.RUNS - 1):
        program()
    for _ in range(2):
        for given, value in zip(program(), want, strict=True):
            np.testing.assert_allclose(given, value, rtol=2e-5 if value.dtype != np.float16 else 2e-3, atol=1e-5)
    assert len(planned) >= 2


def test_what_is_recorded_itself_has_no_plan(planned: list[int]):
    x = marked(X)
    for _ in range(gradient_plans.RUNS + 2):
        with autograd.record():
            (slope,) = autograd.grad([nd.sin(x) * nd.exp(x)], [x], create_graph=True)
        slope.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), 2 * np.cos(X) * np.exp(X), rtol=1e-4)
    assert planned  # of the outer backward, whose tape has the gradients' own operators


def test_operators_without_kernels_run_one_by_one(planned: list[int], monkeypatch: pytest.MonkeyPatch):
    def refused(*args: object, **kwargs: object) -> None:
        raise mx.MXNetError("this target has no kernel for it")

    monkeypatch.setattr("mxc.compiler.api.compile_graph", refused)
    for _ in range(gradient_plans.RUNS + 2):
        assert [a.shape for a in dense()] == [(4, 6), (5, 6), (5,)]
    assert len(planned) == 1


def test_structures_that_are_forgotten_take_their_memory_with_them(planned: list[int]):
    for _ in range(gradient_plans.RUNS + 1):
        dense()
    assert gradient_plans._pools
    gradient_plans.forget_memory()
    assert not gradient_plans._pools
    dense()
    assert len(planned) == 2


def test_threads_that_train_at_once(planned: list[int], monkeypatch: pytest.MonkeyPatch):
    """A plan is made once, whoever comes first."""
    monkeypatch.setattr(gradient_plans, "RUNS", 0)
    begin, found, made = threading.Barrier(4), list[np.ndarray](), list[int]()
    make = GradientPlan._made_op

    def noted(self):
        made.append(1)
        return make(self)

    monkeypatch.setattr(GradientPlan, "_made_op", noted)
    weights = [draw.uniform(-0.3, 0.3, (6, 6)).astype(np.float32) for _ in range(30)]

    def train() -> None:
        own = [marked(w) for w in weights]
        for _ in range(3):
            with autograd.record():
                y = nd.array(X)
                for w in own:
                    y = nd.tanh(nd.dot(y, w)) + y * 0.5
            begin.wait()
            y.backward()
            found.append(np.stack([w.grad.asnumpy() for w in own]))

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12 and len(made) == 1
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], rtol=1e-5, atol=1e-6)


def test_backward_of_the_other_mode_is_of_what_ran():
    """Dropout has the mask of its forward, BatchNorm the statistics of its batch; its states stay as they are."""
    for _ in range(6):
        x = nd.ones((40,))
        x.attach_grad()
        with autograd.record():
            y = nd.Dropout(x, p=0.5)
        np.testing.assert_array_equal(autograd.grad([y], [x], retain_graph=True, train_mode=False)[0].asnumpy(),
                                      y.asnumpy())
        y.backward(train_mode=False)
        np.testing.assert_array_equal(x.grad.asnumpy(), y.asnumpy())
    x = nd.array(np.random.default_rng(0).uniform(-1, 1, (5, 3)))
    x.attach_grad()
    gamma, mean, slopes = nd.ones(3), nd.zeros(3), []
    for training in (True, False):
        mean[:] = 0
        with autograd.record():
            y = nd.BatchNorm(x, gamma, nd.zeros(3), mean, nd.ones(3), fix_gamma=False, axis=1)
            y = (y * y * y).sum()
        y.backward(train_mode=training)
        slopes.append(x.grad.asnumpy())
        assert mean.asnumpy().any() == training
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-5, atol=1e-6)
