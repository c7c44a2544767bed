"""`mxc profile`: the table, the trace, and what they are made of."""
from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli.main import BAD_FILE, OK, main
from mxc.cli.profile import Call, layers_of, named, nearest_limit, table
from mxc.compiler.plan import Buffer, Step
from mxc.runtime import machine_peaks, profiler, runner
from mxc.runtime.step_table import StepTable

PROFILE = ["profile", "net-symbol.json", "--shape", "data=4,6"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with a model without parameters."""
    monkeypatch.chdir(tmp_path)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="one")
    net = mx.sym.FullyConnected(mx.sym.tanh(net), num_hidden=6, name="two")
    mx.sym.softmax(mx.sym.tanh(net), name="softmax").save("net-symbol.json")


def test_a_table_and_a_trace():
    done = command(*PROFILE, "--iterations", "3", "--threads", "1", "--trace", "trace.json")
    assert (done.returncode, done.stderr) == (OK, "")
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:4]] == ["model", "machine", "limits", "a run"]
    assert lines[5].split()[:6] == ["kernel", "makes", "calls", "us", "share", "GFLOP/s"]
    rows = [line.split() for line in lines[6:]]
    assert ["fully_connected+broadcast_add+tanh", "4x6", "2"] in [row[:3] for row in rows]
    assert lines[-1] == "trace: trace.json"
    events = json.loads(Path("trace.json").read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert sum("softmax" not in event["name"] for event in kernels) >= 6
    assert all(event["args"]["layers"] for event in kernels)


def test_json(capsys: pytest.CaptureFixture[str]):
    assert main([*PROFILE, "--iterations", "2", "--json"]) == OK
    found = json.loads(capsys.readouterr().out)
    assert found["limits"]["gflops"] > 0 and found["limits"]["gbytes"] > 0 and found["run_us"] > 0
    assert sum(row["share"] for row in found["kernels"]) == pytest.approx(1, abs=0.01)
    product = next(row for row in found["kernels"] if "fully_connected" in row["operators"])
    assert (product["calls"], product["shape"], product["phase"]) == (2, [4, 6], "forward")
    assert product["gflops"] > 0 and not product["host"]
    assert [row["us"] for row in found["kernels"]] == sorted((row["us"] for row in found["kernels"]), reverse=True)
    assert runner.observer is None and not profiler.is_active()


def test_by_layer(capsys: pytest.CaptureFixture[str]):
    assert main([*PROFILE, "--iterations", "2", "--by", "layer"]) == OK
    head, *rows = (re.split("  +", line) for line in capsys.readouterr().out.splitlines()[5:])
    assert head[0] == "layer" and head[-1] == "kernel" and "calls" not in head
    assert {re.sub("tanh[0-9]+", "tanh", row[0]): row[-1] for row in rows if len(row) > 2 and row[0] != "softmax"} == {
        f"{name} + tanh": "fully_connected+broadcast_add+tanh" for name in ("one", "two")}
    assert "softmax" in [row[0] for row in rows]


def test_no_place_for_a_trace(capsys: pytest.CaptureFixture[str]):
    assert main([*PROFILE, "--trace", "nosuch/trace.json"]) == BAD_FILE
    assert "nosuch/trace.json: cannot be written" in capsys.readouterr().err


def test_rows():
    buffers = [Buffer("arena", "float32", (2, 3), 24)]
    steps = [Step("forward", "k", (0,), (), 1, (), (0,), label, host, flops)
             for label, host, flops in (("exp", None, 0), ("dot", None, 1000), ("exp", None, 0), ("custom", 7, 0))]
    calls = [Call(step, [f"layer{i}"], 4000, 1000 * (i + 1)) for i, step in enumerate(steps)]
    rows = table(calls, buffers)
    assert [(row.operators, row.calls, row.us, row.host) for row in rows] == [
        ("exp", 2, 4.0, False), ("custom", 1, 4.0, True), ("dot", 1, 2.0, False)]
    assert (rows[0].gbytes, rows[2].gflops, rows[2].shape) == (2.0, 0.5, (2, 3))
    assert rows[0].layers == [["layer0"], ["layer2"]]
    assert [(row.us, row.layers) for row in table(calls, buffers, by_layer=True)] == [
        (4.0, [["layer3"]]), (3.0, [["layer2"]]), (2.0, [["layer1"]]), (1.0, [["layer0"]])]


def test_words():
    near = [nearest_limit({"of_multiply_adds": a, "of_copying": b})
            for a, b in ((0.5, 0.2), (0.3, 4), (0, 4), (0.1, 0.9))]
    assert near == ["50 % multiply-add", "30 % multiply-add", "in cache", "90 % copy"]
    assert named({"operators": "_mxc_dot+exp", "host": True}) == "dot+exp (Python)"
    many = "+".join(["add"] * 99)
    assert named({"operators": many, "host": False}) == many
    assert layers_of({"layers": [["net_conv1", "net_bn1"], ["net_conv2"]]}) == "net_conv1 + bn1, and 1 more"


def test_limits_are_those_of_real_work():
    """As many multiplications as are counted are done: the sums, fixed points of x -> x / 2 + 1 / 2, are 1."""
    from mxc.compiler.targets.cpu.machine import limits as kernels
    from mxc.compiler.targets.cpu.target import cpu_target
    from mxc.runtime import runner

    isa = cpu_target().isa
    addresses = cpu_target().functions(kernels.source(isa), [kernels.MULTIPLY, kernels.COPY], "limits")
    lanes = isa.lanes("float32")
    values, sums = np.full(2 * lanes, 0.5, np.float32), np.zeros(kernels.CHAINS * lanes, np.float32)
    table = StepTable([(addresses[kernels.MULTIPLY], [values.ctypes.data, 10], 1)], sums.ctypes.data)
    runner.run(table)
    np.testing.assert_array_equal(sums, np.full(sums.shape, 1 - 0.5**10, np.float32))
    source, target = np.arange(8 * lanes, dtype=np.float32), np.zeros(8 * lanes, np.float32)
    copy = [source.ctypes.data, target.ctypes.data, 4 * lanes]
    runner.run(StepTable([(addresses[kernels.COPY], copy, 2)]))
    np.testing.assert_array_equal(source, target)
    assert machine_peaks.COPIED // 4 % (machine_peaks.UNITS * 4 * lanes) == 0
