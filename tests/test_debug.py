"""What MXC_DEBUG prints, level by level, and on standard error only."""
from __future__ import annotations

import re

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.kernel import calls
from mxc.compiler.kernel.geometry import Window

SUMMARY = (r"mxc: 2 nodes -> 2 kernels, 1 to prepare parameters; arena \d+ of \d+ bytes .*; \d+ ms; "
           r"cache \d hits, \d misses")
# The word that a level is the first to print.
PARTS = {3: "-- after decompose", 4: "-- source", 5: "-- assembly"}


def printed(level: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Standard error of one inference of sum(x @ w)."""
    monkeypatch.setenv("MXC_DEBUG", str(level))
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, no_bias=True, name="fc")
    executor = mx.sym.sum(net).simple_bind(mx.cpu(), grad_req="null", data=(2, 4))
    executor.forward()
    executor.outputs[0].asnumpy()
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


@pytest.mark.parametrize("level", range(6))
def test_levels(level: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    lines = printed(level, monkeypatch, capsys)
    summaries = [line for line in lines if re.fullmatch(SUMMARY, line)]
    run = r"mxc: (prepare|forward) \S+ of (fc|sum\d+): \d+ us, [\d.]+ (GB|GFLOP)/s"
    runs = [line for line in lines if re.fullmatch(run, line)]
    assert (len(summaries), len(runs)) == (int(level >= 1), 3 * int(level >= 2)), lines
    assert [line.endswith("GFLOP/s") for line in runs] == [False, True, False][:len(runs)]
    for first, part in PARTS.items():
        assert any(line.startswith(part) for line in lines) == (level >= first), part
    if level < 3:
        assert len(lines) == len(summaries) + len(runs)


def test_flops():
    window = Window(2, 3, 4, 5, (1, 6, 6), (1, 4, 4), (1, 3, 3))
    product = calls.call("", calls.gemm("float32", (2, 3, 4, 5), (15, 5, 1), (20, 4, 1)), ("float32",) * 2, ())
    data, weight = np.empty((2, 12, 6, 6)), np.empty((15, 4, 3, 3))
    made = calls.convolution("float32", window, (432, 36, 36, 6, 1), 8)
    convolution = calls.call("", made, ("float32",) * 2, ())
    assert calls.flops(product) == 2 * 2 * 3 * 4 * 5
    assert calls.flops(convolution) == 2 * len(data) * weight.size * 4 * 4
