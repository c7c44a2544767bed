"""`mxc verify`: what is right, what is wrong, and where the fault is."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import models
import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli.differences import AMPLIFIED, compare, judged
from mxc.cli.inputs import made_up_parameter
from mxc.cli.main import BAD_FILE, FAILED, OK, USAGE, main
from mxc.cli.reference import Reference
from mxc.compiler.ops.philox import Draws

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
    blind = "\nfrom mxc.cli.search import Search\nSearch.nodes = lambda *_: []"
    done = command(*VERIFY, "--nodes", program=FAULT + blind, MXC_CACHE_DIR="")
    assert (done.returncode, done.stderr) == (FAILED, "")
    assert done.stdout.splitlines()[-1] == (
        "first wrong: act_output (alone, with all that it reads fused; its kernel is of conv + bn + act)")


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


def amplifier() -> tuple[mx.sym.Symbol, dict[str, np.ndarray]]:
    """exp of a sum whose terms cancel: of numbers around 1e3, what is left is mostly rounding."""
    data = mx.sym.Variable("data")
    net = mx.sym.exp(mx.sym.sum(data * 1000, axis=1) - mx.sym.sum(data * 999, axis=1), name="net")
    return net, {"data": np.random.default_rng(0).normal(size=(3, 4000)).astype(np.float32) + 1}


def test_amplified_rounding_is_no_fault(capsys: pytest.CaptureFixture[str]):
    net, given = amplifier()
    net.save("amplifier-symbol.json")
    np.save("data.npy", given["data"] / 4000)
    assert main(["verify", "amplifier-symbol.json", "--input", "data=data.npy", "--json"]) == OK
    (output,) = json.loads(capsys.readouterr().out)["outputs"]
    assert output["max_rel"] > output["tolerance"] and (output["verdict"], output["right"]) == ("rounding", True)
    assert output["max_rel"] <= AMPLIFIED * output["swayed"] and 0 < output["off"] < 1e-2
    assert main(["verify", "amplifier-symbol.json", "--input", "data=data.npy"]) == OK
    _, row, note = capsys.readouterr().out.splitlines()[-3:]
    assert row.endswith("  rounding") and note.startswith("note: net_output: rounding, amplified: in float64 mxc is ")
    strict = ["verify", "amplifier-symbol.json", "--input", "data=data.npy", "--tolerance", "1e-6"]
    assert main(strict) == FAILED, "a tolerance that was asked for holds for rounding too"


def test_a_fault_is_more_than_rounding():
    net, given = amplifier()
    given = {"data": given["data"] / 4000}
    reference = Reference(net.graph, given, Draws)
    (entry,) = reference.graph.outputs
    value = reference.exact[entry].astype(np.float32)
    assert judged("", "", value, reference, entry, None).verdict in ("ok", "rounding")
    found = judged("", "", value * np.float32(1.5), reference, entry, None)
    assert found.verdict == "WRONG" and found.about.startswith("more than rounding: in float64 mxc is off by 5.0e-01")


def test_indices_are_not_rounded():
    """Rounding a token otherwise would make it another one."""
    net = mx.sym.Embedding(mx.sym.Variable("data"), mx.sym.Variable("weight"), input_dim=4, output_dim=2)
    given = {"data": np.array([1, 2, 3], np.float32), "weight": np.arange(8, dtype=np.float32).reshape(4, 2) + 0.5}
    reference = Reference(net.graph, given, Draws)
    (entry,) = reference.graph.outputs
    np.testing.assert_allclose(reference.swayed[entry], reference.exact[entry], rtol=1e-6)
    assert not np.array_equal(reference.swayed[entry], reference.exact[entry])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_float64_beside_what_the_graph_says(dtype: str):
    """Operators that make arrays of a dtype, and casts to one, give float64 as well."""
    net = mx.sym.Cast(mx.sym.Variable("data"), dtype=dtype) / 3 + mx.sym.ones((2, 2), dtype=dtype)
    reference = Reference(net.graph, {"data": np.full((2, 2), 1, np.float32)}, Draws)
    (entry,) = reference.graph.outputs
    assert reference.values[entry].dtype == dtype and reference.exact[entry].dtype == "float64"
    np.testing.assert_allclose(reference.exact[entry], 4 / 3, rtol=1e-15)


def test_nan_is_told(capsys: pytest.CaptureFixture[str]):
    np.save("nan.npy", np.full((2, 1, 6, 6), np.nan, np.float32))
    assert main(["verify", "net-symbol.json", "--input", "data=nan.npy"]) == OK
    assert capsys.readouterr().out.splitlines()[-1] == (
        "note: softmax_output: 6 of 6 values are NaN in both, so nothing was compared")
    assert main(["verify", "net-symbol.json", "--input", "data=nan.npy", "--json"]) == OK
    (output,) = json.loads(capsys.readouterr().out)["outputs"]
    assert (output["nan"], output["values"]) == (6, 6)


def test_expected_outputs(capsys: pytest.CaptureFixture[str]):
    save = [*VERIFY, "--save-expected", "net.npz"]
    assert main(save) == OK and capsys.readouterr().out.splitlines()[-1] == "written: net.npz"
    with np.load("net.npz") as arrays:
        known = dict(arrays)
    assert sorted(known) == ["in/data", "in/softmax_label", "out/softmax_output"]
    compare_with = ["verify", "net-symbol.json", "--expected"]
    assert main([*compare_with, "net.npz"]) == OK
    np.savez("plain.npz", softmax_output=known["out/softmax_output"])
    assert main([*VERIFY, "--input", "data=random", "--expected", "plain.npz"]) == OK
    capsys.readouterr()
    np.savez("wrong.npz", **{**known, "out/softmax_output": known["out/softmax_output"] * 1.01})
    assert main([*compare_with, "wrong.npz", "--wrong"]) == FAILED
    *_, note, last = capsys.readouterr().out.splitlines()
    assert "more than rounding" in note and last.startswith("mxc and its reference agree: other parameters or inputs")


@pytest.mark.parametrize(("arrays", "said", "code"), [
    ({"in/data": np.ones((2, 1, 6, 6)), "out/softmax_outpt": np.ones(3)},
     "no output 'softmax_output'; did you mean 'softmax_outpt'?", BAD_FILE),
    ({"in/data": np.ones((3, 1, 6, 6))}, "--shape data: bad.npz has data with the shape (3, 1, 6, 6)", USAGE),
    ({"in/dta": np.ones(3)}, "dta is not an input of net-symbol.json; did you mean 'data'?", USAGE),
    ({"out/softmax_output": np.array(["a"])}, "out/softmax_output is no array of numbers", BAD_FILE)])
def test_files_that_do_not_fit(arrays: dict[str, np.ndarray], said: str, code: int, capsys: pytest.CaptureFixture[str]):
    np.savez("bad.npz", **arrays)
    assert main([*VERIFY, "--expected", "bad.npz"]) == code
    assert said in capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize("content", [b"", b"<html>", b"PK\x03\x04 and no more"])
def test_files_that_are_no_archives(content: bytes, capsys: pytest.CaptureFixture[str]):
    Path("bad.npz").write_bytes(content)
    assert main([*VERIFY, "--expected", "bad.npz"]) == BAD_FILE
    assert "bad.npz" in capsys.readouterr().err.splitlines()[0]


def test_an_output_that_is_wrong_is_not_written():
    done = command(*VERIFY, "--save-expected", "net.npz", program=FAULT, MXC_CACHE_DIR="")
    assert done.returncode == FAILED and not Path("net.npz").exists()


def test_a_file_of_another_kind_is_not_written(capsys: pytest.CaptureFixture[str]):
    assert main([*VERIFY, "--save-expected", "net.txt"]) == USAGE
    assert "--save-expected net.txt: expected a name that ends in .npz" in capsys.readouterr().err


def test_the_program_for_mxnet(capsys: pytest.CaptureFixture[str]):
    """It is run with mxc in MXNet's place."""
    assert main([*VERIFY, "--save-expected", "net.npz"]) == OK
    executor = mx.sym.load("net-symbol.json").simple_bind(mx.cpu(), grad_req="null", data=(2, 1, 6, 6))
    arrays = {f"{kind}:{name}": made_up_parameter(name, array.shape, "float32") for kind, found in
              (("arg", executor.arg_dict), ("aux", executor.aux_dict)) for name, array in found.items()
              if name not in ("data", "softmax_label")}
    mx.nd.save("net-0000.params", {name: mx.nd.array(array) for name, array in arrays.items()})
    script = Path(__file__).parents[1] / "examples" / "expected_of_mxnet.py"
    done = subprocess.run([sys.executable, "-m", "mxc.as_mxnet", str(script), "net-symbol.json", "net-0000.params",
                           "mxnet.npz", "net.npz"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "mxnet.npz: softmax_output\n", done.stderr
    assert main(["verify", "net-symbol.json", "--expected", "mxnet.npz"]) == OK
    np.save("data.npy", np.load("net.npz")["in/data"])
    done = subprocess.run([sys.executable, "-m", "mxc.as_mxnet", str(script), "net-symbol.json", "net-0000.params",
                           "label.npz", "data=data.npy"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and list(np.load("label.npz")) == ["in/data", "out/softmax_output"]


def test_the_worst_and_the_wrong(capsys: pytest.CaptureFixture[str]):
    assert main([*VERIFY, "--worst", "2"]) == OK
    _, head, first, second, count, *_ = capsys.readouterr().out.splitlines()
    assert head.startswith("node") and count == "5 outputs of operators, 0 of them wrong"
    assert float(first.split()[3]) >= float(second.split()[3])
    assert main([*VERIFY, "--wrong"]) == OK
    assert capsys.readouterr().out.splitlines()[1] == count
    done = command(*VERIFY, "--wrong", program=FAULT, MXC_CACHE_DIR="")
    rows = [line.split()[0] for line in done.stdout.splitlines() if line.endswith("WRONG")]
    assert rows == ["act_output", "softmax_output"] and done.stdout.splitlines()[-1] == "first wrong: act_output"


@pytest.mark.parametrize("arguments", [["--tolerance", "-1"], ["--tolerance", "nan"], ["--worst", "0"]])
def test_usage(arguments: list[str]):
    with pytest.raises(SystemExit) as stop:
        main([*VERIFY, *arguments])
    assert stop.value.code == USAGE


@pytest.mark.slow
@pytest.mark.parametrize("name", models.EVERY)
def test_no_false_alarm(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """With the strict tolerance, of which rounding may be more."""
    monkeypatch.setenv("MXC_STRICT", "1")
    symbol, shapes = models.network(name)
    symbol.save("network-symbol.json")
    inputs = [word for key, shape in shapes.items() for word in ("--shape", f"{key}={','.join(map(str, shape))}")]
    assert main(["verify", "network-symbol.json", *inputs, "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["right"]


# ---- what was recorded elsewhere, and artifacts

def test_outputs_by_their_places(capsys: pytest.CaptureFixture[str]):
    assert main([*VERIFY, "--save-expected", "good.npz"]) == OK
    with np.load("good.npz") as good:
        np.savez("places.npz", **{"in/data": good["in/data"], "out/0": good["out/softmax_output"]})
        np.savez("other.npz", **{"in/data": good["in/data"], "out/1": good["out/softmax_output"]})
        np.savez("bare.npz", **{"out/0": good["out/softmax_output"]})
        np.savez("short.npz", **{"in/data": good["in/data"], "out/0": good["out/softmax_output"][:1]})
    assert main(["verify", "net-symbol.json", "--expected", "places.npz"]) == OK
    for name, code, text in (
            ("other", BAD_FILE, "it has no output 'softmax_output'; it has 1\nname each as the model does"),
            ("bare", USAGE, "it has outputs alone, and no inputs (in/NAME): give those that they were made of"),
            ("short", BAD_FILE, "its output 'softmax_output' has the shape (1, 3), and the model's has (2, 3)")):
        capsys.readouterr()
        assert main(["verify", "net-symbol.json", "--expected", f"{name}.npz"]) == code
        assert text in capsys.readouterr().err


@pytest.fixture
def stored() -> None:
    """net.mxc, which has its parameters only as its plans read them, and net-0000.params beside it."""
    symbol = mx.sym.load("net-symbol.json")
    executor = symbol.simple_bind(mx.cpu(), data=(2, 1, 6, 6))
    for name, array in (executor.arg_dict | executor.aux_dict).items():
        array[:] = made_up_parameter(name, array.shape, "float32")
    keep = {f"arg:{n}": a for n, a in executor.arg_dict.items() if n not in ("data", "softmax_label")}
    mx.nd.save("net-0000.params", keep | {f"aux:{n}": a for n, a in executor.aux_dict.items()})
    assert main(["compile", "net-symbol.json", "--shape", "data=2,1,6,6", "-o", "net.mxc"]) == OK


@pytest.mark.usefixtures("stored")
def test_an_artifact_finds_the_parameters_beside_it(capsys: pytest.CaptureFixture[str]):
    assert main(["verify", "net.mxc", "--json"]) == OK
    capsys.readouterr()
    assert main(["verify", "net.mxc", "--shape", "data=5,1,6,6", "--json"]) == OK  # cut and filled up
    mx.nd.save("net-0001.params", {"arg:fc_weight": mx.nd.ones((7, 7))})  # of another model
    assert main(["verify", "net.mxc"]) == BAD_FILE
    assert "only as its plans read them" in capsys.readouterr().err


@pytest.mark.usefixtures("stored")
def test_an_artifact_of_other_parameters_is_wrong(capsys: pytest.CaptureFixture[str]):
    params = mx.nd.load("net-0000.params")
    params["arg:fc_bias"] += 1
    params["arg:fc_bias"][0] = 0
    mx.nd.save("net-0000.params", params)
    assert main(["verify", "net.mxc"]) == FAILED
    printed = capsys.readouterr().out
    assert printed.startswith("parameters are those of net-0000.params\n") and "WRONG" in printed


def test_what_a_batch_is_cut_into_is_looked_at(stored: None, monkeypatch: pytest.MonkeyPatch):
    from mxc.runtime.batches import Batches

    right = Batches.cut
    monkeypatch.setattr(Batches, "cut", lambda self, values, part: {
        name: value[::-1] for name, value in right(self, values, part).items()})
    assert main(["verify", "net.mxc", "--shape", "data=4,1,6,6"]) == FAILED
