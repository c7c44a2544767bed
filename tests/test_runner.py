"""The runner: every unit exactly once, in order of steps, on any number of threads."""
from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time

import llvmlite.binding as llvm
import networks
import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import SettingError
from mxc.compiler.system import env
from mxc.compiler.targets.cpu import runner_ir
from mxc.runtime import runner
from mxc.runtime.portable_runner import Portable
from mxc.runtime.step_table import TAKES, Advance, Branch, Reset, StepTable

# count: adds 1 to counts[unit] of each of its units; log: appends its step's number; scratch: notes its scratch address
KERNELS = """
define void @count(ptr %args, i64 %first, i64 %last, ptr %scratch) {
entry:
  %counts = load ptr, ptr %args
  %some = icmp slt i64 %first, %last
  br i1 %some, label %loop, label %out
loop:
  %u = phi i64 [%first, %entry], [%u1, %loop]
  %p = getelementptr i64, ptr %counts, i64 %u
  %old = atomicrmw add ptr %p, i64 1 monotonic
  %u1 = add i64 %u, 1
  %more = icmp slt i64 %u1, %last
  br i1 %more, label %loop, label %out
out:
  ret void
}
define void @relay(ptr %args, i64 %first, i64 %last, ptr %scratch) {
  %fromp = getelementptr ptr, ptr %args, i64 1
  %sizep = getelementptr i64, ptr %args, i64 2
  %to = load ptr, ptr %args
  %from = load ptr, ptr %fromp
  %size = load i64, ptr %sizep
  %last0 = sub i64 %size, 1
  %mirror = sub i64 %last0, %first
  %fp = getelementptr i64, ptr %from, i64 %mirror
  %x = load i64, ptr %fp
  %y = add i64 %x, %first
  %tp = getelementptr i64, ptr %to, i64 %first
  store i64 %y, ptr %tp
  ret void
}
define void @place(ptr %args, i64 %first, i64 %last, ptr %scratch) {
  %places = load ptr, ptr %args
  %p = getelementptr ptr, ptr %places, i64 %first
  store ptr %scratch, ptr %p
  store i64 %first, ptr %scratch
  ret void
}
"""


@pytest.fixture(scope="module")
def kernels():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(KERNELS), machine)
    engine.finalize_object()
    yield engine.get_function_address


def make(kind: str, threads: int):
    return runner._Native(threads) if kind == "native" else Portable(threads)


@pytest.fixture(params=[("native", 1), ("native", 2), ("native", 5), ("portable", 1), ("portable", 3)], ids=str)
def pool(request):
    made = make(*request.param)
    yield made
    made.close()


def test_every_unit_once(pool, kernels):
    sizes = [1, 2, 3, 0, 7, 1000, 5000, 1, 64]
    counts = [np.zeros(max(1, n), np.int64) for n in sizes]
    table = StepTable([(kernels("count"), [c.ctypes.data], n) for c, n in zip(counts, sizes, strict=True)])
    rounds = 50
    for _ in range(rounds):
        pool.run(table)
    for c, n in zip(counts, sizes, strict=True):
        assert (c[:n] == rounds).all() and (c[n:] == 0).all()


def test_turns_repeat_rows_with_addresses_that_move_on(pool, kernels):
    count, units, flag = kernels("count"), 700, np.ones(1, np.int32)
    rows, inner, number = np.zeros((6, units), np.int64), np.zeros((4, units), np.int64), np.zeros(1, np.int64)
    step = units * 8
    table = StepTable([
        (0, Branch(flag.ctypes.data, 6), 1),
        (count, [rows.ctypes.data + 5 * step], units),  # backwards
        (count, [inner.ctypes.data], units),
        (0, Advance(2, 4, [(2, 0, step)]), 1),
        (0, Reset(3), 1),
        (0, Advance(0, 6, [(1, 0, -step)], [(number.ctypes.data, 3)]), 1),
        (0, Reset(5), 1),
        (count, [inner.ctypes.data], 1)])
    words = table.words.tolist()
    for runs in (1, 2, 3):
        pool.run(table)
        assert (rows == runs).all() and (inner[1:] == 6 * runs).all() and inner[0, 0] == 7 * runs
        assert number[0] == 0 and table.words.tolist() == words  # all is as before the run
    flag[:] = 0
    pool.run(table)
    assert (rows == 3).all() and inner[0, 0] == 22 and table.words.tolist() == words


def test_steps_see_what_earlier_steps_wrote(pool, kernels):
    size, steps = 96, 200
    rows = np.zeros((steps + 1, size), np.int64)
    where = [rows.ctypes.data + i * size * 8 for i in range(steps + 1)]
    # one unit a take: `relay` looks at its first unit only
    assert size <= TAKES
    table = StepTable([(kernels("relay"), [where[i + 1], where[i], size], size) for i in range(steps)])
    if isinstance(pool, Portable) or pool.threads == 1:
        pytest.skip("hands out several units at once")
    expected = np.zeros(size, np.int64)
    for _ in range(steps):
        expected = expected[::-1] + np.arange(size)
    for _ in range(20):
        rows[:] = 0
        pool.run(table)
        np.testing.assert_array_equal(rows[-1], expected)


