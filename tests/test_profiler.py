"""mx.profiler: a valid Chrome trace of what ran, the table, and nothing while it does not run."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxc as mx
from mxc import nd, profiler, sym
from mxc.runtime import engine, runner


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[Path]:
    """The file of a profiler that is set to record everything; afterwards it is as at the start."""
    path = tmp_path / "trace.json"
    profiler.set_config(profile_all=True, aggregate_stats=True, filename=str(path))
    yield path
    profiler.dump()
    profiler.dumps(reset=True)
    profiler.set_config(filename=str(tmp_path / "unused"))


def events(path: Path, *categories: str) -> list[dict[str, Any]]:
    """A trace's events, of some categories; all are checked to be what a viewer takes."""
    content = json.loads(path.read_text())
    assert content["displayTimeUnit"] == "ms"
    for event in content["traceEvents"]:
        assert {"name", "ph", "pid", "tid"} <= event.keys() and event["ph"] in "MXCi"
        if event["ph"] != "M":
            assert event["ts"] > 0 and event["cat"]
        if event["ph"] == "X":
            assert event["dur"] >= 0
    return [e for e in content["traceEvents"] if not categories or e.get("cat") in categories]


def network() -> Any:
    net = sym.sum(sym.FullyConnected(sym.Variable("x"), num_hidden=3, name="fc"))
    return net.simple_bind(mx.cpu(), x=(4, 5))


def test_eager_calls_and_kernels_are_in_the_trace(trace: Path):
    executor = network()
    profiler.set_state("run")
    a = nd.ones((30, 30))
    product = nd.dot(a, a)
    executor.forward(is_train=True)
    executor.backward([nd.ones((1,))])
    executor.outputs[0].asnumpy()
    profiler.set_state("stop")
    nd.exp(product).asnumpy()  # not recorded any more
    profiler.dump()
    names = [e["name"] for e in events(trace, "operator")]
    assert {"_ones", "dot", "forward", "backward"} <= set(names) and "exp" not in names
    assert [e["args"]["nodes"] for e in events(trace, "compile")] == [2]
    kernels = events(trace, "kernel")
    assert {"forward", "backward"} <= {k["args"]["phase"] for k in kernels}
    (product_kernel,) = [k for k in kernels if k["args"]["phase"] == "forward" and k["args"].get("flops")]
    assert product_kernel["args"]["flops"] == 2 * 4 * 5 * 3 and "FullyConnected" in product_kernel["name"]
    assert all(k["args"]["bytes"] > 0 for k in kernels)
    # a kernel's span is within that of the run it belongs to
    (run,) = [e for e in events(trace, "operator") if e["name"] == "forward"]
    assert run["ts"] <= product_kernel["ts"] <= run["ts"] + run["dur"] and run["tid"] == product_kernel["tid"]
    assert any(e["args"]["Memory: cpu"] >= 30 * 30 * 4 for e in events(trace, "Device Storage"))
    named = {e["tid"] for e in events(trace) if e["name"] == "thread_name"}
    assert {e["tid"] for e in events(trace, "operator", "kernel")} <= named


def test_the_table(trace: Path):
    profiler.set_state("run")
    for _ in range(3):
        nd.ones((2,)).asnumpy()
    profiler.set_state("stop")
    table = profiler.dumps()
    assert "Profile Statistics:" in table and "Total (ms)" in table
    (line,) = [line for line in table.splitlines() if line.startswith("_ones ")]
    count, total, least, most, average = line.split()[1:]
    assert count == "3" and float(total) >= float(most) >= float(average) >= float(least) > 0
    found = json.loads(profiler.dumps(format="json", sort_by="count", ascending=True))
    assert found["Time"]["operator"]["_ones"]["Count"] == 3 and "Memory: cpu" in found["Memory"]["Device Storage"]
    counts = [entry["Count"] for entry in found["Time"]["operator"].values()]
    assert counts == sorted(counts)
    assert profiler.dumps(reset=True) == table and "_ones" not in profiler.dumps()
    for wrong in ({"format": "x"}, {"sort_by": "x"}, {"ascending": 3}):
        with pytest.raises(AssertionError, match="Support"):
            profiler.dumps(**wrong)


def test_a_programs_own_events(trace: Path):
    profiler.set_state("run")
    domain = profiler.Domain("mine")
    spans = [domain.new_task("task"), domain.new_frame("frame"), profiler.Event("event")]
    for span in spans:
        span.start()
        span.stop()
        span.stop()  # nothing has begun
    counter = domain.new_counter("counter", 5)
    counter += 2
    counter -= 1
    counter.increment(4)
    counter.decrement()
    domain.new_marker("marker").mark("thread")
    profiler.dump()
    assert [(e["cat"], e["name"]) for e in events(trace) if e["ph"] == "X"] == [
        ("mine", "task"), ("mine,frame", "frame"), ("event", "event")]
    assert [e["args"]["counter"] for e in events(trace, "mine,counter")] == [5, 7, 6, 10, 9]
    assert [(e["ph"], e["s"]) for e in events(trace, "mine,instant_marker")] == [("i", "t")]
    assert [str(s) for s in (domain, counter, *spans)] == ["mine", "counter", "task", "frame", "event"]
    counter.set_value(mx.nd.array([2.5]))
    assert counter.value == 2
    for wrong in ("x", None, float("nan"), float("inf")):  # nothing that a trace, which is JSON, cannot hold
        with pytest.raises(mx.MXNetError, match="counter counter: expected a whole number"):
            counter.set_value(wrong)
    with pytest.raises(mx.MXNetError, match="valid values are"):
        domain.new_marker("marker").mark("foo")
    with pytest.raises(mx.MXNetError, match="Domain"):
        profiler.Task("mine", "task")


