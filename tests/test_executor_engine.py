"""Executors on the engine: runs are queued in the program's order, and their errors stay with what they should have
written."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.runtime import costs, engine, engine_queue
from mxc.runtime.engine_queue import Queue
from mxc.runtime.executor_plan import BoundPlan

X, Y = mx.sym.Variable("x"), mx.sym.Variable("y")
hooks = {"forward": lambda: None, "backward": lambda: None}  # what the custom operator does first


class Hooked(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        hooks["forward"]()
        self.assign(out_data[0], req[0], in_data[0] * 2)
        if aux:
            aux[0][:] = aux[0] + 1

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        hooks["backward"]()
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("hooked")
class HookedProp(mx.operator.CustomOpProp):
    def __init__(self, states="0"):
        super().__init__(need_top_grad=True)
        self.states = int(states)

    def list_auxiliary_states(self):
        return ["count"][:self.states]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [[1]][:self.states]

    def create_operator(self, ctx, shapes, dtypes):
        return Hooked()


@pytest.fixture(autouse=True)
def settled():
    yield
    hooks.update(forward=lambda: None, backward=lambda: None)
    engine.waitall()


@contextmanager
def held(array: mx.nd.NDArray) -> Iterator[None]:
    """Inside, whatever uses the array waits."""
    gate = threading.Event()
    engine.push(lambda: gate.wait(60), [], [array._array.variable], "hold", small=False)
    try:
        yield
    finally:
        gate.set()


def fail() -> None:
    raise ValueError("bad luck")


def bound(net: mx.sym.Symbol, **shapes: tuple[int, ...]) -> mx.executor.Executor:
    executor = net.simple_bind(mx.cpu(), **(shapes or {"x": (2, 2)}))
    for array in executor.arg_arrays:
        array[:] = 1
    return executor


def is_pending(array: mx.nd.NDArray) -> bool:
    return array._array.variable.busy is not None


def test_runs_return_at_once_and_keep_the_programs_order():
    executor = bound(X * X * 3)
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2, 2)))
    assert not is_pending(executor.outputs[0]) and not is_pending(executor.grad_dict["x"])  # small, and all is free
    with held(executor.arg_dict["x"]):
        first = executor.forward(is_train=True, x=mx.nd.full((2, 2), 2))[0].copy()
        executor.backward(mx.nd.ones((2, 2)))
        gradient = executor.grad_dict["x"].copy()
        second = executor.forward(x=np.full((2, 2), 3.0))[0]
        assert is_pending(second) and is_pending(gradient) and is_pending(first)
    assert (first.asnumpy() == 12).all() and (second.asnumpy() == 27).all() and (gradient.asnumpy() == 12).all()


def test_a_large_run_is_queued(monkeypatch):
    monkeypatch.setattr(engine, "_engine", Queue(engine._serve))  # with as many workers as are held below
    monkeypatch.setattr(engine, "BRIEF", 0.0)
    executor = bound(mx.sym.FullyConnected(X, num_hidden=8, no_bias=True, name="fc"), x=(512, 600))
    gate = threading.Event()
    for _ in range(engine_queue.WORKERS):
        engine.push(lambda: gate.wait(60), [], [engine.Variable()], "hold", small=False)
    output = executor.forward(is_train=True)[0]
    executor.backward(mx.nd.ones((512, 8)))
    assert is_pending(output) and is_pending(executor.grad_dict["fc_weight"])
    gate.set()
    assert (output.asnumpy() == 600).all() and (executor.grad_dict["fc_weight"].asnumpy() == 512).all()
    engine._close()


def test_a_brief_run_is_done_in_the_caller_unless_something_is_in_its_way(monkeypatch):
    monkeypatch.setattr(engine, "_engine", Queue(engine._serve))  # with as many workers as are held below
    monkeypatch.setattr(costs, "SMALL_COST", 0)
    executor, gate = bound(X + 1), threading.Event()
    thread, threads = threading.get_ident(), []
    monkeypatch.setattr(BoundPlan, "run", lambda *given, run=BoundPlan.run: (threads.append(threading.get_ident()),
                                                                             run(*given)))
    assert not is_pending(executor.forward(is_train=True)[0])
    executor.backward(mx.nd.ones((2, 2)))
    assert not is_pending(executor.grad_dict["x"]) and threads == [thread] * 2 and not engine._engine.pending
    for _ in range(engine_queue.WORKERS):
        engine.push(lambda: gate.wait(60), [], [executor.arg_dict["x"]._array.variable], "hold", small=False)
    assert is_pending(executor.forward(is_train=True)[0])
    gate.set()
    assert (executor.outputs[0].asnumpy() == 2).all()
    engine._close()


def test_an_error_stays_with_what_the_run_should_have_written():
    executor = bound(mx.sym.Group([mx.sym.Custom(X, op_type="hooked", name="unlucky"), X + 1]))
    other = bound(X + 5)
    hooks["forward"] = fail
    outputs = executor.forward(is_train=True)
    executor.backward([mx.nd.ones((2, 2))] * 2)
    assert (other.forward()[0].asnumpy() == 6).all()
    for array in (*outputs, executor.grad_dict["x"], outputs[0] + 1) * 2:
        with pytest.raises(MXNetError, match="operation forward: node 'unlucky': ValueError: bad luck"):
            array.asnumpy()
    executor.backward([mx.nd.ones((2, 2))] * 2)  # of a forward that failed
    with pytest.raises(MXNetError, match="operation forward: node 'unlucky'"):
        executor.grad_dict["x"].wait_to_read()
    engine.waitall()
    assert (executor.arg_dict["x"].asnumpy() == 1).all()
    hooks["forward"] = lambda: None
    assert (executor.forward(is_train=True)[0].asnumpy() == 2).all()
    hooks["backward"] = fail
    executor.backward([mx.nd.ones((2, 2))] * 2)
    with pytest.raises(MXNetError, match=r"operation backward: node 'unlucky\w*': ValueError: bad luck"):
        engine.waitall()
    assert (outputs[1].asnumpy() == 2).all()
    hooks["backward"] = lambda: None
    executor.backward([mx.nd.ones((2, 2))] * 2)
    assert (executor.grad_dict["x"].asnumpy() == 3).all()


def test_input_errors_are_raised_at_the_call():
    executor = bound(X * X)
    with held(executor.arg_dict["x"]):
        executor.forward(is_train=True)
        with pytest.raises(MXNetError, match="needs a head gradient"):
            executor.backward()
        with pytest.raises(MXNetError, match="has the shape"):
            executor.backward(mx.nd.ones((3, 3)))
        with pytest.raises(ValueError, match="Shape not match"):
            executor.forward(x=np.zeros((3, 3)))


def test_relatives_take_turns_while_they_are_queued():
    large = bound(mx.sym.exp(X * 0) * X * X, x=(4, 3))
    small = large.reshape(x=(2, 3))
    heads = mx.nd.ones((4, 3))
    with held(large.arg_dict["x"]):
        large.forward(is_train=True)
        small.forward(is_train=True)
        small.backward(heads[:2])
        large.backward(heads)  # finds the other's values in the arena
        assert is_pending(large.grad_dict["x"])
    assert (large.grad_dict["x"].asnumpy() == 2).all() and (small.grad_dict["x"].asnumpy() == 2).all()
    assert (small.outputs[0].asnumpy() == 1).all() and (large.outputs[0].asnumpy() == 1).all()


def test_a_run_inside_of_a_relatives_run_is_refused():
    executor = bound(mx.sym.Custom(X, op_type="hooked", name="inner") + 1)
    stranger, seen = bound(X * 7), []
    hooks["forward"] = lambda: seen.append(stranger.forward()[0].asnumpy()[0, 0])
    assert (executor.forward()[0].asnumpy() == 3).all() and seen == [7]
    hooks["forward"] = executor.forward
    with pytest.raises(MXNetError, match="cannot run inside of its own run"):
        executor.forward()[0].asnumpy()


INSIDE = f"""
import sys, threading
sys.path.insert(0, {os.path.dirname(__file__)!r})
import numpy as np, mxc as mx
from mxc.runtime import engine
from test_executor_engine import X, Y, bound, hooks