@pytest.mark.parametrize("is_lent", [False, True])
def test_each_thread_has_its_own_scratch(pool, kernels, is_lent):
    units, stride = 40, 128
    memory = np.zeros(8 * stride, np.uint8)
    places = np.zeros(units, np.int64)
    table = StepTable([(kernels("place"), [places.ctypes.data], units)], 0 if is_lent else memory.ctypes.data, stride)
    if is_lent:
        table.lend(memory.ctypes.data)
    pool.run(table)
    used = set(places[places != 0].tolist())
    assert used <= {memory.ctypes.data + i * stride for i in range(pool.threads)}


def test_several_python_threads(kernels):
    pool = make("native", 3)
    counts = np.zeros((4, 300), np.int64)
    tables = [StepTable([(kernels("count"), [row.ctypes.data], 300)] * 20) for row in counts]
    threads = [threading.Thread(target=lambda t=t: [pool.run(t) for _ in range(50)]) for t in tables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    assert (counts == 1000).all()


def test_idle_workers_sleep(kernels):
    pool = make("native", 3)
    counts = np.zeros(8, np.int64)
    table = StepTable([(kernels("count"), [counts.ctypes.data], 8)])
    pool.run(table)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.03
    pool.run(table)  # they wake up again
    pool.close()
    assert (counts == 2).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork(kernels):
    script = f"""
import os, sys, numpy as np
sys.path.insert(0, {os.path.dirname(__file__)!r})
import test_runner as t
from mxc.runtime import runner
from mxc.runtime.step_table import StepTable
import llvmlite.binding as llvm
llvm.initialize_native_target(); llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine()
engine = llvm.create_mcjit_compiler(llvm.parse_assembly(t.KERNELS), machine)
engine.finalize_object()
counts = np.zeros(100, np.int64)
table = StepTable([(engine.get_function_address("count"), [counts.ctypes.data], 100)])
runner.run(table)
child = os.fork()
runner.run(table)
assert (counts == 2).all()
if child == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    environment = {**os.environ, "MXC_NUM_THREADS": "3"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, env=environment, timeout=60)


BUSY = """
import os, sys, threading, time
import numpy as np, mxc as mx
from mxc.runtime import runner
data, fc = mx.sym.Variable("x"), mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=64, name="fc")

def bound():
    executor = mx.sym.softmax(fc).simple_bind(mx.cpu(), grad_req="null", x=(4000, 64))
    for array in executor.arg_arrays:
        array[:] = 0.5
    return executor

def run(began):
    executor = bound()
    while True:
        assert (executor.forward()[0].asnumpy() == 1 / 64).all()
        began.set()

began = [threading.Event() for _ in range(3)]
for event in began:
    threading.Thread(target=run, args=(event,), daemon=True).start()
for event in began:
    event.wait()
"""


def _script(text: str) -> None:
    environment = {**os.environ, "MXC_NUM_THREADS": "3"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], env=environment, capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_process_ends_while_threads_run_plans():
    _script(BUSY)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_while_threads_run_plans():
    """A child computes with workers of its own, and so may its child."""
    _script(BUSY + """
