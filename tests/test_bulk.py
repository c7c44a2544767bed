"""Bulks: operators called one by one that run together when somebody needs what they make, and never seem to."""
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from engine_interrupts import check_nothing_is_lost, interrupted_at

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.gluon import nn
from mxc.runtime import bulk, costs, eager, engine, engine_queue, specializations
from mxc.runtime.cached_op import CachedOp


@pytest.fixture(autouse=True)
def _all_is_long(monkeypatch) -> Iterator[None]:
    """Whatever is compiled counts as long, and small arrays are compiled. Nobody releases a bulk but who needs it."""
    monkeypatch.setattr(costs, "SMALL_COST", 0)
    for name in ("ARITHMETIC_ELEMENTS", "MAP_ELEMENTS", "LIBRARY_ELEMENTS"):
        monkeypatch.setattr(eager, name, 16)
    monkeypatch.setattr(engine_queue, "OPEN_SECONDS", 1.0)
    kept = dict(specializations.remembered)
    specializations.remembered.clear()
    yield
    mx.nd.waitall()
    specializations.remembered.clear()
    specializations.remembered.update(kept)


@pytest.fixture
def plans(monkeypatch) -> list[int]:
    """How many outputs each plan of a bulk made, in order."""
    runs, run = [], CachedOp.run

    def counted(self, arrays, outputs) -> None:
        run(self, arrays, outputs)
        runs.append(len(outputs))

    monkeypatch.setattr(CachedOp, "run", counted)
    return runs


def is_open() -> bool:
    return bool(engine._engine.open)


def warm(program: Callable, times: int = 2) -> object:
    """What the last of some calls gives: the first one compiles each operator by itself."""
    for _ in range(times):
        result = program()
        mx.nd.waitall()
    return result


def chain(x: mx.nd.NDArray) -> mx.nd.NDArray:
    return mx.nd.relu(x * 2 - 3) + x


X = np.arange(-32, 32, dtype=np.float32).reshape(8, 8)
Y = np.maximum(X * 2 - 3, 0) + X


def net_of(seed: int = 0) -> nn.HybridSequential:
    mx.random.seed(seed)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Flatten(),
            nn.Dense(16, activation="relu"), nn.Dense(5))
    net.initialize(mx.init.Uniform(1))
    return net


def test_what_comes_again_becomes_a_plan_of_the_same_values(plans):
    net, x = net_of(), mx.nd.array(np.random.RandomState(0).rand(2, 3, 8, 8))
    results = [net(x).asnumpy() for _ in range(8)]
    assert plans == [1] * len(plans) and len(plans) >= 3
    net.hybridize()
    for result in (*results, net(x).asnumpy()):
        np.testing.assert_allclose(result, results[0], rtol=1e-4, atol=1e-4)


def test_only_what_somebody_holds_is_made(plans):
    x = mx.nd.array(X)

    def program(keeps: bool) -> list[np.ndarray]:
        made = [x * 2]
        made.append(made[-1] - 3)
        made.append(mx.nd.relu(made[-1]))
        made.append(made[-1] + x)
        if not keeps:
            del made[:-1]
        return [array.asnumpy() for array in made]

    for keeps, count in ((False, 1), (True, 4)):
        del plans[:]
        for _ in range(7):
            results = program(keeps)
        assert plans and set(plans) == {count}
        for result, right in zip(results[::-1], (Y, np.maximum(X * 2 - 3, 0), X * 2 - 3, X * 2), strict=False):
            np.testing.assert_array_equal(result, right)


def test_a_result_that_was_dropped_is_computed(plans):
    x = mx.nd.array(X)
    for _ in range(8):
        chain(x)
        mx.nd.waitall()
    assert plans == [1] * len(plans) and plans


def test_a_view_keeps_a_value():
    x = mx.nd.array(X)

    def program() -> tuple[mx.nd.NDArray, mx.nd.NDArray]:
        middle = x * 2
        part, flat = middle[2:4], middle.reshape((64,))
        del middle
        return part, mx.nd.relu(flat) + 1

    for _ in range(7):
        part, flat = program()
        np.testing.assert_array_equal(flat.asnumpy(), np.maximum(X * 2, 0).ravel() + 1)
        np.testing.assert_array_equal(part.asnumpy(), X[2:4] * 2)


def test_an_operator_on_a_part_of_a_value():
    x = mx.nd.array(np.tile(X, (4, 1)))
    for _ in range(7):
        middle = x * 2
        np.testing.assert_array_equal(mx.nd.relu(middle[8:16]).asnumpy(), np.maximum(X * 2, 0))


