"""What README shows works as it stands there: its blocks are run in order, and give what their comments say."""
from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from documents import ROOT, blocks, comment, ran

import mxc as mx
from mxc.cli.main import COMMANDS, OK, main

NAME = "resnetv12_dense0_fwd"
SHAPE = (1, 3, 224, 224)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """A small network, and values of its parameters, under the names that README has; the scores that it gives for
    `image.npy`, which lies beside it, in the folder that the test runs in."""
    monkeypatch.chdir(tmp_path)
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(7, 7), stride=(32, 32), num_filter=4, no_bias=True,
                             name="resnetv12_conv0")
    net = mx.sym.BatchNorm(net, fix_gamma=False, name="resnetv12_batchnorm0")
    net = mx.sym.Pooling(net, global_pool=True, kernel=(1, 1), pool_type="avg")
    net = mx.sym.FullyConnected(net, num_hidden=10, name=NAME)
    net.save("resnet18_v1-symbol.json")
    rng = np.random.default_rng(1)
    shapes, _, states = net.infer_shape(data=SHAPE)
    values = {f"arg:{name}": rng.normal(size=shape) for name, shape in zip(net.list_arguments(), shapes, strict=True)
              if name != "data"}
    moving = zip(net.list_auxiliary_states(), states, strict=True)
    values |= {f"aux:{name}": np.full(shape, 1.5) for name, shape in moving}
    mx.nd.save("resnet18_v1-0000.params", {name: mx.nd.array(value) for name, value in values.items()})
    image = rng.uniform(size=SHAPE).astype("float32")
    np.save("image.npy", image)
    executor = net.simple_bind(mx.cpu(), grad_req="null", data=SHAPE)
    for name, value in values.items():
        kind, name = name.split(":")
        (executor.arg_dict if kind == "arg" else executor.aux_dict)[name][:] = value
    return executor.forward(is_train=False, data=image)[0].asnumpy()


def separable(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Examples of 10 classes of 784 numbers, which lie around a point each."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, count)
    return rng.normal(size=(10, 784))[labels] + rng.normal(size=(count, 784)), labels


def test_it_loads_a_model(network: np.ndarray):
    first, load, *_, last = blocks("README.md", "python")
    assert first.strip() == "import mxc as mx" and load.startswith(first)
    names: dict[str, object] = {"image": np.load("image.npy")}
    outputs = ran(load, names)
    line = next(line for line in load.splitlines() if "list_outputs" in line)
    assert outputs == ast.literal_eval(comment(line)) == [f"{NAME}_output"]
    np.testing.assert_allclose(names["scores"], network, rtol=1e-5)  # type: ignore[call-overload]
    loaded = next(line for line in load.splitlines() if "mx.nd.load" in line)
    assert set(re.findall(r'"([\w:]+)": an array', loaded)) <= names["arrays"].keys()  # type: ignore[attr-defined]
    (probabilities,) = re.findall(r"`(mx\.nd\.softmax.*?)`", (ROOT / "README.md").read_text())
    assert eval(probabilities, names).asnumpy().sum() == pytest.approx(1)

    assert main(["compile", "resnet18_v1-symbol.json", "--shape", "data=1,3,224,224", "-o", "resnet18.mxc"]) == OK
    predicted = ran(last, names)
    assert list(predicted) == re.findall(r'"(\w+)": a NumPy array', last) == [f"{NAME}_output"]
    np.testing.assert_allclose(predicted[f"{NAME}_output"], network, rtol=1e-5)


def test_it_binds_trains_and_differentiates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    _, _, bind, train, gluon, record, _ = blocks("README.md", "python")
    images, labels = separable(3200)
    names: dict[str, object] = {"mx": mx, "images": images, "labels": labels}
    assert ran(bind, names).tolist() == ast.literal_eval(comment(bind.splitlines()[-1])) == [[2, 2, 2]] * 2

    exec(train, names)
    scores = names["scores"].asnumpy()  # type: ignore[attr-defined]
    assert scores.shape == (3200, 10) and (scores.argmax(axis=1) == labels).mean() > 0.95
    (line,) = [line for line in train.splitlines() if line.startswith("model.score")]
    assert ran(line.partition("#")[0], names)[0][1] > 0.95
    assert names["again"].symbol.list_arguments() == names["net"].list_arguments()  # type: ignore[attr-defined]
    assert ran(re.findall(r"`(net\.simple_bind.*?)`", (ROOT / "README.md").read_text())[0], names).outputs

    exec(gluon, names)
    scores = names["net"](mx.nd.array(images)).asnumpy()  # type: ignore[operator]
    assert (scores.argmax(axis=1) == labels).mean() > 0.95
    written = re.search(r"# (\S+) and (\S+)\n", gluon)
    assert written and all((tmp_path / name).exists() for name in written.groups())

    gradient = ran(record, names)
    assert gradient.asnumpy().tolist() == ast.literal_eval(comment(record.splitlines()[-1]).partition(": ")[2])


def test_its_commands_work(network: np.ndarray, capsys: pytest.CaptureFixture[str]):
    (commands,) = (block for block in blocks("README.md") if block.startswith("mxc "))
    lines = [line.partition("#")[0].split()[1:] for line in commands.splitlines()]
    assert {line[0] for line in lines} == {"compile", "run", "inspect", "doctor"} <= COMMANDS.keys()
    printed = {}
    for line in lines:
        assert main(line) == OK, line
        printed[line[0]] = capsys.readouterr().out
    best = int(network[0].argmax())
    assert f"row 0: {best}: {network[0, best]:.6g}" in printed["run"]
    assert "kernels" in printed["compile"] and "FLOPs" in printed["inspect"] and "a model" in printed["doctor"]


def test_what_it_tells_to_make_is_there():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    told = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.M)
    assert told == ["demo", "test"] and set(told) <= set(targets)


def test_the_names_are_those_of_the_real_network():
    path = ROOT.parent / "shared" / "models" / "resnet18_v1-symbol.json"
    if not path.exists():
        pytest.skip("there is no folder of models beside the checkout")
    symbol = mx.sym.load(str(path))
    assert symbol.list_outputs() == [f"{NAME}_output"] and "resnetv12_conv0_weight" in symbol.list_arguments()