def test_pausing(trace: Path):
    profiler.set_state("run")
    event = profiler.Event("event")
    for _ in range(2):
        profiler.pause()
        event.start()
        nd.ones((2,)).asnumpy()
        event.stop()
        profiler.resume()
    nd.zeros((2,)).asnumpy()
    profiler.dump()
    assert [e["name"] for e in events(trace, "operator", "event")] == ["_zeros"]


def test_the_file_grows_and_begins_anew(trace: Path):
    profiler.set_state("run")
    assert events(trace)  # is there, and whole, from the start
    nd.ones((2,)).asnumpy()
    profiler.dump(finished=False)
    first = events(trace)
    nd.zeros((2,)).asnumpy()
    profiler.dump()
    assert events(trace)[:len(first)] == first and len(events(trace)) > len(first)
    nd.exp(nd.ones((2,))).asnumpy()  # `dump` has stopped it
    profiler.set_state("run")
    nd.zeros((2,)).asnumpy()
    profiler.dump()
    assert [e["name"] for e in events(trace, "operator")] == ["_zeros"]


def test_periodic_writing(trace: Path):
    profiler.set_config(profile_all=True, filename=str(trace), dump_period=1e-6)
    profiler.set_state("run")
    nd.ones((2,)).asnumpy()
    nd.zeros((2,)).asnumpy()
    engine.waitall()
    assert "_ones" in [e["name"] for e in events(trace, "operator")]


def test_what_is_recorded_can_be_chosen(trace: Path):
    executor = network()
    executor.forward()
    for wanted, category in (("symbolic", "kernel"), ("imperative", "operator"), ("memory", "Device Storage")):
        kinds = {f"profile_{kind}": kind == wanted for kind in ("symbolic", "imperative", "memory")}
        profiler.set_config(filename=str(trace), **kinds)
        profiler.set_state("run")
        kept = nd.ones((1 << 10,))
        executor.forward()[0].asnumpy()
        profiler.dump()
        assert {e["cat"] for e in events(trace) if "cat" in e} == {category} and kept.size


def test_work_of_several_threads(trace: Path):
    profiler.set_state("run")
    threads = [threading.Thread(target=lambda: nd.ones((3,)).asnumpy(), name=f"worker {i}") for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    profiler.dump()
    assert [e["name"] for e in events(trace, "operator")].count("_ones") == 4


def test_results_are_the_same_while_profiling(trace: Path):
    executor = network()
    executor.arg_dict["fc_weight"][:] = np.arange(15).reshape(3, 5)
    executor.arg_dict["x"][:] = 1
    before = executor.forward()[0].asnumpy()
    profiler.set_state("run")
    during = executor.forward()[0].asnumpy()
    profiler.set_state("stop")
    assert before == during == executor.forward()[0].asnumpy() == 4 * np.arange(15).sum()


def test_a_profiler_that_does_not_run_watches_nothing(trace: Path):
    assert engine.observer is None and runner.observer is None
    profiler.set_state("run")
    assert engine.observer is not None and runner.observer is not None
    profiler.dump()
    assert engine.observer is None and runner.observer is None


FORKED = """
import os, sys
import mxc as mx
mx.profiler.set_config(profile_all=True, filename=sys.argv[1])
mx.profiler.set_state("run")
mx.nd.ones((2,)).asnumpy()
child = os.fork()
if child == 0:
    mx.nd.zeros((2,)).asnumpy()
    os._exit(mx.runtime.profiler.is_active())
assert os.waitpid(child, 0)[1] == 0
mx.profiler.dump()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_record(tmp_path: Path):
    path = tmp_path / "trace.json"
    done = subprocess.run([sys.executable, "-c", FORKED, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [e["name"] for e in events(path, "operator") if e["name"] != "copy"] == ["_ones"]


def test_settings_that_mean_nothing(trace: Path, tmp_path: Path):
    for wrong, reason in (({"foo": 1}, "no setting 'foo'"), ({"profile_all": "maybe"}, "profile_all must be a bool"),
                          ({"filename": 3}, "filename"), ({"dump_period": 0}, "positive"),
                          ({"profile_process": "server"}, "worker")):
        with pytest.raises(mx.MXNetError, match=reason):
            profiler.set_config(**wrong)
    with pytest.raises(mx.MXNetError, match="state"):
        profiler.set_state("x")
    profiler.set_config(filename=str(tmp_path / "none" / "trace.json"))
    with pytest.raises(mx.MXNetError, match="cannot be written"):
        profiler.set_state("run")
    profiler.set_config(filename=str(trace))
    assert profiler.dumps() == ""


def test_older_names(trace: Path):
    with pytest.warns(DeprecationWarning):
        profiler.profiler_set_config("all", str(trace))
    with pytest.warns(DeprecationWarning):
        profiler.profiler_set_state("run")
    nd.ones((2,)).asnumpy()
    with pytest.warns(DeprecationWarning):
        profiler.dump_profile()
    assert "_ones" in [e["name"] for e in events(trace, "operator")]