outer = bound(mx.sym.Custom(X, op_type="hooked"))
waiting = (mx.sym.exp(X * 0) * X * X * Y).bind(mx.cpu(), {{"x": outer.outputs[0], "y": mx.nd.ones((2, 2))}})
began, seen = threading.Event(), []

def until(is_so):
    while not is_so():
        threading.Event().wait(0.001)

def run_it():
    began.set()
    until(lambda: len(engine._engine.pending) > 1)
    seen.append(waiting.forward()[0].asnumpy()[0, 0])

hooks["forward"] = run_it
outer.outputs[0][:] = 3
"""


@pytest.mark.parametrize("wait", [
    "waiting.set_monitor_callback(lambda *_: None)", "shared = waiting.arg_dict['y']._array.share()",
    "engine.MOST_LARGE = 1; waiting.forward(); "
    "waiting._core._forwards[False] = waiting._core._forwards[False]._replace(small=False)"],
    ids=["with a monitor", "on volatile memory", "ahead by far"])
def test_a_custom_operator_runs_an_executor_that_another_thread_waits_to_run(wait):
    """In a process of its own: what may go wrong is that it never ends."""
    script = INSIDE + wait + """
outer.forward()
began.wait()
waiting.forward()
assert waiting.outputs[0].asnumpy()[0, 0] == 4, waiting.outputs[0].asnumpy()
assert seen == [9], seen
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_runs_inside_of_work_and_queued_ones_take_turns(monkeypatch):
    """Many custom operators run one executor, which is pushed from outside too: all find the arena their own."""
    monkeypatch.setattr(engine, "_engine", Queue(engine._serve))
    monkeypatch.setattr(engine_queue, "WORKERS", 4)
    net = X
    for factor in range(6):  # a value of each softmax is in the arena
        net = mx.sym.softmax(net * factor, axis=factor % 2) + X
    shared = net.simple_bind(mx.cpu(), grad_req="null", x=(600, 200))
    shared.arg_dict["x"][:] = np.random.default_rng(0).uniform(-1, 1, (600, 200))
    expected, wrong = shared.forward()[0].asnumpy(), []

    def run_it() -> None:
        if not np.array_equal(shared.forward()[0].asnumpy(), expected):
            wrong.append("inside")

    hooks["forward"] = run_it
    customs = [bound(mx.sym.Custom(X, op_type="hooked")) for _ in range(3)]
    for _ in range(30):
        for custom in customs:
            custom.forward()
        if not np.array_equal(shared.forward()[0].asnumpy(), expected):
            wrong.append("outside")
    engine.waitall()
    engine._close()
    assert not wrong


