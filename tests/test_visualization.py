"""`mx.viz`, and the picture of a memory plan."""
from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import models
import pytest

import mxc as mx
from mxc.compiler.lowering.plan_memory import plan_memory
from mxc.compiler.plan import Buffer, Plan, Step
from mxc.compiler.targets.cpu.target import cpu_target
from mxc.visualization.memory import (
    KINDS,
    LEFT,
    PARTS,
    RIGHT,
    Box,
    boxes,
    bytes_text,
    live_bytes,
    memory_svg,
    run_steps,
)

SVG = "{http://www.w3.org/2000/svg}"


@cache
def plan_of(name: str, train: bool) -> tuple[Plan, list[str]]:
    made = models.program(name, train)
    return plan_memory(made.launches, made.outputs, cpu_target()), [node.name for node in made.graph.nodes]


def overlaps(found: list[Box]) -> list[tuple[Box, Box]]:
    return [(a, b) for i, a in enumerate(found) for b in found[:i] if a.begin < b.end and b.begin < a.end
            and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes]


NETWORKS = [("lenet", True), ("resnet20", False), ("resnet50_v1", False), ("mobilenetv2_1.0", False)]


@pytest.mark.parametrize(("name", "train"), NETWORKS)
def test_rectangles_do_not_overlap_and_their_peak_is_the_plans(name: str, train: bool):
    plan, names = plan_of(name, train)
    found = boxes(plan, names)
    assert len(found) == sum(buffer.pool == "arena" for buffer in plan.buffers)
    assert overlaps(found) == []
    assert max(box.offset + box.nbytes for box in found) == plan.arena_bytes
    assert max(live_bytes(found, len(run_steps(plan)))) == plan.live_bytes


@pytest.mark.parametrize(("name", "train"), NETWORKS)
def test_the_picture_is_xml_with_a_rectangle_for_each_buffer(name: str, train: bool):
    plan, names = plan_of(name, train)
    model = [node.name for node in models.network(name)[0].graph.nodes]
    held = plan.memory({}, 2)
    root = ElementTree.fromstring(memory_svg(plan, names, model, "a <title> & more", held))
    drawn = [element for element in root.iter(f"{SVG}rect") if element.get("class") == "buffer"]
    assert len(drawn) == len(boxes(plan, names))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for element in drawn:
        x, y, wide, high = (float(element.attrib[key]) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width and 0 <= y <= y + high <= height
        (title,) = element.iter(f"{SVG}title")
        assert title.text and "made by" in title.text
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert "a <title> & more" in texts and "step (launch of a kernel) and its layers" in texts
    assert any(text.startswith("bytes of the arena (") for text in texts)
    assert any(bytes_text(plan.arena_bytes) in text and ("peak" in text or "arena" in text) for text in texts)
    for phase in {step.phase for step in run_steps(plan)}:
        assert phase in texts
    bar = [element for element in root.iter(f"{SVG}rect") if element.get("class") == "held"]
    assert len(bar) == sum(bool(held[name]) for name in PARTS)
    assert sum(float(part.attrib["width"]) for part in bar) == pytest.approx(width - LEFT - RIGHT, abs=1)
    assert f"prepared {bytes_text(plan.prepared_bytes)}" in texts or not plan.prepared_bytes
    assert any(text.startswith(f"resident: {bytes_text(held['resident_bytes'])}") for text in texts)
    assert {element.get("fill") for element in drawn} <= {colour for colour, _ in KINDS.values()}


MADE = ["x", "a", "b", "c"]  # the nodes of its graph


def small_plan() -> Plan:
    """a = f(x); b = g(a) in a's place; output = h(b, c), with c made of the weight alone."""
    arena = [Buffer("arena", "float32", (30,), 120, offset=offset, node=MADE.index(name))
             for name, offset in (("a", 0), ("b", 0), ("c", 128))]
    outside = [Buffer("argument", "float32", (30,), 120, "x"), Buffer("output", "float32", (30,), 120, "0")]
    steps = [Step("forward", "f", (3, 0), (), 1, (3,), (0,), "f", flops=60), Step("forward", "g", (0, 1), (), 1, (0,),
             (1,), "g", origins=(1, 2)), Step("forward", "p", (3, 2), (), 1, (3,), (2,), "p"),
             Step("forward", "h", (1, 2, 4), (), 1, (1, 2), (4,), "h", origins=(0, 1))]
    return Plan([*arena, *outside], steps, [4], arena_bytes=256, live_bytes=256, unplanned_bytes=384)


def test_a_result_in_place_begins_within_the_step():
    a, b, c = boxes(small_plan(), MADE)
    assert [(box.name, box.begin, box.end, box.kind) for box in (a, b, c)] == [
        ("a", 0, 1.5, "product"), ("b", 1.5, 4, "other"), ("c", 2, 4, "arguments")]
    assert (a.nbytes, live_bytes([a, b, c], 4)) == (128, [128, 128, 256, 256])
    text = memory_svg(small_plan(), MADE, ["layer_one", "layer_two", "three"], "", small_plan().memory({}, 1))
    assert "b: float32 30\n128 B at 0\nstep 1 to 3\nmade by g of layer_two + three, in place of an input" in text
    assert "3: h of layer_one + two</title>" in text


def test_what_runs_hold_is_counted_once():
    """Parameters that runs read as they were given, and what was prepared of others, are told apart."""
    plan = small_plan()
    plan.buffers += [Buffer("prepared", "float32", (32,), 128), Buffer("argument", "float32", (50,), 200, "w"),
                     Buffer("argument", "float32", (10,), 40, "b")]
    plan.steps.insert(0, Step("prepare", "q", (6, 5), (), 1, (6,), (5,), "q"))
    plan.steps.append(Step("forward", "r", (5, 7, 4), (), 1, (5, 7), (4,), "r"))
    plan.prepared_bytes, plan.scratch_bytes = 128, 64
    assert plan.memory({"w": 200, "b": 40}, 3) == {
        "parameters_bytes": 240, "kept_bytes": 40, "prepared_bytes": 128, "arena_bytes": 256, "scratch_bytes": 192,
        "arrays_bytes": 240, "resident_bytes": 40 + 128 + 256 + 192 + 240}


def test_steps_that_prepare_parameters_are_left_out_unless_they_use_the_arena():
    plan = small_plan()
    prepare = Step("prepare", "q", (3,), (), 1, (3,), (), "q")
    plan.steps.insert(0, prepare)
    assert run_steps(plan) == plan.steps[1:]
    plan.steps[0] = Step("prepare", "q", (3, 0), (), 1, (3,), (0,), "q")
    assert run_steps(plan) == plan.steps


def test_a_plan_without_an_arena():
    root = ElementTree.fromstring(memory_svg(Plan(), [], [], "nothing", Plan().memory({}, 1)))
    assert not [element for element in root.iter(f"{SVG}rect") if element.get("class")]


def test_bytes_text():
    assert [bytes_text(n) for n in (0, 1000, 1536, 5 << 20, 3 << 40)] == ["0 B", "1000 B", "1.5 KiB", "5 MiB", "3 TiB"]


# -- print_summary


def net() -> mx.sym.Symbol:
    body = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=8, name="c1")
    body = mx.sym.Activation(mx.sym.BatchNorm(body, name="bn1"), act_type="relu", name="a1")
    beside = mx.sym.Convolution(body, kernel=(3, 3), num_filter=8, pad=(1, 1), no_bias=True, name="c2")
    body = mx.sym.FullyConnected(mx.sym.elemwise_add(body, beside, name="add"), num_hidden=10, name="fc")
    return mx.sym.SoftmaxOutput(body, name="softmax")


