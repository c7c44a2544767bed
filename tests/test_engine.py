"""The engine: order by reads and writes, errors where they are waited for, threads, forks and the end of a process."""
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from engine_interrupts import check_nothing_is_lost, interrupted_at

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.runtime import engine, engine_queue
from mxc.runtime.eager import quiet
from mxc.runtime.engine_queue import Queue


def _program(count: int, seed: int, push, small: bool) -> np.ndarray:
    """`count` random operations over 50 arrays; their values at the end."""
    rng = np.random.default_rng(seed)
    arrays, variables = [np.full(16, i, np.int64) for i in range(50)], [engine.Variable() for _ in range(50)]
    for number in range(count):
        a, b, c = (int(i) for i in rng.integers(0, 50, 3))

        def work(a=a, b=b, c=c, number=number) -> None:
            np.copyto(arrays[c], arrays[a] * 3 + arrays[b] * 7 + number)

        push(work, [variables[a], variables[b]], [variables[c]], "mix", small and number % 3 == 0)
    for variable in variables:
        engine.wait_to_read(variable)
    return np.stack(arrays)


def _naively(work, reads, writes, name, small) -> None:
    work()


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_random_operations_give_what_program_order_gives(monkeypatch, count):
    monkeypatch.setattr(engine_queue, "WORKERS", 4)
    expected = _program(count, 1, _naively, True)
    np.testing.assert_array_equal(_program(count, 1, engine.push, False), expected)
    np.testing.assert_array_equal(_program(count, 1, engine.push, True), expected)


def test_work_returns_at_once_and_runs_in_order():
    gate, variable, seen = threading.Event(), engine.Variable(), []
    engine.push(lambda: (gate.wait(10), seen.append(1)), [], [variable], "slow", small=False)
    engine.push(lambda: seen.append(2), [variable], [], "small")
    assert seen == []
    gate.set()
    engine.wait_to_write(variable)
    assert seen == [1, 2] and variable.busy is None and variable.version == 1


def test_independent_work_runs_in_parallel():
    meet, variables = threading.Barrier(2, timeout=10), [engine.Variable(), engine.Variable()]
    for variable in variables:
        engine.push(meet.wait, [], [variable], "meet", small=False)
    for variable in variables:
        engine.wait_to_read(variable)


def test_an_error_surfaces_at_the_wait_on_what_depends_on_it():
    bad, after, other = engine.Variable(), engine.Variable(), engine.Variable()
    ran = []
    engine.push(lambda: 1 / 0, [], [bad], "divide", small=False)
    engine.push(lambda: ran.append("after"), [bad], [after], "use", small=False)
    engine.push(lambda: ran.append("other"), [], [other], "other", small=False)
    engine.wait_to_read(other)
    with pytest.raises(MXNetError, match="operation divide: division by zero"):
        engine.wait_to_read(after)
    with pytest.raises(MXNetError, match="operation divide") as raised:
        engine.wait_to_read(bad)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert ran == ["other"]
    engine.waitall()  # it was seen


def test_an_error_stays_until_its_variable_is_overwritten():
    bad, also, after = engine.Variable(), engine.Variable(), engine.Variable()
    engine.push(lambda: 1 / 0, [], [bad, also], "divide", small=False)
    with pytest.raises(MXNetError, match="operation divide"):
        engine.waitall()
    engine.waitall()
    engine.push(lambda: None, [bad], [after], "use", small=False)
    engine.push(lambda: None, [bad], [bad], "change")
    for variable in (bad, also, after) * 2:
        with pytest.raises(MXNetError, match="operation divide"):
            engine.wait_to_read(variable)
        with pytest.raises(MXNetError, match="operation divide"):
            engine.run(lambda: None, [variable], [], "use")
    engine.waitall()  # what was seen is told no more, of what depends on it neither
    for variable in (bad, also, after):
        engine.push(lambda: None, [], [variable], "overwrite")
        engine.wait_to_write(variable)
        assert variable.busy is None


def test_work_that_fails_in_the_caller_leaves_an_earlier_error():
    variable = engine.Variable()
    engine.push(lambda: 1 / 0, [], [variable], "divide", small=False)
    with pytest.raises(IndexError):
        engine.run(lambda: [][0], [], [variable], "index")
    with pytest.raises(MXNetError, match="operation divide"):
        engine.wait_to_read(variable)
    variable.volatile = True
    with pytest.raises(MXNetError, match="operation divide"):
        engine.push(lambda: None, [variable], [], "use")