def test_what_a_custom_operator_uses_unnamed_is_as_it_was_at_the_call():
    w, seen = mx.nd.ones((2, 2)), []
    executor = bound(mx.sym.Custom(X, op_type="hooked"))
    hooks["forward"] = lambda: seen.append(w.asnumpy()[0, 0])
    with held(w):
        w += 1
        output = executor.forward()[0]
        w += output
    assert (w.asnumpy() == 4).all() and seen == [2]


def test_a_custom_operators_states_are_written_by_forward():
    executor = bound(mx.sym.Custom(X, mx.sym.Variable("count"), op_type="hooked", states=1))
    executor.aux_arrays[0][:] = 5
    with held(executor.arg_dict["x"]):
        executor.forward(is_train=True)
        assert is_pending(executor.aux_arrays[0])
    assert executor.aux_arrays[0].asnumpy().tolist() == [6]


def test_numbers_are_drawn_in_the_programs_order():
    executor = bound(mx.sym.Dropout(X, p=0.5), x=(8, 8))

    def draws(pending: bool) -> list[np.ndarray]:
        mx.random.seed(3)
        found = []
        with held(executor.arg_dict["x"] if pending else mx.nd.zeros((1,))):
            for _ in range(2):
                found.append(executor.forward(is_train=True)[0].copy())
                executor.backward(mx.nd.ones((8, 8)))
                found.append(executor.grad_dict["x"].copy())
                executor.backward(mx.nd.ones((8, 8)))  # the same mask, in a forward that runs again
                found.append(executor.grad_dict["x"].copy())
                found.append(mx.nd.random.uniform(shape=(8, 8)))
        return [array.asnumpy() for array in found]

    now, later = draws(False), draws(True)
    for a, b in zip(now, later, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(now[0], now[1])
    np.testing.assert_array_equal(now[0], now[2])
    assert not np.array_equal(now[0], now[4])


def test_a_monitor_is_called_in_forward():
    executor, seen = bound(mx.sym.exp(X, name="e")), []
    executor.set_monitor_callback(lambda name, array: seen.append((name, threading.current_thread())))
    executor.forward()
    assert seen == [("e_output", threading.current_thread())]


def test_the_naive_engine_runs_at_the_call():
    script = ("import numpy as np, mxc as mx\nfrom mxc.runtime import engine\n"
              "e = mx.sym.FullyConnected(mx.sym.Variable('x'), num_hidden=8).simple_bind(mx.cpu(), x=(512, 600))\n"
              "e.forward(is_train=True); e.backward(mx.nd.ones((512, 8)))\n"
              "assert all(a._array.variable.busy is None for a in (*e.outputs, *e.grad_arrays))")
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "MXNET_ENGINE_TYPE": "NaiveEngine"},
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("count", [1500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_random_programs_give_what_the_naive_engine_gives(monkeypatch, count):
    """Operators, assignments and runs of executors forward and backward, over 50 arrays, on 4 workers."""

    def program(naive: bool) -> list[np.ndarray]:
        monkeypatch.setattr(engine._engine, "naive", naive)
        mx.random.seed(1)
        rng = np.random.default_rng(4)
        arrays = [mx.nd.array(rng.uniform(-1, 1, (2, 3))) for _ in range(50)]
        executors = []
        for _ in range(12):
            x, y, gx, gy = (arrays[i] for i in rng.choice(50, 4, replace=False))
            net = mx.sym.Dropout(mx.sym.tanh(X * Y), p=0.3) + mx.sym.broadcast_div(X, mx.sym.sum(abs(Y)) + 1)
            executor = net.bind(mx.cpu(), {"x": x, "y": y}, {"x": gx, "y": gy}, {"x": "write", "y": "add"})
            executors.append(executor)
        for number in range(count):
            a, b, c = (arrays[i] for i in rng.integers(0, 50, 3))
            kind = rng.integers(0, 10)
            executor = executors[rng.integers(0, 12)]
            if kind == 0:
                executor.forward(is_train=True)
                mx.nd.broadcast_add(executor.outputs[0], a, out=c)
            elif kind == 1:
                executor.forward(is_train=True, x=a)
                executor.backward(b)
            elif kind == 2:
                c[:] = np.full((2, 3), number % 7 - 3)
            elif kind == 3:
                mx.nd.random.uniform(-1, 1, out=c)
            else:
                mx.nd.tanh(mx.nd.broadcast_add(a, b), out=c)
        return [array.asnumpy() for array in arrays]

    monkeypatch.setattr(engine_queue, "WORKERS", 4)
    expected = program(True)
    queued = [0]
    enter = engine._engine.enter

    def counted(piece: engine.Work) -> None:
        queued[0] += piece.is_queued
        enter(piece)

    monkeypatch.setattr(engine._engine, "enter", counted)
    monkeypatch.setattr(costs, "SMALL_COST", 0)
    for brief in (engine.BRIEF, 0.0):  # in the caller, or queued
        monkeypatch.setattr(engine, "BRIEF", brief)
        for array, right in zip(program(False), expected, strict=True):
            np.testing.assert_array_equal(array, right)
    assert queued[0] > count / 4
