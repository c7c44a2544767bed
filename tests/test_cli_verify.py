"""`mxc verify`: what is right, what is wrong, and where the fault is."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli.main import FAILED, OK, USAGE, main
from mxc.cli.verify import compare

VERIFY = ["verify", "net-symbol.json", "--shape", "data=2,1,6,6"]
# Of the operator that Activation becomes; Activation's own reference stays right. Such code must not get into a cache.
FAULT = "from mxc.compiler.ops import table\ntable.get('tanh').expr = 'tanh(data) * 1.01'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with a model without parameters."""
    monkeypatch.chdir(tmp_path)
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, name="bn"), act_type="tanh", name="act")
    mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=3, name="fc"), name="softmax").save("net-symbol.json")


def test_a_model_that_is_right():
    done = command(*VERIFY, "--nodes")
    assert (done.returncode, done.stderr) == (OK, "")
    first, head, *rows = done.stdout.splitlines()
    assert first == "parameters are made up" and head.split()[:2] == ["node", "operator"]
    assert [row.split()[0] for row in rows if row.endswith(" ok")] == [
        "conv_output", "bn_output", "act_output", "fc_output", "softmax_output", "softmax_output"]


def test_a_compiler_that_is_wrong():
    done = command(*VERIFY, "--nodes", "--json", program=FAULT, MXC_CACHE_DIR="")
    assert (done.returncode, done.stderr) == (FAILED, "")
    found = json.loads(done.stdout)
    assert not found["right"] and found["first_wrong"] == "act_output"
    assert [each["name"] for each in found["nodes"] if not each["right"]] == ["act_output"]
    (output,) = found["outputs"]
    assert (output["name"], output["right"], output["tolerance"]) == ("softmax_output", False, 1e-4)


def test_a_fault_that_no_node_alone_shows():
    blind = "\nfrom mxc.cli.verify import Reference\nReference.nodes = lambda *_: []"
    done = command(*VERIFY, "--nodes", program=FAULT + blind, MXC_CACHE_DIR="")
    assert (done.returncode, done.stderr) == (FAILED, "")
    assert done.stdout.splitlines()[-1] == "first wrong: act_output (alone, with all that it reads fused)"


def test_the_tolerance(capsys: pytest.CaptureFixture[str]):
    assert main([*VERIFY, "--tolerance", "0.5", "--input", "data=zeros", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["outputs"][0]["tolerance"] == 0.5


def test_random_operators_draw_the_same_numbers(capsys: pytest.CaptureFixture[str]):
    noise = mx.sym.random.uniform(shape=(3, 4), name="noise") + mx.sym.random.normal(shape=(3, 4), name="more")
    mx.sym.broadcast_add(noise, mx.sym.Variable("data")).save("noise-symbol.json")
    assert main(["verify", "noise-symbol.json", "--shape", "data=3,4", "--nodes"]) == OK
    assert "WRONG" not in capsys.readouterr().out


def test_differences():
    a = np.array([1, 2, np.nan, np.inf], np.float32)
    assert compare("a", "", a, a, None).right and compare("a", "", a, a, None).tolerance == 1e-4
    assert compare("a", "", a + np.float32(1e-4), a, None).max_rel == pytest.approx(5e-5, rel=0.1)
    for wrong in (-a, a[::-1], a[:3], np.zeros(4, np.float32)):
        assert not compare("a", "", wrong, a, None).right
    whole = np.array([3, 4])
    assert compare("i", "", whole, whole, None).right and not compare("i", "", np.array([3, 5]), whole, None).right
    assert compare("z", "", np.zeros(3, np.float32), np.zeros(3, np.float32), None).right
    assert compare("e", "", np.zeros((0, 3)), np.zeros((0, 3)), None).right


def test_strict(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MXC_STRICT", "1")
    assert compare("a", "", np.ones(2, np.float32), np.ones(2, np.float32), None).tolerance == 1e-5
    assert compare("a", "", np.ones(2, np.float16), np.ones(2, np.float16), None).tolerance == 1e-2


@pytest.mark.parametrize("arguments", [["--tolerance", "-1"], ["--tolerance", "nan"]])
def test_usage(arguments: list[str]):
    with pytest.raises(SystemExit) as stop:
        main([*VERIFY, *arguments])
    assert stop.value.code == USAGE
