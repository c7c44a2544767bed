"""`mxc reduce`: what is left of a model that fails, and that it still fails."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import models
import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli.main import FAILED, OK, USAGE, main

TESTS = Path(__file__).parent
MOST = 5  # operators that a planted fault leaves at most
PICTURE = {"data": (1, 3, 64, 64)}
# network, inputs' shapes, the node whose kernels are wrong, a constant of them and what it is there, the wrong operator
PLANTED = [
    ("resnet20", {"data": (1, 3, 32, 32)}, "s1b0a_relu", 0.0, 0.05, "s1b0a_relu_output"),
    ("face_refinement", {"data": (1, 3, 24, 24)}, "convolution2", 0.0, 0.05, "leakyrelu2_output"),
    pytest.param("encoder", None, "_mulscalar1", 0.25, 0.26, "_mulscalar1_output", marks=pytest.mark.slow),
    pytest.param("mobilenet_v2", PICTURE, "clip14", 6.0, 5.0, "clip14_output", marks=pytest.mark.slow),
    pytest.param("squeezenet", PICTURE, "activation5", 0.0, 0.05, "activation5_output", marks=pytest.mark.slow)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory of its own, with a model that is right."""
    monkeypatch.chdir(tmp_path)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="one")
    net = mx.sym.FullyConnected(mx.sym.relu(net, name="act") + 1, num_hidden=6, name="two")
    mx.sym.softmax(mx.sym.tanh(net, name="last"), name="softmax").save("net-symbol.json")
    return tmp_path


@pytest.mark.parametrize(("network", "shapes", "node", "old", "new", "wrong"), PLANTED)
def test_a_planted_fault(network: str, shapes: dict[str, tuple[int, ...]] | None, node: str, old: float, new: float,
                         wrong: str, tmp_path: Path):
    with mx.name.NameManager():  # names are numbered from 0
        symbol, usual = models.network(network)
    symbol.save("big-symbol.json")
    inputs = [word for name, shape in (shapes or usual).items()
              for word in ("--shape", f"{name}={','.join(map(str, shape))}")]
    fault = f"sys.path.insert(0, {str(TESTS)!r})\nimport planted\nplanted.plant({node!r}, {{{old}: {new}}})"

    def faulty(*arguments: str, code: int) -> dict:
        done = command(*arguments, "--json", program=fault, MXC_CACHE_DIR=str(tmp_path / "cache"))
        assert (done.returncode, done.stderr) == (code, "")
        return json.loads(done.stdout)

    found = faulty("verify", "big-symbol.json", *inputs, "--nodes", code=FAILED)
    assert found["first_wrong"] == wrong
    report = faulty("reduce", "big-symbol.json", *inputs, "--output", "small", code=OK)
    left = [each["name"] for each in report["operators"]]
    assert len(left) <= MOST and wrong.removesuffix("_output") in left and report["fails"] == "wrong outputs"
    assert report["operators_before"] == sum(each.op is not None for each in symbol.graph.nodes)
    small = ("verify", "small-symbol.json", "--expected", "small-expected.npz")
    assert not faulty(*small, code=FAILED)["right"]
    assert command(*small).returncode == OK, "without the fault it is right"


def test_a_model_that_is_right(capsys: pytest.CaptureFixture[str]):
    assert main(["reduce", "net-symbol.json", "--shape", "data=3,4"]) == USAGE
    first, last = capsys.readouterr().err.splitlines()
    assert "passes the check" in first and last.startswith("give the inputs") and not list(Path().glob("*reduced*"))


def test_a_check_of_ones_own(capsys: pytest.CaptureFixture[str]):
    """A program that does not like tanh: it fails with the exit code 7."""
    Path("check.py").write_text("import sys\nsys.exit(7 * ('\"tanh\"' in open(sys.argv[1]).read()))")
    mx.nd.save("net-0000.params", {"arg:one_weight": mx.nd.ones((6, 4)), "arg:one_bias": mx.nd.ones((6,)),
                                   "arg:two_weight": mx.nd.ones((6, 6)), "arg:two_bias": mx.nd.ones((6,))})
    check = f"{sys.executable} check.py {{}}-symbol.json"
    assert main(["reduce", "net-symbol.json", "--shape", "data=3,4", "--check", check]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 of 6 operators are left") and lines[0].endswith("fails as the model does: 7")
    assert lines[2].split() == ["last", "tanh"]
    assert lines[-1] == "  mxc verify net-reduced-symbol.json --expected net-reduced-expected.npz"
    assert mx.sym.load("net-reduced-symbol.json").list_arguments() == ["two_output"]
    with np.load("net-reduced-expected.npz") as arrays:
        np.testing.assert_allclose(arrays["out/last_output"], np.tanh(arrays["in/two_output"]), rtol=1e-6)
    assert main(lines[-1].split()[1:]) == OK


def test_an_error_is_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """A part that raises another error, or gives wrong outputs, does not fail as the model does."""
    real = mx.executor.Executor.forward

    def forward(self: mx.executor.Executor, is_train: bool = False, **kwargs: object) -> object:
        if any(node.name == "act" for node in self._symbol.graph.nodes):
            raise ZeroDivisionError
        return [output * 0 for output in real(self, is_train, **kwargs)]

    monkeypatch.setattr("mxc.cli.runnable.Bound.run", lambda _: None)
    monkeypatch.setattr(mx.executor.Executor, "forward", forward)
    assert main(["reduce", "net-symbol.json", "--shape", "data=3,4", "--json"]) == OK
    report = json.loads(capsys.readouterr().out)
    assert report["fails"] == "ZeroDivisionError" and [each["name"] for each in report["operators"]] == ["act"]
    assert list(report["inputs"]) == ["one_output"]


def test_usage(capsys: pytest.CaptureFixture[str]):
    assert main(["reduce", "net-symbol.json", "--shape", "data=3,4", "--check", "true"]) == USAGE
    assert "--check true: expected a command with {} in it" in capsys.readouterr().err


def test_what_it_compares_with_is_said(capsys: pytest.CaptureFixture[str]):
    assert main(["verify", "net-symbol.json", "--shape", "data=2,3", "--save-expected", "wrong.npz"]) == OK
    with np.load("wrong.npz") as good:
        np.savez("wrong.npz", **{name: array + 1 if name.startswith("out/") else array for name, array in good.items()})
    assert main(["verify", "net-symbol.json", "--expected", "wrong.npz"]) == FAILED
    capsys.readouterr()
    assert main(["reduce", "net-symbol.json", "--expected", "wrong.npz"]) == USAGE
    assert "it takes the inputs alone, and compares with the reference" in capsys.readouterr().err


def test_the_next_command_has_the_tolerance(capsys: pytest.CaptureFixture[str]):
    assert main(["reduce", "net-symbol.json", "--shape", "data=2,3", "--tolerance", "1e-12", "-o", "small"]) == OK
    assert capsys.readouterr().out.endswith("--expected small-expected.npz --tolerance 1e-12\n")
