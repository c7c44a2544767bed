"""`mxc inspect`: what it prints and draws, its options and exit codes, as a command and in this process."""
from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import documents
import networks
import pytest
from commands import command

import mxc as mx
from mxc.cli.main import BAD_FILE, NO_TARGET, OK, UNSUPPORTED, USAGE, main
from mxc.compiler.plan import Plan
from mxc.visualization.memory import run_steps

TABLE = """
layer     operator        output   parameters  FLOPs  previous layers
---------------------------------------------------------------------
data      (input)         2x1x6x6           0      0
conv      Convolution     2x4x4x4          40  2,432  data
bn        BatchNorm       2x4x4x4           8    128  conv
relu      Activation      2x4x4x4           0    128  bn
flat      Flatten         2x64              0      0  relu
fc        FullyConnected  2x3             195    774  flat
label     (input)         2                 0      0
softmax0  SoftmaxOutput   2x3               0      6  fc, label

layers: 6
parameters: 243
auxiliary states: 8
FLOPs: 3,468
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with a model, and one with an operator that is not known."""
    monkeypatch.chdir(tmp_path)
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.Activation(mx.sym.BatchNorm(net, fix_gamma=False, name="bn"), act_type="relu", name="relu")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net, name="flat"), num_hidden=3, name="fc")
    mx.sym.SoftmaxOutput(net, mx.sym.Variable("label"), name="softmax0").save("net-symbol.json")
    Path("unknown-symbol.json").write_text(Path("net-symbol.json").read_text().replace('"Convolution"', '"NoSuch"'))
    mx.nd.save("other.params", {"arg:fc_weight": mx.nd.ones((3, 65))})


OVERVIEW = """
model:            net-symbol.json
operators:        6: Convolution 1, BatchNorm 1, Activation 1, Flatten 1, FullyConnected 1, SoftmaxOutput 1
parameters:       6 arrays, ? elements
auxiliary states: 2 arrays, 8 elements
values:           part.params, 0.1 MB; none for conv_weight, conv_bias, bn_gamma, bn_beta, bn_moving_mean, bn_moving_var
unsupported:      nothing

        name             dtype    shape
input   data             float32  1x3x48x48  guessed
input   label            float32  1
output  softmax0_output           1x3

  mxc inspect net-symbol.json --shape data=1,3,48,48
"""


INSPECT = ["inspect", "net-symbol.json", "--shape", "data=2,1,6,6"]


def test_the_table():
    done = command(*INSPECT)
    assert (done.returncode, done.stderr) == (OK, "")
    assert done.stdout == TABLE.removeprefix("\n")


def test_the_table_as_json():
    done = command(*INSPECT, "--json")
    assert (done.returncode, done.stderr) == (OK, "")
    data = json.loads(done.stdout)
    assert data["totals"] == {"layers": 6, "parameters": 243, "auxiliary_states": 8, "flops": 3468}
    assert data["layers"][1] == {"name": "conv", "operator": "Convolution", "outputs": [[2, 4, 4, 4]], "parameters": 40,
                                 "auxiliary_states": 0, "flops": 2432, "previous": ["data"]}


