"""What the documents show works as it stands there."""
from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from documents import ROOT, blocks, ran
from pass_checks import assert_same_numbers, options

import mxc as mx
from mxc.cli.main import (
    BAD_FILE,
    COMMANDS,
    FAILED,
    INTERNAL,
    INTERRUPTED,
    NO_TARGET,
    OK,
    UNSUPPORTED,
    USAGE,
    main,
)
from mxc.compiler.graph.graph import GraphBuilder, Node, Sink
from mxc.compiler.ops import loader, table
from mxc.compiler.ops.operator import Operator
from mxc.compiler.passes.decompose import decompose

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_documents_point_to_is_there(document: Path):
    text = document.read_text()
    paths = [p for p in re.findall(r"\]\(([^)#]+)\)", text) if not p.startswith("http")]
    missing = [p for p in paths if not (document.parent / p).exists()]
    folders = "compiler|frontend|runtime|tests|bench|examples|docs"
    named = re.findall(rf"`((?:{folders})/[\w/.-]+)`", text.replace("NAME.py", ""))
    missing += [p for p in named if not (ROOT / p).exists()]
    assert not missing


def test_the_page_on_pictures_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("cv2")
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("docs/pictures.md", "python")
    names: dict[str, object] = {}
    exec(block, names)
    batch = names["batch"]
    shapes = [batch.data[0].shape, batch.label[0].shape]  # type: ignore[attr-defined]
    assert str(shapes[0]) in block and str(shapes[1]) in block and names["number"] == 63


def test_the_guide_to_own_operators_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for i, block in enumerate(blocks("docs/own-operators.md", "python")):
        (tmp_path / f"block{i}.py").write_text(block)  # functions are read from their files
        exec(compile(block, str(tmp_path / f"block{i}.py"), "exec"), names)
    np.testing.assert_allclose(names["y"].asnumpy(), [0, 0, 2 / (1 + np.exp(-4))], rtol=1e-6)  # type: ignore[attr-defined]
    x = mx.nd.array([0.5, 5.0])
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.blend(mx.nd.halvings(x), x, weight=0.25)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [1, 0.25 / 8 + 0.75])