def test_an_overwritten_error_is_gone_and_waitall_raises_others_once():
    variable = engine.Variable()
    engine.push(lambda: 1 / 0, [], [variable], "divide", small=False)
    engine.push(lambda: None, [], [variable], "overwrite", small=False)
    engine.wait_to_read(variable)
    engine.waitall()
    engine.push(lambda: 1 / 0, [], [variable], "divide", small=False)
    with pytest.raises(MXNetError, match="operation divide"):
        engine.waitall()
    engine.waitall()


def test_errors_at_random_lose_nothing_else():
    rng, sums, variables = np.random.default_rng(2), np.zeros(20, int), [engine.Variable() for _ in range(20)]
    expected, failing = np.zeros(20, int), set()
    for _ in range(2000):
        i = int(rng.integers(20))

        def add(i=i) -> None:
            sums[i] += 1

        if rng.random() < 0.01:
            engine.push(lambda: 1 / 0, [], [variables[i]], "fail", small=False)
            failing.add(i)
        else:
            engine.push(add, [], [variables[i]], "add", small=False)
            expected[i] += 1
            failing.discard(i)
    for i, variable in enumerate(variables):
        if i in failing:
            with pytest.raises(MXNetError, match="operation fail"):
                engine.wait_to_read(variable)
        else:
            engine.wait_to_read(variable)
    np.testing.assert_array_equal(sums, expected)
    engine.waitall()


def test_work_inside_of_work_is_a_part_of_it():
    variable, inner, seen = engine.Variable(), engine.Variable(), []

    def outer() -> None:
        engine.push(lambda: seen.append("inner"), [variable], [inner], "inner", small=False)
        engine.wait_to_read(variable)
        seen.append("outer")

    engine.push(outer, [], [variable], "outer", small=False)
    engine.wait_to_read(variable)
    assert seen == ["inner", "outer"]


def test_work_inside_of_work_waits_for_what_was_pushed_before_and_for_nothing_behind():
    """What it uses without naming it: else it would wait for itself, or for what its own thread has put aside."""
    gate, outer, x, y, seen = threading.Event(), engine.Variable(), engine.Variable(), engine.Variable(), []

    def body() -> None:
        engine.wait_to_write(x)
        engine.push(lambda: seen.append("inner"), [], [x], "inner")
        gate.wait(10)

    engine.push(lambda: seen.append("before"), [], [x], "before", small=False)
    engine.push(body, [], [outer], "outer", small=False)
    engine.push(lambda: seen.append("behind"), [outer], [x], "behind", small=False)
    engine.push(lambda: engine.wait_to_read(outer), [], [y], "later", small=False)
    gate.set()
    engine.waitall()
    assert seen == ["before", "inner", "behind"]


@pytest.mark.parametrize("is_busy", [False, True], ids=["at the call", "queued"])
@pytest.mark.parametrize(("name", "parameters", "kind"), [("take", {"mode": "raise"}, MXNetError),
                                                          ("gather_nd", {}, IndexError)])
def test_an_error_comes_at_the_wait_wherever_the_work_ran(is_busy: bool, name: str, parameters: dict, kind: type):
    a, index, gate = mx.nd.ones((2, 2)), mx.nd.array([[5]]), threading.Event()
    if is_busy:
        engine.push(gate.wait, [], [index._array.variable], "slow", small=False)
    taken = getattr(mx.nd, name)(a, index, **parameters)
    after, other = taken + 1, a + 1
    gate.set()
    assert other.asnumpy().tolist() == [[2, 2]] * 2
    for wait in (mx.nd.waitall, taken.asnumpy, taken.wait_to_read, after.asnumpy):
        with pytest.raises(kind, match=f"operation {name}: .*expected indices from") as raised:
            wait()
        assert isinstance(raised.value, MXNetError)
    mx.nd.waitall()
    taken[:] = 3
    assert (taken.asnumpy() == 3).all()


def test_without_a_queue_an_error_comes_at_the_call():
    engine._engine.naive, variable = True, engine.Variable()
    try:
        for small in (False, True):
            with pytest.raises(ZeroDivisionError):
                engine.push(lambda: 1 / 0, [], [variable], "divide", small)
            with pytest.raises(IndexError):
                engine.fail("index", IndexError("of nothing"), [variable])
    finally:
        engine._engine.naive = False
    engine.waitall()
    engine.wait_to_read(variable)


def test_an_assignment_to_a_busy_array_returns_at_once():
    gate, a, values = threading.Event(), mx.nd.ones((2, 2)), np.full((2, 2), 3.0)
    engine.push(gate.wait, [], [a._array.variable], "slow", small=False)
    a[:] = values
    values[:] = 4
    gate.set()
    assert a.asnumpy().tolist() == [[3, 3]] * 2