def test_groups_plan_and_picture_of_a_training_step():
    done = command(*INSPECT, "--train", "--groups", "--plan", "--memory", "memory.svg")
    assert (done.returncode, done.stderr) == (OK, "")
    groups, plan = done.stdout.removeprefix("-- groups\n").split("-- plan\n")
    assert groups.startswith("forward ") and " -> " in groups.splitlines()[0]
    assert "\nbackward " in plan and "gradient[conv_weight]" in plan and "gradient[data]" not in plan
    *_, arena, drawn, held = plan.splitlines()
    assert arena.startswith("arena ") and drawn.startswith("memory.svg: ")
    assert re.fullmatch("memory: parameters .+B, prepared 0 B, arena .+B, resident .+B", held)
    root = ElementTree.parse("memory.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "net, training step, data=2,1,6,6" in texts and "backward" in texts


def test_the_picture_of_the_graph_and_what_a_pass_changes():
    done = command(*INSPECT, "--plot", "net.svg", "--diff", "decompose")
    assert (done.returncode, done.stderr) == (OK, "")
    first, *diff = done.stdout.splitlines()
    assert first == "net.svg: 6 operators" and diff[:2] == ["--- before decompose", "+++ after decompose"]
    assert any(re.match(r"- +bn = BatchNorm\(", line) for line in diff)
    assert any(re.match(r"\+ +\w+ = rsqrt\(", line) for line in diff)
    texts = [element.text for element in ElementTree.parse("net.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "net, data=2,1,6,6" and "Convolution 3x3, 4" in texts and "SoftmaxOutput" in texts


def test_a_pass_of_a_training_step(capsys: pytest.CaptureFixture[str]):
    assert main([*INSPECT, "--diff", "gradient"]) == OK
    assert capsys.readouterr().out == "gradient: no change\n"
    assert main([*INSPECT, "--diff", "gradient", "--train", "--json"]) == OK
    data = json.loads(capsys.readouterr().out)
    assert any("grad(conv_weight)" in line for line in data["diff"] if line.startswith("+"))


def test_the_groups_are_those_that_the_environment_prints(monkeypatch: pytest.MonkeyPatch,
                                                          capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("MXC_PRINT", "fuse,plan")
    assert main([*INSPECT, "--groups", "--plan"]) == OK
    printed = capsys.readouterr()
    _, groups, plan, held = re.split("-- groups\n|-- plan\n|memory: ", printed.out)
    assert held.startswith("parameters ")
    assert re.fullmatch(f"-- after fuse: .* ms\n{re.escape(groups)}(-- not fused\n(.+ -> .+: .+\n)+)?"
                        f"-- after plan_memory: .* ms\n{re.escape(plan)}", printed.err)
    assert "forward anchor" in groups


def test_parts_as_json(capsys: pytest.CaptureFixture[str]):
    assert main([*INSPECT, "--groups", "--plan", "--memory", "memory.svg", "--json"]) == OK
    data = json.loads(capsys.readouterr().out)
    assert list(data) == ["groups", "plan", "layers", "memory"] and isinstance(data["groups"], list)
    plan = Plan.from_json(json.dumps(data["plan"]))
    assert len(data["layers"]) == len(plan.steps) and all(data["layers"])
    held = data["memory"]
    assert held.pop("parameters_bytes") == 4 * (243 + 8) and held.pop("prepared_bytes") == plan.prepared_bytes > 0
    scratch, kept, arrays, resident = (held.pop(f"{name}_bytes") for name in ("scratch", "kept", "arrays", "resident"))
    assert resident == plan.arena_bytes + plan.prepared_bytes + scratch + kept + arrays
    assert 0 < kept < 4 * (243 + 8) and arrays == 4 * (2 * 36 + 2 * 3) and scratch % plan.scratch_bytes == 0
    assert held == {
        "file": "memory.svg", "steps": len(run_steps(plan)), "arena_bytes": plan.arena_bytes,
        "buffers": sum(b.pool == "arena" for b in plan.buffers), "live_bytes": plan.live_bytes,
        "unplanned_bytes": plan.unplanned_bytes}


def test_an_input_has_the_dtype_that_is_given(capsys: pytest.CaptureFixture[str]):
    assert main([*INSPECT, "--dtype", "data=float64", "--plan"]) == OK
    printed = capsys.readouterr().out
    assert "argument[data] float64[2, 1, 6, 6]" in printed and "float32" not in printed


REFUSED = {
    "no shape": (USAGE, ["inspect", "net-symbol.json", "--plan"], "the shape of data is not known"),
    "a name": (USAGE, ["inspect", "net-symbol.json", "--shape", "dat=2,1,6,6"], "did you mean 'data'?"),
    "training of the table": (USAGE, [*INSPECT, "--train"], "the layers are the same in training"),
    "a shape that does not fit": (BAD_FILE, ["inspect", "net-symbol.json", "--shape", "data=2,6"], "'conv'"),
    "no graph": (BAD_FILE, ["inspect", "nosuch.json"], "nosuch.json: cannot be read"),
    "parameters of another model": (BAD_FILE, [*INSPECT, "--params", "other.params"], "'fc'"),
    "an ending": (USAGE, [*INSPECT, "--plot", "net.png"], "--plot net.png: expected a name that ends in .svg"),
    "a pass": (USAGE, [*INSPECT, "--diff", "simplif"], "did you mean 'simplify'?"),
    "no place for a graph": (BAD_FILE, [*INSPECT, "--plot", "nosuch/net.svg"], "nosuch/net.svg: cannot be written"),
    "no place": (BAD_FILE, [*INSPECT, "--memory", "nosuch/memory.svg"], "nosuch/memory.svg: cannot be written"),
    "operators": (UNSUPPORTED, ["inspect", "unknown-symbol.json", "--plan"], "'NoSuch'"),
}


@pytest.mark.parametrize(("code", "arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: int, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    assert main(arguments) == code
    printed = capsys.readouterr()
    assert printed.out == "" and text in printed.err and printed.err.startswith("mxc inspect: ")
    assert len(printed.err.splitlines()) >= 2 and "Traceback" not in printed.err


def test_the_help_has_examples():
    done = command("inspect", "--help")
    assert done.returncode == OK
    assert "mxc inspect net-symbol.json --shape data=1,3,224,224 --groups --plan\n" in done.stdout
    for option in ("--shape", "--params", "--train", "--groups", "--plan", "--memory FILE.svg", "--plot FILE.svg",
                   "--diff PASS", "--json"):
        assert option in done.stdout
    assert "exit codes: 0 done" in done.stdout and "inspect" in command("--help").stdout


def test_the_guide_shows_what_is_printed(capsys: pytest.CaptureFixture[str]):
    with mx.name.NameManager():  # names are numbered from 0, as in the guide
        networks.lenet().save("lenet-symbol.json")
    guide = (documents.ROOT / "docs" / "inspect.md").read_text()
    _, first, table = re.findall(r"```(?:text)?\n(.*?)```", guide, re.S)[:3]
    assert main(first.split()[1:]) == OK
    assert capsys.readouterr().out == table
    assert main(["inspect", "lenet-symbol.json", "--shape", "data=64,1,8,8", "--groups"]) == OK
    groups = capsys.readouterr().out.splitlines()
    assert groups[0] == "-- groups" and groups[2].split()[:2] == ["forward", "anchor"]


def test_what_a_file_holds(capsys: pytest.CaptureFixture[str]):
    """Without parameters the first guess is taken; with them the one with which their shapes go together."""
    assert main(["inspect", "net-symbol.json", "--json"]) == OK
    about = json.loads(capsys.readouterr().out)
    assert about["inputs"] == [{"name": "data", "dtype": "float32", "shape": [1, 3, 224, 224], "guessed": True},
                               {"name": "label", "dtype": "float32", "shape": [1], "guessed": False}]
    assert about["outputs"] == [{"name": "softmax0_output", "shape": [1, 3]}]
    assert about["operators"]["Convolution"] == 1 and about["unsupported"] == [] and not about["file_of_parameters"]
    mx.nd.save("part.params", {"arg:fc_weight": mx.nd.ones((3, 4 * 46 * 46)), "arg:fc_bias": mx.nd.ones((3,))})
    assert main(["inspect", "net-symbol.json", "--params", "part.params"]) == OK
    assert capsys.readouterr().out == OVERVIEW.removeprefix("\n").replace("? elements", "25,515 elements")


def test_what_is_unsupported(capsys: pytest.CaptureFixture[str]):
    assert main(["inspect", "unknown-symbol.json"]) == UNSUPPORTED
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("operators: 6: NoSuch 1, BatchNorm 1") and lines[2] == "unsupported:"
    assert lines[3].startswith("  operator 'NoSuch' (node 'conv', 1 of them)")
    assert main(["inspect", "unknown-symbol.json", "--json"]) == UNSUPPORTED
    assert len(json.loads(capsys.readouterr().out)["unsupported"]) == 1


def test_what_an_artifact_holds(capsys: pytest.CaptureFixture[str]):
    sets = ["--shape", "data=2,1,6,6", "--shape", "data=4,1,6,6"]
    assert main(["compile", "net-symbol.json", *sets, "-o", "net.mxc"]) == OK
    capsys.readouterr()
    assert main(["inspect", "net.mxc", "--json"]) == OK
    about = json.loads(capsys.readouterr().out)
    assert about["bytes"] == Path("net.mxc").stat().st_size and about["mxc"] == mx.VERSION and about["runs_here"]
    assert sum(about["sections"].values()) < about["bytes"] and about["why_not"] is None
    assert [(plan["mode"], plan["inputs"], plan["outputs"]) for plan in about["plans"]] == [
        ("inference", {"data": [n, 1, 6, 6]}, {"softmax0_output": [n, 3]}) for n in (2, 4)]
    assert all(plan["kernels"] and plan["arena_bytes"] for plan in about["plans"])
    assert main(["inspect", "net.mxc"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[:8]] == [
        "model", "made by", "made for", "CPU level", "runs here", "parameters", "inputs", "outputs"]
    assert lines[-1].split()[:3] == ["inference", "data=4x1x6x6", "softmax0_output=4x3"]
    assert main(["inspect", "net.mxc", "--shape", "data=2,1,6,6"]) == OK
    assert capsys.readouterr().out == TABLE.removeprefix("\n")


def test_a_level_of_cpus(capsys: pytest.CaptureFixture[str]):
    done = command("compile", "net-symbol.json", "--shape", "data=2,1,6,6", "--target", "cpu:x86-64-v2", "-o", "v2.mxc")
    if done.returncode == NO_TARGET:
        pytest.skip("this machine has not that level")
    assert main(["inspect", "v2.mxc", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["cpu_level"] == "x86-64-v2"


def test_shapes_that_no_memory_holds(capsys: pytest.CaptureFixture[str]):
    """No array is made."""
    shape = ["--shape", f"data={10**7},1,6000,6000"]
    assert main(["inspect", "net-symbol.json", *shape]) == OK
    assert "10000000x4x5998x5998" in capsys.readouterr().out
    assert main(["inspect", "net-symbol.json", "--shape", f"data={10**4},1,600,600", "--memory", "-"]) == OK
    printed = capsys.readouterr().out
    assert ElementTree.fromstring(printed.encode()).tag.endswith("svg")


def test_a_picture_on_standard_output(capsys: pytest.CaptureFixture[str]):
    assert main([*INSPECT, "--plot", "-"]) == OK
    assert ElementTree.fromstring(capsys.readouterr().out.encode()).tag.endswith("svg") and not Path("-").exists()
