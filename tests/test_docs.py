"""What the documents show works as it stands there."""
from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

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
from mxc.compiler.ops import loader, table

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def blocks(document: str, language: str) -> list[str]:
    """The code blocks of a language in a document."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.S)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_documents_point_to_is_there(document: Path):
    text = document.read_text()
    paths = [p for p in re.findall(r"\]\(([^)#]+)\)", text) if not p.startswith("http")]
    missing = [p for p in paths if not (document.parent / p).exists()]
    folders = "compiler|frontend|runtime|tests|bench|examples|docs"
    named = re.findall(rf"`((?:{folders})/[\w/.-]+)`", text.replace("NAME.py", ""))
    missing += [p for p in named if not (ROOT / p).exists()]
    assert not missing


def test_the_readme_binds_and_trains(capsys: pytest.CaptureFixture[str]):
    first, load, bind, train, record, _ = blocks("README.md", "python")
    assert first.strip() == "import mxc as mx" and load.startswith(first)
    names: dict[str, object] = {"mx": mx}
    exec(bind, names)
    np.testing.assert_array_equal(names["executor"].outputs[0].asnumpy(), np.full((2, 3), 2))  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    names["batches"] = [(mx.nd.array(rng.normal(size=(64, 784))), mx.nd.zeros((64,)))] * 3
    exec(train, names)
    assert np.abs(names["executor"].arg_dict["fc2_bias"].asnumpy()).max() > 0  # type: ignore[attr-defined]
    exec(record, names)
    np.testing.assert_array_equal(names["x"].grad.asnumpy(), [2, 4, 6])  # type: ignore[attr-defined]


def test_the_readme_loads_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    net = mx.sym.softmax(mx.sym.BatchNorm(mx.sym.Pooling(mx.sym.Variable("data"), global_pool=True, kernel=(1, 1))))
    net.save("resnet18_v1-symbol.json")
    states = {f"arg:{n}": mx.nd.ones((3,)) for n in net.list_arguments() if n != "data"}
    mx.nd.save("resnet18_v1-0000.params", states | {f"aux:{n}": mx.nd.ones((3,)) for n in net.list_auxiliary_states()})
    names: dict[str, object] = {"image": mx.nd.ones((1, 3, 224, 224))}
    exec(blocks("README.md", "python")[1], names)
    np.testing.assert_allclose(np.ravel(names["probabilities"]), [1, 1, 1])  # type: ignore[call-overload]
    command = "compile resnet18_v1-symbol.json --shape data=1,3,224,224 -o resnet18.mxc"
    assert main(command.split()) == OK
    result = eval(blocks("README.md", "python")[-1], {**names, "mxc": mx})
    np.testing.assert_allclose(np.ravel(list(result.values())), [1, 1, 1])


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
        "compile", "run", "bench", "profile", "verify", "inspect", "cache", "ops", "doctor"]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", guide, flags=re.M)} == {
        OK, FAILED, USAGE, BAD_FILE, UNSUPPORTED, NO_TARGET, INTERNAL, INTERRUPTED}


def test_the_operator_of_the_guide():
    (text,) = blocks("docs/adding-an-operator.md", "yaml")
    (op,) = loader.load(text)
    params = op.make_params({"bound": 2})
    x = np.array([-3, 0.5, 9], np.float32)
    assert op.reference(params, [x], ["float32"], False, None)[0].tolist() == [-2, 0.5, 2]
    assert not table.has(op.name)