def test_copies_of_a_busy_array_return_at_once():
    gate, a = threading.Event(), mx.nd.array([1.5, 2.5])
    engine.push(gate.wait, [], [a._array.variable], "slow", small=False)
    copies = [a.copy(), a.astype("int32"), a.copyto(mx.nd.zeros((2,)))]
    assert a.dtype == np.float32
    a += 1
    gate.set()
    assert [c.asnumpy().tolist() for c in copies] == [[1.5, 2.5], [1, 2], [1.5, 2.5]]


def test_a_source_may_change_after_it_was_copied():
    a, b = mx.nd.ones((1 << 20,)), mx.nd.zeros((1 << 20,))
    for i in range(5):
        c = a + 1
        a.copyto(b)
        a += 1
        assert float(b[-1].asscalar()) == i + 1 and float(c[0].asscalar()) == i + 2


@pytest.mark.parametrize("shape", [(2, 2), (300, 1000)])
def test_large_and_small_arrays_give_the_same(shape):
    values = np.random.default_rng(0).uniform(0.5, 2, shape).astype("float32")
    a = mx.nd.array(values)
    np.testing.assert_allclose((mx.nd.exp(a) * 2 - a / 3).asnumpy(), np.exp(values) * 2 - values / 3, rtol=1e-5)
    np.testing.assert_allclose(mx.nd.sum(a, axis=1).asnumpy(), values.sum(1), rtol=1e-5)
    np.testing.assert_allclose(mx.nd.dot(a, a, transpose_b=True).asnumpy(), values @ values.T, rtol=1e-4)
    a[:] = a.T.reshape(shape)
    np.testing.assert_array_equal(a.asnumpy(), values.T.reshape(shape))


def test_an_output_that_is_an_input():
    values = np.random.default_rng(0).uniform(0.5, 2, (300, 300)).astype("float32")
    a = mx.nd.array(values)
    mx.nd.transpose(a, out=a)
    np.testing.assert_array_equal(a.asnumpy(), values.T)
    a *= 2
    np.testing.assert_array_equal(a.asnumpy(), values.T * 2)


def test_create_compute_free_keeps_memory():
    def rounds(count: int) -> int:
        for _ in range(count):
            a = mx.nd.ones((64, 64))
            (a * 2 + a).wait_to_read()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    rounds(500)
    before = rounds(500)
    assert rounds(10_000) <= before * 1.01