def test_the_guide_to_gluon_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    np.random.seed(0)
    mx.random.seed(0)
    labels = np.arange(96) % 10
    images = np.random.RandomState(0).normal(size=(10, 1, 8, 8)).astype("float32")[labels]
    names: dict = {"images": images, "labels": labels}
    train, own, files, pictures, estimator, loop = blocks("docs/gluon.md", "python")
    ran(train, names)
    x = mx.nd.array(images)
    assert names["scores"].shape == (1, 10) and names["loss"].mean().asscalar() < 1
    ran(own, names)
    assert names["gated"].shape == (2, 4) and sorted(names["gate"].collect_params(".*scale")) == ["gate0_scale"]
    ran(files, names)
    np.testing.assert_allclose(names["block"](x).asnumpy(), names["net"](x).asnumpy(), rtol=1e-5)
    assert "0.weight" in mx.nd.load("digits.params")
    ran(loop, names)
    assert names["outputs"].shape == (6, 2, 100)
    cv2 = pytest.importorskip("cv2")
    for path in ("train/cat/1.png", "train/dog/1.png", "train/dog/2.jpg"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(path, np.random.RandomState(0).randint(0, 255, (40, 50, 3)).astype("uint8"))
    ran(pictures, names)
    ((found, of_classes),) = names["pictures"]
    assert found.shape == (3, 3, 224, 224) and sorted(of_classes.asnumpy().tolist()) == [0, 1, 1]
    names["validation"] = names["data"]
    ran(estimator, names)
    assert names["estimator"].val_metrics[0].get()[1] > 0.9 and Path("checkpoints", "model-best.params").exists()


def test_the_artifact_guide_runs_and_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc"), name="softmax")
    net.save("net-symbol.json")
    mx.nd.save("net-0000.params", {"arg:fc_weight": mx.nd.zeros((2, 784)), "arg:fc_bias": mx.nd.zeros((2,))})
    assert main(["compile", "net-symbol.json", "--shape", "data=32,784", "--train", "-o", "net.mxc"]) == OK
    names: dict[str, object] = {"mxc": mx, "images": np.ones((32, 784)), "labels": mx.nd.zeros((32,))}
    run, step = blocks("docs/artifact.md", "python")
    exec(run, names)
    np.testing.assert_allclose(names["outputs"]["softmax_output"], 0.5)  # type: ignore[index]
    names["images"] = mx.nd.array(names["images"])
    exec(step, names)
    bias = names["executor"].arg_dict["fc_bias"]  # type: ignore[attr-defined]
    np.testing.assert_allclose(bias.asnumpy(), [1.6, -1.6], rtol=1e-6)


def test_the_guide_to_onnx_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    symbol = mx.sym.Flatten(mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=2, name="conv"))
    parameters = {"conv_weight": mx.nd.ones((2, 3, 3, 3)), "conv_bias": mx.nd.zeros((2,))}
    names: dict = {"image": mx.nd.ones((1, 3, 224, 224)), "symbol": symbol, "parameters": parameters}
    write, read, metadata = blocks("docs/onnx.md", "python")
    ran(write, names)
    (wanted,) = ort.InferenceSession("net.onnx").run(None, {"data": names["image"].asnumpy()})
    ran(read, names)
    np.testing.assert_allclose(names["scores"], wanted, rtol=1e-5)
    np.testing.assert_allclose(names["net"](names["image"]).asnumpy(), wanted, rtol=1e-5)
    ran(metadata, names)
    assert names["inputs"] == [("data", (0, 3, 224, 224))]


def test_the_profiling_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    measured, own = blocks("docs/profiling.md", "python")
    ran(measured, names)
    assert "dot" in capsys.readouterr().out
    events = json.loads((tmp_path / "profile.json").read_text())["traceEvents"]
    assert any("dot" in event["name"] for event in events)
    ran(own, names)


def test_the_guide_to_pictures_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    rendered = []
    drawing = SimpleNamespace(node=lambda **_: None, edge=lambda **_: None, render=rendered.append)
    monkeypatch.setitem(sys.modules, "graphviz", SimpleNamespace(Digraph=lambda **_: drawing))
    (block,) = blocks("docs/inspect.md", "python")
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    ran(block, {"mx": mx, "symbol": net})
    assert "fc(FullyConnected)" in capsys.readouterr().out and rendered == ["net"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_in_documents_can_be_read(document: Path):
    for block in blocks(str(document.relative_to(ROOT)), "python"):
        compile(block, document.name, "exec")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_section(name: str):
    """It has the examples of the command's help, and names all its options."""
    guide = (ROOT / "docs" / "commands.md").read_text()
    common, *sections = re.split(r"^## mxc ", guide, flags=re.M)
    own = next(text for text in sections if text.split()[0] == name)
    module = importlib.import_module(f"mxc.cli.{name}")
    missing = [line.strip() for line in module.EXAMPLES.splitlines() if line.strip() and f"{line.strip()}\n" not in own]
    command = argparse.ArgumentParser()
    module.add_arguments(command)
    missing += [option for action in command._actions for option in action.option_strings
                if option.startswith("--") and option != "--help" and f"`{option}" not in own + common]
    assert not missing


def test_every_section_is_a_command():
    guide = (ROOT / "docs" / "commands.md").read_text()
    assert re.findall(r"^## mxc (\w+)", guide, flags=re.M) == [
        "compile", "run", "bench", "profile", "verify", "reduce", "inspect", "report", "convert", "cache", "ops",
        "im2rec", "rec", "launch", "completion", "doctor"]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", guide, flags=re.M)} == {
        OK, FAILED, USAGE, BAD_FILE, UNSUPPORTED, NO_TARGET, INTERNAL, INTERRUPTED}