def test_writes_come_behind_what_was_called_before():
    x, other = mx.nd.array(X), mx.nd.array(X)
    warm(lambda: chain(x))
    for number in range(6):
        result = chain(x)
        assert is_open()
        if number % 3 == 0:
            x[:] = 7
        elif number % 3 == 1:
            x += 5
        else:
            mx.nd.relu(other, out=x)
        np.testing.assert_array_equal(result.asnumpy(), Y)
        np.testing.assert_array_equal(x.asnumpy(), (np.full_like(X, 7), X + 5, np.maximum(X, 0))[number % 3])
        x[:] = X


def test_parameters_that_change_are_seen(plans):
    net, x = net_of(), mx.nd.array(np.random.RandomState(0).rand(2, 3, 8, 8))
    weight = net[0].weight
    net(x).wait_to_read()
    for number in range(12):
        if number % 4 == 3:
            weight.data()[:] = weight.data() + 1
        if number == 6:
            weight.set_data(mx.nd.ones_like(weight.data()))
        if number == 9:  # another array in place of it
            net.cast("float64")
            net.cast("float32")
        result = net(x)
        net.hybridize()
        np.testing.assert_allclose(result.asnumpy(), net(x).asnumpy(), rtol=1e-4, atol=1e-5)
        net.hybridize(False)
    assert plans


def test_two_networks_of_one_structure_keep_their_own_parameters(plans):
    nets, x = [net_of(1), net_of(2)], mx.nd.array(np.random.RandomState(0).rand(2, 3, 8, 8))
    right = [net(x).asnumpy() for net in nets]
    assert np.abs(right[0] - right[1]).max() > 0.1
    for _ in range(6):
        for net, values in zip(nets, right, strict=True):
            np.testing.assert_allclose(net(x).asnumpy(), values, rtol=1e-4, atol=1e-4)
    assert plans


def test_nothing_is_kept_alive():
    net, x = net_of(), mx.nd.array(np.random.RandomState(0).rand(2, 3, 8, 8))
    for _ in range(7):
        y = net(x)
        y.wait_to_read()
    gone = [weakref.ref(array._array.owner) for array in (x, y, net[0].weight.data())]
    before = len(bulk._networks)
    del x, y, net
    for _ in range(2):  # what the parameters keep alive is found when they are gone
        gc.collect()
    assert [ref() is None for ref in gone] == [True] * 3 and len(bulk._networks) < before


def test_it_runs_when_nothing_is_called_for_a_while(monkeypatch):
    x = mx.nd.array(X)
    warm(lambda: chain(x))
    monkeypatch.setattr(engine_queue, "OPEN_SECONDS", 0.001)
    y = chain(x)
    limit = time.monotonic() + 30
    while y._array.variable.busy is not None and time.monotonic() < limit:
        time.sleep(0.001)
    assert y._array.variable.busy is None
    np.testing.assert_array_equal(y._array.memory, Y)


def test_a_bulk_has_a_largest_number_of_operators(monkeypatch):
    x = mx.nd.array(X)
    warm(lambda: x + 1)
    monkeypatch.setattr(bulk, "MOST_STEPS", 10)
    y = x
    for _ in range(95):
        y = y + 1
        assert len(engine._engine.open) <= 1 and all(len(piece.steps) < 10 for piece in engine._engine.open)
    np.testing.assert_array_equal(y.asnumpy(), X + 95)


def test_errors_of_other_work_are_not_a_bulks():
    x, bad = mx.nd.array(X), mx.nd.array(X)
    warm(lambda: chain(x))

    def fails() -> None:
        raise ValueError("not today")

    good = chain(x)
    engine.push(fails, [], [bad._array.variable], "other", small=False)
    worse = chain(bad)
    better = chain(x)
    with pytest.raises(MXNetError, match="not today"):
        worse.wait_to_read()
    np.testing.assert_array_equal(good.asnumpy(), Y)
    np.testing.assert_array_equal(better.asnumpy(), Y)
    mx.nd.waitall()


def test_recording_sees_what_a_bulk_makes():
    x, w = mx.nd.array(X), mx.nd.ones((8, 8))
    w.attach_grad()
    warm(lambda: chain(x))
    before = chain(x)
    with mx.autograd.record():
        loss = (before * w).sum()
    loss.backward()
    np.testing.assert_array_equal(w.grad.asnumpy(), Y)