def test_print_summary(capsys: pytest.CaptureFixture[str]):
    """Text as MXNet 1.9.1 prints it for this network."""
    mx.viz.print_summary(net(), shape={"data": (2, 3, 10, 10)}, line_length=60, positions=[0.4, 0.6, 0.8, 1.0])
    rows = [("Layer (type)", "Output Shape", "Param #", "Previous Lay"), ("data(null)", "3x10x10", "0", ""),
            ("c1(Convolution)", "8x8x8", "224", "data"), ("bn1(BatchNorm)", "8x8x8", "16", "c1"),
            ("a1(Activation)", "8x8x8", "0", "bn1"), ("c2(Convolution)", "8x8x8", "576", "a1"),
            ("add(elemwise_add)", "8x8x8", "0", "a1"), ("", "", "", "c2"),
            ("fc(FullyConnected)", "10", "5130", "add"), ("softmax(SoftmaxOutput)", "10", "0", "fc")]
    lines = ["".join(text.ljust(width) for text, width in zip(row, (24, 12, 12, 12), strict=True)) for row in rows]
    expected = ["_" * 60, lines[0], "=" * 60]
    for line, following in zip(lines[1:], [*lines[2:], ""], strict=True):
        expected.append(line)
        if not following.startswith(" "):
            expected.append("_" * 60 if following else "=" * 60)
    expected += ["Total params: 5946", "_" * 60]
    assert capsys.readouterr().out.splitlines() == expected


def test_print_summary_takes_positions_as_characters(capsys: pytest.CaptureFixture[str]):
    mx.viz.print_summary(net(), {"data": (2, 3, 10, 10)}, 80, [20, 40, 60, 80])
    row = "softmax(SoftmaxOutpu10                  0                   fc                  \n"
    assert row in capsys.readouterr().out


def test_print_summary_without_shapes_says_what_it_does_not_know(capsys: pytest.CaptureFixture[str]):
    mx.viz.print_summary(net())
    printed = capsys.readouterr().out
    assert printed.count("?") > 5 and "Total params: 0, and those of 4 layers whose shapes are not known" in printed