def test_the_operator_of_the_guide():
    text, _ = blocks("docs/adding-an-operator.md", "yaml")
    (op,) = loader.load(text)
    params = op.make_params({"bound": 2})
    x = np.array([-3, 0.5, 9], np.float32)
    assert op.reference(params, [x], ["float32"], False, None)[0].tolist() == [-2, 0.5, 2]
    assert not table.has(op.name)


@pytest.mark.parametrize(("dtype", "most"), [("float64", 1e-12), ("float32", 1e-6), ("float16", 2e-3)])
def test_the_composite_operator_of_the_guide(monkeypatch: pytest.MonkeyPatch, dtype: str, most: float):
    """It becomes what its reference computes, in the files' own names."""
    (op,) = loader.load(blocks("docs/adding-an-operator.md", "yaml")[1])
    code = next(block for block in blocks("docs/adding-an-operator.md", "python") if "# graph.py" in block)
    rules = {}
    for file, text in re.findall(r"# (\w+)\.py\n(.*?)(?=\n# |\Z)", code, re.S):
        names = dict(vars(importlib.import_module(f"mxc.compiler.operators.{op.family}.{file}")))
        exec(text, names)
        rules[file] = names[op.name]
    roles = [role for role, name in op.rules.items() if name == op.name]
    assert roles == ["shape", "reference", "decompose"]
    for role in roles:
        assert tuple(inspect.signature(rules[loader.HOMES[role].file]).parameters) == loader.HOMES[role].parameters
    own = Operator.rule
    monkeypatch.setattr(Operator, "rule", lambda each, role: rules[loader.HOMES[role].file]
                        if each is op and role in roles else own(each, role))
    builder = GraphBuilder()
    inputs = [builder.variable("data", (4, 5), dtype), builder.variable("gamma", (5,), dtype)]
    graph = builder.finish(builder.add(Node(op, "norm", None, op.make_params({}), inputs)), [Sink("output", "")])
    made = decompose(graph, options())
    assert not [node for node in made.nodes if node.op is op]
    assert_same_numbers(graph, made, rtol=most, atol=most)


def test_the_guide_has_every_rule() -> None:
    text = (ROOT / "docs/adding-an-operator.md").read_text()
    rows, file, told = re.findall(r"^\| (?:`(\w+)\.py`)? *\| `(\w+)` \| (.*) \|$", text, flags=re.M), "", {}
    for first, role, said in rows:
        file = first or file
        told[role] = file, said
    assert {role: home.file for role, home in loader.HOMES.items()} == {role: file for role, (file, _) in told.items()}
    for role, home in loader.HOMES.items():
        if role != "dtype":  # "the same on dtypes"
            assert told[role][1].startswith(f"`({', '.join(home.parameters)})"), role


def test_the_kernel_of_the_guide_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (block,) = blocks("docs/own-kernels.md", "python")
    (tmp_path / "own_kernels_guide.py").write_text(block)
    monkeypatch.syspath_prepend(str(tmp_path))
    guide = importlib.import_module("own_kernels_guide")
    assert (guide.y.asnumpy() == np.full((3, 5), 4)).all()
    assert guide.s.infer_shape(x=(3, 4), centres=(5, 4))[1] == [(3, 5)]


def test_the_glossary_is_in_order_and_names_modules():
    text = (ROOT / "docs" / "glossary.md").read_text()
    entries = re.findall(r"^\*\*(.+?)\.\*\* (.*?)\n(?=\n|\Z)", text, re.M | re.S)
    words = [re.sub("[^a-z]", "", word.lower()) for word, _ in entries]
    assert len(words) > 30 and words == sorted({*words})
    assert all(re.search(r"`(compiler|runtime|frontend)/[\w/]+\.py`", meaning) for _, meaning in entries)