def test_threads_have_bulks_of_their_own():
    net, x = net_of(), mx.nd.array(np.random.RandomState(0).rand(2, 3, 8, 8))
    right, wrong = net(x).asnumpy(), []

    def program() -> None:
        for _ in range(20):
            if not np.allclose(net(x).asnumpy(), right, rtol=1e-4, atol=1e-4):
                wrong.append(True)

    threads = [threading.Thread(target=program) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_random_programs_give_what_program_order_gives():
    """Small integers, so that no order of operations changes a value."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        steps = [(int(rng.integers(0, 9)), *(int(i) for i in rng.integers(0, 5, 3))) for _ in range(60)]
        for _ in range(5):
            ours = [mx.nd.array(X + i) for i in range(5)]
            theirs = [X + i for i in range(5)]
            for kind, a, b, c in steps:
                if kind < 3:
                    ours[c], theirs[c] = mx.nd.clip(ours[a] + ours[b], -99, 99), (theirs[a] + theirs[b]).clip(-99, 99)
                elif kind < 5:
                    ours[c], theirs[c] = mx.nd.relu(ours[a]) - 7, np.maximum(theirs[a], 0) - 7
                elif kind == 5:
                    ours[c], theirs[c] = ours[a].reshape((4, 16)).T.reshape((8, 8)), theirs[a].reshape(4, 16).T.reshape(
                        8, 8)
                elif kind == 6:
                    mx.nd.clip(ours[a] * 2, -99, 99, out=ours[c])
                    theirs[c] = (theirs[a] * 2).clip(-99, 99)
                elif kind == 7:
                    ours[c] = ours[a].copy()  # a write is to be seen in no other name
                    ours[c][2:5] = 3
                    theirs[c] = theirs[a].copy()
                    theirs[c][2:5] = 3
                elif b == 0:
                    np.testing.assert_array_equal(ours[a].asnumpy(), theirs[a])
                if kind == 6:
                    ours = [o if o is not ours[c] or i == c else mx.nd.array(theirs[i]) for i, o in enumerate(ours)]
            for array, right in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(array.asnumpy(), right)


@pytest.mark.parametrize("event", ["call", "return"])
@pytest.mark.parametrize("step", ["enter_open", "extend", "release", "release_all", "finish"])
def test_an_interrupt_between_the_engines_own_steps_loses_no_work(step: str, event: str):
    x = mx.nd.array(X)
    warm(lambda: chain(x))
    with interrupted_at(step, event):
        if step == "release":
            x += chain(x) * 0
        else:
            chain(x).wait_to_read()
    check_nothing_is_lost(30)
    np.testing.assert_array_equal(chain(x).asnumpy(), Y)


def test_an_interrupt_in_the_middle_of_a_bulk_lets_it_begin_again(monkeypatch):
    x, stopped = mx.nd.array(X), []
    warm(lambda: chain(x))
    one_by_one = bulk._one_by_one

    def interrupted(calls, leaves, targets, context) -> None:
        if not stopped:
            stopped.append(True)
            one_by_one(calls[:2], leaves, targets, context)
            raise KeyboardInterrupt
        one_by_one(calls, leaves, targets, context)

    monkeypatch.setattr(bulk, "_one_by_one", interrupted)
    early = mx.nd.relu(x) + 1
    later = chain(early)
    with pytest.raises(KeyboardInterrupt):
        later.wait_to_read()
    np.testing.assert_array_equal(early.asnumpy(), np.maximum(X, 0) + 1)
    early_values = np.maximum(X, 0) + 1
    np.testing.assert_array_equal(later.asnumpy(), np.maximum(early_values * 2 - 3, 0) + early_values)


LARGE = """
import os, numpy as np, mxc as mx
x = mx.nd.ones((512, 1024))
def chain():
    return mx.nd.relu(x * 2 - 3) + x
for _ in range(3):
    chain().wait_to_read()
y = chain()
"""


@pytest.mark.parametrize("end", ["", "assert (y.asnumpy() == 1).all()", "del y",
                                 "child = os.fork()\nassert (y.asnumpy() == 1).all()\n"
                                 "if not child: os._exit(0)\nassert os.waitpid(child, 0)[1] == 0"])
@pytest.mark.parametrize("runner", ["native", "portable"])
def test_a_program_that_ends_or_forks_with_one(end: str, runner: str):
    subprocess.run([sys.executable, "-c", LARGE + end], check=True, timeout=120,
                   env={**os.environ, "MXC_RUNNER": runner, "MXC_NUM_THREADS": "2"})


def test_it_is_off_where_work_is_seen_at_once(monkeypatch):
    x = mx.nd.array(X)
    warm(lambda: chain(x))
    monkeypatch.setattr(engine._engine, "naive", True)
    y = chain(x)
    assert not is_open() and y._array.variable.busy is None
    monkeypatch.undo()
