"""Callbacks and monitors log the lines that MXNet 1.9.1's log (golden/callbacks.json)."""
from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from golden import callbacks

import mxc as mx
from mxc import compiling
from mxc.compiler.system import progress

REAL = json.loads((Path(__file__).parent / "golden" / "callbacks.json").read_text())
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
ACCIDENTS = {"AssertionError": ("TypeError", "ValueError")}  # errors of MXNet's own code by what mxc raises there


def same(ours, theirs) -> bool:
    """Equal, but for rounding of the numbers in lines, and an error for classes of which mxc's is one."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and any(
            name in ours["error"] for first in theirs["error"] for name in (first, *ACCIDENTS.get(first, ())))
    if isinstance(theirs, str):
        if abs(len(ours) - len(theirs)) > 2 * len(NUMBER.findall(theirs)):  # of a few digits, as float32 is written
            return False
        return isinstance(ours, str) and NUMBER.sub("#", ours) == NUMBER.sub("#", theirs) and all(
            math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-6)
            for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True))
    return ours == theirs


NOT_TOLD = re.compile("_backward_input|sm_backward_output1")  # inputs in backward; the zeros that flow into a label


def wanted(told):
    """What a monitor is told, less what mxc's monitors do not see of a backward run."""
    if not isinstance(told, list):
        return told
    return [wanted(part) for part in told
            if not NOT_TOLD.search(part if isinstance(part, str) else str(part[1:2]) if is_told(part) else "")]


def is_told(part) -> bool:
    """Whether it is the number of a batch, a name and a text."""
    return isinstance(part, list) and len(part) == 3 and isinstance(part[1], str)


def test_every_case_is_recorded():
    assert list(REAL) == callbacks.CASES


@pytest.mark.parametrize("case", REAL)
def test_logs_what_mxnet_logs(case: str):
    ours = json.loads(json.dumps(callbacks.answer(mx, case)))
    real = wanted(REAL[case]) if "monitor" in case else REAL[case]
    assert same(ours, real), f"\n{ours}\n{real}"


@pytest.mark.parametrize("interface", ["module", "feed forward"])
def test_training_that_compiles_for_long_logs_it(interface, monkeypatch, caplog):
    """Each line after some seconds: here after no time at all, of kernels that nobody compiles."""
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc"), name="softmax")
    data = mx.io.NDArrayIter(np.ones((4, 3)), np.ones(4), 4)

    def compile(_=None):
        for done in range(3):
            progress.report(done, 97, "exp")

    def train(every):
        monkeypatch.setattr(compiling, "EVERY", every)
        caplog.clear()
        if interface == "module":
            mx.mod.Module(net).fit(data, num_epoch=1, batch_end_callback=compile)
        else:
            mx.model.FeedForward(net, num_epoch=1).fit(data, batch_end_callback=compile)
        compile()  # nobody listens any more
        return [line for line in (record.getMessage() for record in caplog.records) if "of 97 kernels" in line]

    with caplog.at_level("INFO"):
        assert train(0.0) == [f"Compiling: {n} of 97 kernels done" for n in (1, 2)]
        assert train(1000.0) == []


def network():
    net = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    bound = net.simple_bind(mx.cpu(), x=(3, 4))
    for array in bound.arg_arrays:
        array[:] = 0.25
    return net, bound


def test_checkpoints_are_written_every_so_many_epochs(tmp_path, caplog):
    net, bound = network()
    save = mx.callback.do_checkpoint(f"{tmp_path}/net", period=2)
    with caplog.at_level("INFO"):
        for epoch in range(5):
            save(epoch, net, {"fc_weight": bound.arg_dict["fc_weight"]}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "net-0002.params", "net-0004.params", "net-symbol.json"]
    assert [record.getMessage() for record in caplog.records] == [
        f'Saved checkpoint to "{tmp_path}/net-000{epoch}.params"' for epoch in (2, 4)]
    symbol, arguments, _ = mx.model.load_checkpoint(f"{tmp_path}/net", 4)
    assert symbol.list_arguments() == net.list_arguments()
    assert (arguments["fc_weight"].asnumpy() == 0.25).all()


def test_a_monitor_sees_the_gradients_of_backward_as_they_flow():
    """Names and order are MXNet's (of a run there; those of inputs left out); the values are backward's own, with the
    numbers that forward drew."""
    x = mx.sym.var("x")
    net = mx.sym.BatchNorm(mx.sym.FullyConnected(x, num_hidden=4, name="fc"), fix_gamma=False, name="bn")
    net = mx.sym.Dropout(net, name="drop")
    with mx.name.NameManager():
        net = mx.sym.SoftmaxOutput(net + mx.sym.exp(net * 2, name="e"), name="sm")
    bound = net.simple_bind(mx.cpu(), x=(3, 5), grad_req={"fc_weight": "write", "fc_bias": "write", "bn_gamma": "add"})
    mx.random.seed(3)
    for name, array in bound.arg_dict.items():
        array[:] = mx.nd.random.uniform(shape=array.shape) if name != "sm_label" else 1
    told = {}
    bound.set_monitor_callback(lambda name, array: told.update({name: array.asnumpy()}))
    outputs = bound.forward(is_train=True)
    forward = list(told)
    assert not any("backward" in name for name in forward)
    bound.backward()
    assert list(told)[len(forward):] == [
        "sm_backward_output0", "e_backward_output", "_mulscalar0_backward_output", "sum_grad_output",
        "drop_backward_output", "bn_backward_output0", "bn_backward_output1", "fc_backward_output1",
        "fc_backward_output2"]
    for argument, name in (("fc_weight", "fc_backward_output1"), ("bn_gamma", "bn_backward_output1")):
        gradient = bound.grad_dict[argument].asnumpy()
        np.testing.assert_allclose(told[name], gradient, 1e-3, 1e-3 * abs(gradient).max())
    np.testing.assert_allclose(told["sm_backward_output0"].sum(axis=1), 0, atol=1e-6)
    dropped = told["drop_output"] == 0
    assert dropped.any() and (told["drop_backward_output"][dropped] == 0).all()
    assert outputs[0].shape == (3, 4)
    seen = len(told)
    bound.set_monitor_callback(None)
    bound.backward()
    assert len(told) == seen


def test_batches_that_a_monitor_does_not_look_at_run_without_it():
    _, bound = network()
    monitor = mx.mon.Monitor(3, pattern="fc_output")
    monitor.install(bound)
    seen = []
    for _ in range(5):
        monitor.tic()
        bound.forward()
        seen.append((monitor.activated, bound._core.monitor is not None, len(monitor.toc())))
        assert bound._core.monitor is None
    assert seen == [(True, True, 1), *[(False, False, 0)] * 2, (True, True, 1), (False, False, 0)]


def test_a_monitor_that_is_installed_in_the_middle_of_a_batch_sees_the_rest_of_it():
    _, bound = network()
    monitor = mx.mon.Monitor(1, pattern="fc_output")
    monitor.tic()
    monitor.install(bound)
    bound.forward()
    assert [name for _, name, _ in monitor.toc()] == ["fc_output"]


def test_what_a_monitors_function_gives_wrongly_is_named():
    _, bound = network()
    monitor = mx.mon.Monitor(1, stat_func=lambda array: 3)
    monitor.install(bound)
    monitor.tic()
    bound.forward()
    with pytest.raises(TypeError, match="stat_func must give an NDArray or a list of them, got 3 for fc_output"):
        monitor.toc()