def test_print_summary_of_several_outputs(capsys: pytest.CaptureFixture[str]):
    halves = mx.sym.SliceChannel(mx.sym.Variable("data"), num_outputs=2, name="halves")
    mx.viz.print_summary(mx.sym.elemwise_add(halves[0], halves[1]), {"data": (3, 8)})
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("halves"))
    assert row.split("  ")[0] == "halves(SliceChannel)" and " 4 and 1 more " in row


@pytest.mark.parametrize("function", ["print_summary", "plot_network"])
def test_refusals(function: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "graphviz", fake_graphviz())
    call: Callable[..., Any] = getattr(mx.viz, function)
    with pytest.raises(TypeError, match="must be Symbol"):
        call(1)
    with pytest.raises(ValueError, match="Input shape is incomplete"):
        call(net(), shape={"softmax_label": (2,)})
    with pytest.raises(mx.MXNetError, match="did you mean 'data'"):
        call(net(), shape={"dat": (2, 3, 10, 10)})


# -- plot_network


class Digraph:
    """What plot_network uses of graphviz.Digraph."""

    def __init__(self, **options: str):
        self.options, self.nodes, self.edges = options, {}, []

    def node(self, name: str, label: str, **attributes: str) -> None:
        assert name not in self.nodes
        self.nodes[name] = (label, attributes)

    def edge(self, tail_name: str, head_name: str, **attributes: str) -> None:
        self.edges.append((tail_name, head_name, attributes))


def fake_graphviz() -> ModuleType:
    module = ModuleType("graphviz")
    module.Digraph = Digraph  # type: ignore[attr-defined]
    return module


@pytest.fixture
def graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", fake_graphviz())


@pytest.mark.usefixtures("graphviz")
def test_plot_network():
    dot = mx.viz.plot_network(net(), title="net", save_format="svg", shape={"data": (2, 3, 10, 10)})
    assert dot.options == {"name": "net", "format": "svg"}
    assert list(dot.nodes) == ["data", "c1", "bn1", "a1", "c2", "add", "fc", "softmax_label", "softmax"]
    assert {name: label for name, (label, _) in dot.nodes.items() if label != name} == {
        "c1": "Convolution\n3x3/1, 8", "a1": "Activation\nrelu", "c2": "Convolution\n3x3/1, 8",
        "fc": "FullyConnected\n10"}
    assert dot.nodes["data"][1] == {"shape": "oval", "fixedsize": "true", "width": "1.3", "height": "0.8034",
                                    "style": "filled", "fillcolor": "#8dd3c7"}
    assert dot.nodes["c1"][1]["shape"] == "box" and dot.nodes["c1"][1]["fillcolor"] == "#fb8072"
    assert [(a, b, more["label"]) for a, b, more in dot.edges] == [
        ("c1", "data", "3x10x10"), ("bn1", "c1", "8x8x8"), ("a1", "bn1", "8x8x8"), ("c2", "a1", "8x8x8"),
        ("add", "a1", "8x8x8"), ("add", "c2", "8x8x8"), ("fc", "add", "8x8x8"), ("softmax", "fc", "10"),
        ("softmax", "softmax_label", "")]
    assert dot.edges[0][2] == {"dir": "back", "arrowtail": "open", "label": "3x10x10"}


@pytest.mark.usefixtures("graphviz")
def test_plot_network_shows_weights_and_dtypes_on_request():
    pooled = mx.sym.Pooling(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc").reshape((0, 0, 1)),
                            global_pool=True, pool_type="avg", name="pool")
    dot = mx.viz.plot_network(pooled, shape={"data": (4, 3)}, dtype={"data": "float64"}, hide_weights=False,
                              node_attrs={"width": "3", "color": "red"})
    assert dot.nodes["pool"][0] == "Pooling\navg, global"
    assert dot.nodes["fc"][1]["width"] == "3" and dot.nodes["fc"][1]["color"] == "red"
    assert ("fc", "fc_weight", "3(float64)") in [(a, b, more["label"]) for a, b, more in dot.edges]


@pytest.mark.usefixtures("graphviz")
def test_nodes_of_one_name_stay_apart():
    same = mx.sym.elemwise_add(mx.sym.Variable("a"), mx.sym.Variable("a"), name="sum")
    with pytest.warns(RuntimeWarning, match="the same name, and are numbered: a$"):
        dot = mx.viz.plot_network(same)
    assert list(dot.nodes) == ["a", "a (2)", "sum"]


@pytest.mark.usefixtures("graphviz")
def test_node_attrs_must_be_a_dict():
    with pytest.raises(TypeError, match="node_attrs must be a dict"):
        mx.viz.plot_network(net(), node_attrs="red")


def test_without_graphviz_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)  # importing it fails
    with pytest.raises(mx.MXNetError, match=r"pip install 'mxc-compiler\[plot\]'"):
        mx.viz.plot_network(net())


def test_the_source_for_graphviz():
    pytest.importorskip("graphviz")
    source = mx.viz.plot_network(net(), shape={"data": (2, 3, 10, 10)}).source
    assert source.startswith("digraph plot {") and 'fc -> add [label="8x8x8" arrowtail=open dir=back]' in source