def test_many_threads_compute():
    results = {}

    def compute(seed: int) -> None:
        a = mx.nd.full((100_000,), seed)
        for _ in range(20):
            a = a + 1
        results[seed] = float(a.asnumpy().mean())

    threads = [threading.Thread(target=compute, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {i: i + 20 for i in range(6)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_computes():
    a = mx.nd.ones((1 << 19,))
    b = a + 1  # may be pending
    child = os.fork()
    if not child:
        good = float((b * 2).asnumpy().sum()) == 4 * (1 << 19)
        os._exit(0 if good else 1)
    end = time.monotonic() + 60
    while (state := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.05)
    assert state[0] == child and os.waitstatus_to_exitcode(state[1]) == 0
    assert float((b + 1).asnumpy()[0]) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_loads_code_while_another_thread_was_in_llvm():
    from llvmlite.binding import ffi

    is_taken, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with ffi.lib._lock:
            is_taken.set()
            go_on.wait(0.2)

    thread = threading.Thread(target=work)
    thread.start()
    is_taken.wait()
    child = os.fork()
    if not child:
        os._exit(0 if ffi.lib._lock._lock.acquire(timeout=5) else 1)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _run(script: str, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True,
                          text=True, timeout=60)


def test_naive_engine_queues_nothing():
    script = ("import mxc as mx\nfrom mxc.runtime import engine\na = mx.nd.ones((1 << 19,)) + 1\n"
              "assert a._array.variable.busy is None and not engine._engine.workers\nassert a[0].asscalar() == 2")
    done = _run(script, MXNET_ENGINE_TYPE="NaiveEngine")
    assert done.returncode == 0, done.stderr


def test_e06_scripts_that_end_at_once():
    """An end that hangs is what `_run` gives up on."""
    bodies = ["a + 1", "b = a * a; b = b + a", "mx.nd.exp(a).copyto(a)", "a[:] = 3", "raise SystemExit(0)"]
    for number in range(8):
        script = f"import mxc as mx\na = mx.nd.ones(({1 << (number % 4) * 7},))\n{bodies[number % 5]}"
        done = _run(script)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_queued_at_the_end_is_done():
    """The first piece goes on only when the interpreter ends."""
    script = ("import atexit, threading\nfrom mxc.runtime import engine\n"
              "gate, v = threading.Event(), engine.Variable()\n"
              "for i in range(3):\n"
              "    engine.push(lambda i=i: (gate.wait(), print(i)), [], [v], 'slow', small=False)\n"
              "engine.push(lambda: 1 / 0, [], [v], 'fail', small=False)\natexit.register(gate.set)")
    done = _run(script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n1\n2\n", "")


def test_operators_in_the_middle_of_an_operator():
    """As a finalizer may use them, which runs whenever memory is collected; without NumPy's warnings, and with the
    operators' own errors."""
    a, seen = mx.nd.array([-1.0]), []

    class Last:
        def __del__(self):
            seen.append(mx.nd.log(a).asnumpy()[0])
            big = mx.nd.full((300, 300), -1)
            seen.append(mx.nd.log(big).asnumpy()[0, 0])

    held = [Last()]
    quiet.run(held.clear)
    assert np.isnan(seen).tolist() == [True, True]

    def fail() -> None:
        raise RuntimeError("its own")

    for call in (quiet.run, lambda f: quiet.run(quiet.run, f)):
        with pytest.raises(RuntimeError, match="its own"):
            call(fail)


def test_work_that_ends_its_thread_loses_nothing_else(monkeypatch):
    monkeypatch.setattr(engine, "_engine", Queue(engine._serve))
    variables = [engine.Variable() for _ in range(4)]
    for variable in variables:
        engine.push(lambda: sys.exit(3), [], [variable], "exit", small=False)
    meet = threading.Barrier(engine_queue.WORKERS, timeout=10)  # all workers, without the caller
    done = threading.Event()
    for _ in range(engine_queue.WORKERS):
        engine.push(lambda: (meet.wait(), done.set()), [], [engine.Variable()], "meet", small=False)
    assert done.wait(10)
    for variable in variables:
        with pytest.raises(MXNetError, match="operation exit"):
            engine.wait_to_read(variable)
    engine._close()


@pytest.mark.parametrize(("error", "text"), [
    (AssertionError(), "operation fail: AssertionError"),
    (KeyboardInterrupt(), "operation fail: it was interrupted by KeyboardInterrupt")])
def test_an_error_without_a_message_is_told_by_its_name(error, text):
    variable = engine.Variable()

    def fail() -> None:
        raise error

    engine.push(fail, [], [variable], "fail", small=False)
    while True:
        try:
            engine.wait_to_read(variable)
        except KeyboardInterrupt:  # it reached this thread, which waited and so worked
            continue
        except MXNetError as told:
            assert str(told) == text
            break


@pytest.mark.parametrize("step", ["enter", "_run_placed", "_run_here", "finish", "failure_of"])
@pytest.mark.parametrize("event", ["call", "return"])
@pytest.mark.parametrize("has_reader", [False, True], ids=["free", "behind other work"])
def test_an_interrupt_between_the_engines_own_steps_loses_no_work(step: str, event: str, has_reader: bool):
    ran: list[bool] = []
    read, written = engine.Variable(), engine.Variable()
    if has_reader:  # the caller's piece waits for it
        runs = threading.Event()
        engine.push(lambda: (runs.set(), time.sleep(0.05)), (), (read,), "before", small=False)
        assert runs.wait(10)  # in a worker
    with interrupted_at(step, event):
        engine.is_inside()
        engine.complete((engine.place(lambda: None, (read,), (written,), "caller's", False, brief=True,
                                      is_queued=False),))
    check_nothing_is_lost(10)
    engine.push(lambda: ran.append(True), (read,), (written,), "after", small=False)
    engine.wait_to_read(written)
    assert ran


def test_an_error_that_comes_again_says_what_to_do() -> None:
    def fails() -> None:
        raise ValueError("no")

    variable, follows = engine.Variable(), engine.Variable()
    engine.push(fails, [], [variable], "first")
    engine.push(lambda: None, [variable], [follows], "second")
    with pytest.raises(MXNetError, match=r"operation first: no$"):
        engine.wait_to_read(variable)
    for one in (variable, follows):
        with pytest.raises(MXNetError, match=r"operation first: no; this error of an earlier operation.*set_params"):
            engine.wait_to_read(one)
    engine.push(lambda: None, [], [variable], "third")
    engine.wait_to_read(variable)  # it was written again