def grown(depth):
    child = os.fork()
    if not child:
        good = (bound().forward()[0].asnumpy() == 1 / 64).all() and runner.num_threads() == 3
        os._exit(0 if good and (not depth or grown(depth - 1)) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

assert all(grown(i % 2) for i in range(6))
assert (bound().forward()[0].asnumpy() == 1 / 64).all()
""")


def _mixed() -> tuple[mx.sym.Symbol, tuple[int, ...]]:
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=24, pad=(1, 1), name="conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="norm"), act_type="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max")
    net = mx.sym.FullyConnected(net, num_hidden=70, name="fc")
    return mx.sym.SoftmaxOutput(mx.sym.LayerNorm(net, name="ln"), name="softmax"), (5, 3, 30, 30)


@pytest.mark.parametrize("kind", ["mixed", *networks.LAYERS])
def test_results_do_not_depend_on_the_number_of_threads(kind, monkeypatch):
    """Bit for bit, forward and backward, of every kind of layer and what is fused with it."""
    net, shape = _mixed() if kind == "mixed" else networks.layer(kind)
    net = mx.sym.MakeLoss(net) if kind != "mixed" else net

    def results(threads: int) -> list[np.ndarray]:
        pool = runner._Native(threads)
        monkeypatch.setattr(runner, "_current", pool)
        rng, found = np.random.default_rng(0), []
        executor = net.simple_bind(mx.cpu(), data=shape)
        for array in (*executor.arg_arrays, *executor.aux_arrays):
            array[:] = rng.uniform(0.1, 1, array.shape)
        for is_train in (True, False):
            found += [a.asnumpy() for a in executor.forward(is_train=is_train)]
            executor.backward(is_train=is_train)
            found += [a.asnumpy() for a in (*executor.grad_arrays, *executor.aux_arrays)]
        pool.close()
        return found

    expected = results(1)
    for threads in (2, 3, 7):
        for number, (a, b) in enumerate(zip(results(threads), expected, strict=True)):
            np.testing.assert_array_equal(a, b, err_msg=f"{threads} threads, result {number}")


def test_the_number_of_threads(monkeypatch, tmp_path):
    def number(**variables: str) -> int:
        for name in ("MXC_NUM_THREADS", "OMP_NUM_THREADS"):
            monkeypatch.delenv(name, raising=False)
        for name, text in variables.items():
            monkeypatch.setenv(name, text)
        return env.num_threads()

    assert number(MXC_NUM_THREADS="3", OMP_NUM_THREADS="5") == 3
    assert number(OMP_NUM_THREADS="5,2") == 5 and number(MXC_NUM_THREADS="none", OMP_NUM_THREADS="4") == 4
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5}, raising=False)
    monkeypatch.setattr(env, "_quota", lambda: 256)
    assert number() == 3
    monkeypatch.setattr(env, "_quota", lambda: 2)
    assert number() == 2


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are not bound to CPUs here")
@pytest.mark.parametrize(("cpus", "variables", "expected"), [
    (1, {}, 1), (1, {"OMP_NUM_THREADS": "2"}, 2), (9, {"OMP_NUM_THREADS": "1"}, 1), (1, {"MXC_NUM_THREADS": "3"}, 3)])
def test_threads_of_a_process(cpus: int, variables: dict[str, str], expected: int):
    """As many as its CPUs or the variables say, none of which does anything when a model has run."""
    program = """
import os, time
import mxc as mx
from mxc.runtime import runner
net = mx.sym.softmax(mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=64, name="fc"))
executor = net.simple_bind(mx.cpu(), grad_req="null", x=(4000, 64))
for _ in range(3):
    executor.forward()[0].wait_to_read()
time.sleep(0.05)
before = time.process_time()
time.sleep(0.3)
named = sum(thread.name.startswith("mxc-") for thread in __import__("threading").enumerate())
print(runner.num_threads(), named, time.process_time() - before < 0.03)"""
    chosen = sorted(os.sched_getaffinity(0))[:cpus]
    kept = {name: text for name, text in os.environ.items() if name not in ("OMP_NUM_THREADS", "MXC_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", program], env=kept | variables, capture_output=True, text=True,
                          timeout=120, preexec_fn=lambda: os.sched_setaffinity(0, chosen))
    assert done.stdout.split() == [str(expected), str(expected - 1), "True"], done.stderr


@pytest.mark.parametrize(("outer", "inner", "expected"), [
    ("max 100000", "150000 100000", 2), ("100000 100000", "400000 100000", 1), ("max 100000", "1000 100000", 1),
    ("max 100000", "nonsense", env.MOST_THREADS)])
def test_a_quota_of_the_control_group_or_of_one_above(tmp_path, outer, inner, expected):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "cpu.max").write_text(outer + "\n")
    (tmp_path / "a" / "b" / "cpu.max").write_text(inner + "\n")
    (tmp_path / "cgroup").write_text("1:name=other:/x\n0::/a/b\n")
    assert env._quota(str(tmp_path), str(tmp_path / "cgroup")) == expected
    assert env._quota(str(tmp_path), str(tmp_path / "missing")) == env.MOST_THREADS


@pytest.mark.parametrize("machine", sorted(runner_ir.machines()))
def test_source_of_every_machine_parses(machine):
    llvm.parse_assembly(runner_ir.runner_source(machine)).verify()


def test_a_runner_that_there_is_not(monkeypatch):
    monkeypatch.setattr(runner, "_current", None)
    monkeypatch.setenv("MXC_RUNNER", "portabel")
    with pytest.raises(SettingError, match=r"no runner 'portabel'; expected .*; did you mean 'portable'"):
        runner.num_threads()


def test_fields_are_where_python_sets_them():
    """The byte offsets in runner_ir, against LLVM's layout of the structure."""
    text = runner_ir.runner_source("x86_64")
    probes = {15: runner_ir.QUIT, 10: runner_ir.WORD, 17: runner_ir.SYSCALL, 18: runner_ir.FUTEX, 19: runner_ir.YIELD,
              20: runner_ir.SPINS}
    for field in probes:
        text += f"""define i64 @offset{field}() {{
  %p = getelementptr %pool, ptr null, i64 0, i32 {field}
  %i = ptrtoint ptr %p to i64
  ret i64 %i
}}
"""
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text.replace("@mxc_", "@probe_")), machine)
    engine.finalize_object()
    for field, offset in probes.items():
        assert ctypes.CFUNCTYPE(ctypes.c_int64)(engine.get_function_address(f"offset{field}"))() == offset
