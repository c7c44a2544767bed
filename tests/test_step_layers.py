"""Which nodes of the model each step of a plan came from: by place in the graph, shown by name."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest

import mxc as mx
from mxc.compiler import api, planning
from mxc.compiler.cache import Cache
from mxc.compiler.plan import layers_text
from mxc.compiler.targets.cpu.target import CpuTarget
from mxc.runtime import profiler

SHAPES = {"data": (2, 8, 10, 10)}


def net(prefix: str = "") -> mx.sym.Symbol:
    """A convolution that BatchNorm is folded into, one that reads it twice, and a layer that does nothing."""
    body = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=16, pad=(1, 1), name=f"{prefix}conv1")
    body = mx.sym.BatchNorm(body, name=f"{prefix}bn1")
    body = mx.sym.Activation(body, act_type="relu", name=f"{prefix}relu1")
    beside = mx.sym.Convolution(body, kernel=(1, 1), num_filter=16, name=f"{prefix}conv2")
    body = mx.sym.Dropout(mx.sym.elemwise_add(body, beside, name=f"{prefix}add"), name=f"{prefix}drop")
    return mx.sym.FullyConnected(mx.sym.Flatten(body, name=f"{prefix}flat"), num_hidden=3, name=f"{prefix}fc")


def target_of(path: Path) -> CpuTarget:
    """As of a new process, which has loaded nothing."""
    path.chmod(0o700)
    return CpuTarget(cache=Cache(path))


def layers_of(compiled: Any, phase: str = "forward") -> list[str]:
    return [layers_text(step.layers(compiled.names)) for step in compiled.plan.steps_of(phase)]


@pytest.fixture
def executor() -> Any:
    return net().simple_bind(mx.cpu(), grad_req="null", **SHAPES)


def test_what_is_folded_fused_and_left_out_is_named(executor: Any):
    found = layers_of(executor.compiled())
    assert found[0] == "conv1 + bn1 + relu1" and found[-1].endswith("fc")
    assert {word for text in found for word in text.split(" + ")} == {
        "conv1", "bn1", "relu1", "conv2", "add", "drop", "fc"}, "flat is a view of what add makes: no step is its"
    assert all(layers_of(executor.compiled(), "prepare"))


def test_gradients_are_of_the_layers_that_they_flow_through():
    executor = net().simple_bind(mx.cpu(), grad_req={"conv1_weight": "write"}, **SHAPES)
    found = layers_of(executor.compiled(is_train=True), "backward")
    assert all(found) and {"fc", "drop", "conv1"} <= set(found)


def test_a_gradient_of_zeros_has_its_arguments_name():
    symbol = mx.sym.BlockGrad(mx.sym.Variable("x") * 2, name="stop")
    executor = symbol.simple_bind(mx.cpu(), grad_req="write", x=(3,))
    assert layers_of(executor.compiled(is_train=True), "backward") == ["x"]


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", models.NAMES)
def test_every_step_of_every_network_has_a_layer_and_a_label(name: str, train: bool):
    made = models.program(name, train)
    names = [node.name for node in models.network(name)[0].graph.nodes]
    assert all(launch.origin and launch.label for launch in made.launches)
    assert {i for launch in made.launches for i in launch.origin} <= set(range(len(names)))


def test_passes_tell_where_all_nodes_came_from(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MXC_CHECK", "1")  # it checks that after each pass
    executor = net().simple_bind(mx.cpu(), grad_req="write", **SHAPES)
    assert all(layers_of(executor.compiled(is_train=True), "backward"))


def test_a_stored_plan_has_the_names_of_the_graph_that_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = api.compile_graph(net().graph, SHAPES, {}, {}, False, target_of(tmp_path))
    monkeypatch.setattr(planning, "plan_graph", None)
    for target in (target_of(tmp_path), target_of(tmp_path)):
        again = api.compile_graph(net("other_").graph, SHAPES, {}, {}, False, target)
        assert again.plan.steps == first.plan.steps
        assert layers_of(again)[0] == "other_conv1 + bn1 + relu1"


def test_an_artifact_keeps_them(tmp_path: Path, executor: Any):
    for array in (executor.arg_dict | executor.aux_dict).values():
        array[:] = 1
    mx.artifact.save(tmp_path / "net.mxc", [executor], ["data"], keep_params=True)
    loaded = mx.load(tmp_path / "net.mxc")
    assert layers_of(loaded.executor().compiled()) == layers_of(executor.compiled())
    seen: list[list[str]] = []
    with profiler.watching_kernels(lambda step, layers, moved, start, end: seen.append(layers)):
        loaded.predict(data=np.ones(SHAPES["data"], np.float32))
    assert [layers_text(layers) for layers in seen] == layers_of(executor.compiled())


def test_a_copy_has_a_label():
    """What leaves blocks as a plain array, for a layer that reads no blocks: no operator is in its kernel."""
    body = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=16, name="conv", no_bias=True)
    symbol = mx.sym.sort(mx.sym.Flatten(mx.sym.Convolution(body, kernel=(3, 3), num_filter=16, name="last")), name="s")
    plan = symbol.simple_bind(mx.cpu(), grad_req="null", **SHAPES).compiled().plan
    assert all(step.label for step in plan.steps)


def test_the_debug_line_and_the_trace_have_the_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                      capfd: pytest.CaptureFixture[str]):
    monkeypatch.setenv("MXC_DEBUG", "2")
    monkeypatch.chdir(tmp_path)
    executor = net().simple_bind(mx.cpu(), grad_req="null", **SHAPES)
    mx.profiler.set_config(profile_all=True, filename="profile.json")
    mx.profiler.set_state("run")
    executor.forward()[0].wait_to_read()
    mx.profiler.set_state("stop")
    mx.profiler.dump()
    assert " of conv1 + bn1 + relu1: " in capfd.readouterr().err
    events = json.loads(Path("profile.json").read_text())["traceEvents"]
    assert ["conv1", "bn1", "relu1"] in [event["args"]["layers"] for event in events if event.get("cat") == "kernel"]


def test_text():
    assert layers_text(["stage3_conv2", "stage3_bn2", "stage3_relu2", "pool"]) == "stage3_conv2 + bn2 + relu2 + pool"
    assert layers_text(["conv1", "conv2", "conv1"]) == "conv1 + conv2 + conv1"
    assert layers_text(["net_a_", "net_a_"]) == "net_a_ + net_a_" and layers_text([]) == ""


def test_a_loop_is_its_node():
    data, state = mx.sym.Variable("data"), mx.sym.Variable("state")
    outs, _ = mx.sym.contrib.foreach(lambda x, s: (mx.sym.tanh(x + s),) * 2, data, state, name="walk")
    executor = mx.sym.exp(outs, name="out").simple_bind(mx.cpu(), grad_req="null", data=(5, 3), state=(3,))
    assert layers_of(executor.compiled()) == [outs.name, "out"]


def test_the_gradient_of_a_loop_is_of_its_node(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MXC_CHECK", "1")
    data, state = mx.sym.Variable("data"), mx.sym.Variable("state")
    outs, _ = mx.sym.contrib.foreach(lambda x, s: (mx.sym.tanh(x + s),) * 2, data, state)
    executor = outs.simple_bind(mx.cpu(), grad_req="write", data=(5, 3), state=(3,))
    compiled = executor.compiled(is_train=True)
    (backward,) = [step for step in compiled.plan.steps_of("backward") if step.loop is not None]
    assert backward.layers(compiled.names) == [outs.name]
