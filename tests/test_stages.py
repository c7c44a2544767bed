"""The stages: their order, names, printing and skipping, and that a program computes the same without one of them."""
from __future__ import annotations

import inspect
import re
from pathlib import Path

import models
import pytest
from documents import blocks
from pass_checks import assert_graph, assert_same_numbers, options
from programs import lowered as lowered_program
from reader_checks import BOTH, NOT, THRESHOLDS, Report, lowered, wrong
from reader_networks import SIZES, network

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry
from mxc.compiler.graph.phases import BACKWARD, FORWARD, PREPARE
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.kernel.ir import LoopKernel, Store, axis, const
from mxc.compiler.lowering import stage, stages
from mxc.compiler.lowering.fuse import fuse, refusals
from mxc.compiler.lowering.launches import Launch, Storage, by_phase
from mxc.compiler.lowering.share_code import ALIKE
from mxc.compiler.lowering.stage import GIVEN, Program, lowering_stage
from mxc.compiler.lowering.stages import STAGES
from mxc.compiler.lowering.text import launches_text
from mxc.compiler.passes import pipeline
from mxc.compiler.passes.pipeline import PASSES
from mxc.compiler.targets.cpu.target import cpu_target
from mxc.compiler.transformation import check_names, check_order

OPTIONAL = [each.name for each in STAGES if each.optional]
# Networks of reader_networks.py that each optional stage changes once its thresholds are lowered.
SEEDS = (11, 77, 343, 693)
OF_GPUS = {"split_depth"}  # stages that a CPU does not want
FIGURES = ("chains", "joins", "reductions", "winograd")  # groups of a target's figures by which stages decide
LOWERED = {(module, name): value for module, own in THRESHOLDS.items() for name, value in own.items()
           if module.removeprefix("lowering.") in OPTIONAL or name.partition(".")[0] in FIGURES
           if value not in (BOTH, NOT)}


# -- the two lists


@pytest.mark.parametrize(("module", "name", "message"), [
    (pipeline, "PASSES", "layout needs primitive, which nothing before it gives"),
    (stages, "STAGES", "plan_memory needs launches, outputs, which nothing before it gives")])
def test_the_order_is_checked_when_the_list_is_imported(module, name, message):
    source = Path(module.__file__).read_text()
    (listed,) = re.findall(rf"^{name} = (\(.*?\))$", source, re.M | re.S)
    exec(compile(source, name, "exec"), {"__name__": name})
    with pytest.raises(MXNetError, match=message):
        exec(compile(source.replace(listed, f"{listed}[::-1]"), name, "exec"), {"__name__": name})


def test_stages_need_and_give_what_a_program_has():
    facts = {*GIVEN, *(fact for each in STAGES for fact in (*each.needs, *each.gives))}
    assert facts <= {*Program.__dataclass_fields__, "target", "prefers"}


@pytest.mark.parametrize("each", STAGES, ids=lambda each: each.name)
def test_a_stages_arguments_are_its_needs(each):
    for function in (each.function, each.instead) if each.instead else (each.function,):
        parameters = inspect.signature(function).parameters.values()
        assert [p.name for p in parameters if p.default is p.empty] == list(each.needs)


@pytest.mark.parametrize("each", (*PASSES, *STAGES), ids=lambda each: each.name)
def test_a_stage_and_a_pass_have_the_name_of_their_file(each):
    assert each.function.__module__.rpartition(".")[2] == each.name == each.function.__name__


@pytest.mark.parametrize(("kind", "listed"), [("pass", PASSES), ("stage", STAGES)])
def test_the_tables_of_the_documents_are_the_lists(kind, listed):
    rows = [[each.name, ", ".join(each.needs), ", ".join(each.gives), "yes" if each.optional else "no", each.summary]
            for each in listed]
    table = "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |")
                    for row in ([kind, "needs", "gives", "optional", "what it does"], *rows)).split("\n", 1)
    wanted = f"\n{table[0]}\n|{'---|' * 5}\n{table[1]}\n"
    if wanted not in (Path(__file__).parents[1] / "docs" / "design.md").read_text():
        pytest.fail(f"docs/design.md lacks this table:\n{wanted}", pytrace=False)


@pytest.mark.parametrize(("variable", "value", "message"), [
    ("MXC_SKIP", "cse, chains,fuse", ""), ("MXC_PRINT", "gradient, plan_memory,plan", ""),
    ("MXC_SKIP", "chain", "MXC_SKIP: there is no pass or stage 'chain'; expected one of .*; did you mean 'chains'"),
    ("MXC_SKIP", "lower", "MXC_SKIP: 'lower' cannot be left out: what follows needs launches, outputs; expected one of "
                          f".*{', '.join(OPTIONAL)}$"),
    ("MXC_SKIP", "layout", "'layout' cannot be left out: what follows needs packed"),
    ("MXC_PRINT", "plans", "MXC_PRINT: there is no pass or stage 'plans'; expected one of .*; did you mean 'plan'")])
def test_names_in_the_environment(monkeypatch, variable, value, message):
    monkeypatch.setenv(variable, value)
    if not message:
        check_names((*PASSES, *STAGES))
        return
    with pytest.raises(MXNetError, match=message):
        check_names((*PASSES, *STAGES))


# -- printing


def launch(storage: Storage, *loads: Storage) -> Launch:
    kernel = LoopKernel("k", ("float32",), (4,), (), (), (Store(0, axis(0), const(0.5, "float32")),))
    return Launch("forward", "set", kernel, [storage])


def program(*launches: Launch) -> Program:
    return Program(parse_graph("graph(x: float32[4])\n y = exp(x)\n return y"), options(), {"x"}, set(),
                   launches=list(launches))


@lowering_stage(needs=("launches",))
def doubled(launches):
    """Each launch twice."""
    return [*launches, *launches]


@lowering_stage(needs=("launches",))
def kept(launches):
    return list(launches)


@pytest.mark.parametrize(("level", "names", "change", "none"), [
    ("2", "kept", False, False), ("0", "doubled,kept", True, False), ("3", "", True, False), ("4", "", True, True)])
def test_a_stage_prints_what_it_changed_and_its_time(monkeypatch, capsys, level, names, change, none):
    monkeypatch.setenv("MXC_DEBUG", level)
    monkeypatch.setenv("MXC_PRINT", names)
    storage = Storage("arena", "float32", (4,), node=1)
    made = program(launch(storage))
    doubled.run(made)
    kept.run(made)
    (digest,) = set(re.findall(r"loop (\w+)", launches_text(made.launches)))
    line = rf"forward  set \(loop {digest} \[4\]\):  -> arena\[y\] float32\[4\]\n"
    expected = rf"-- after doubled: 1 -> 2 launches, \d+\.\d ms\n{line}{line}" if change else ""
    expected += r"-- kept: no change, \d+\.\d ms\n" if none else ""
    assert re.fullmatch(expected, capsys.readouterr().err)


def test_nothing_is_made_text_that_is_not_printed(monkeypatch):
    def refused(*_):
        raise AssertionError("made text")

    monkeypatch.setattr(stage, "launches_text", refused)
    monkeypatch.setitem(fuse.function.__globals__, "refusals", refused)
    monkeypatch.setenv("MXC_DEBUG", "2")
    graph = mx.sym.sum(mx.sym.exp(mx.sym.Variable("x"))).graph
    assert lowered_program(graph, {"x": (3, 4)}, skip=()).launches
    for name in ("fuse", "lower"):
        monkeypatch.setenv("MXC_PRINT", name)
        with pytest.raises(AssertionError, match="made text"):
            lowered_program(graph, {"x": (3, 4)}, skip=())


def test_storages_of_one_name_are_told_apart():
    storages = [Storage("arena", "float32", (4,), "partial0") for _ in range(2)]
    lines = launches_text([launch(s) for s in (*storages, storages[0])]).splitlines()
    assert [line.partition(" -> ")[2] for line in lines] == [
        "arena[partial0] float32[4]", "arena[partial0]#2 float32[4]", "arena[partial0] float32[4]"]


def test_kernels_that_share_code_have_one_digest(monkeypatch, capsys):
    """Of scalings by other numbers, with and without these as arguments."""
    monkeypatch.setenv("MXC_PRINT", "lower,share_code")
    net = mx.sym.Group([mx.sym.tanh(mx.sym.Variable(f"x{i}") * (2 + i)) for i in range(ALIKE)])
    net.simple_bind(mx.cpu(), grad_req="null", **{f"x{i}": (4 + i,) for i in range(ALIKE)}).compiled()
    before, after = re.split("-- after share_code.*", capsys.readouterr().err)
    assert [len(set(re.findall(r"loop (\w+)", text))) for text in (before, after)] == [ALIKE, 1]


REFUSED = {
    "two anchors": ("x: float32[4,8], w: float32[8,8], v: float32[8,8]", "a = dot(x, w)\n b = dot(a, v)\n return b",
                    ["a -> b: the form anchor shares no kernel with the form anchor behind it"]),
    "phases": ("x: float32[4], w: float32[4]", "a = exp(w)\n b = elemwise_add(x, a)\n return b",
               ["a -> b: one runs in the phase prepare, the other in forward"]),
    "axes": ("x: float32[40,80]", "a = sum(x, axis=(0,), keepdims=True)\n b = broadcast_add(x, a)\n"
             "c = sum(b, axis=(1,))\n return c", ["b -> c: reductions over different axes or shapes"]),
    "a view": ("x: float32[4,8], w: float32[16,8], v: float32[8,8]",
               "a = dot(x, v)\n b = Reshape(a, shape=(2, 16))\n c = dot(b, w)\n return c",
               ["a -> c: an epilogue holds elementwise operators only"]),
    "a view between": ("x: float32[4,8]", "a = exp(x)\n b = Reshape(a, shape=(2, 16))\n c = sum(b, axis=(1,))\n"
                       "return c", ["a -> c: the view b lies between them"]),
    "nothing": ("x: float32[4]", "a = exp(x)\n b = sin(a)\n return b", []),
}


@pytest.mark.parametrize("name", REFUSED)
def test_why_nodes_do_not_fuse(name):
    head, text, expected = REFUSED[name]
    graph, given = parse_graph(f"graph({head})\n{text}"), options(static=frozenset("wv"))
    assert list(refusals(graph, given, fuse(graph, given))) == expected


def test_reasons_are_printed_with_the_groups(monkeypatch, capsys):
    monkeypatch.setenv("MXC_PRINT", "fuse")
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    net = mx.sym.sum(mx.sym.dot(x, w, name="product"), axis=1, name="total")
    net.simple_bind(mx.cpu(), grad_req="null", x=(4, 8), w=(8, 16)).compiled()
    printed = capsys.readouterr().err
    assert re.match(r"-- after fuse: groups, \d+\.\d ms\n", printed)
    groups, refused = printed.split("-- not fused\n")
    assert "forward anchor" in groups and "the form anchor shares no kernel with the form reduce behind it" in refused


# -- skipping


def test_without_a_stage_the_program_is_that_of_before(monkeypatch):
    monkeypatch.setenv("MXC_SKIP", "doubled")
    made = program(launch(Storage("arena", "float32", (4,))))
    before = made.launches
    doubled.run(made)
    assert made.launches is before
    doubled_again = doubled(before)
    assert len(doubled_again) == 2  # a call is the function alone


@pytest.mark.parametrize("train", [False, True])
def test_launches_are_in_the_order_of_the_phases_without_a_schedule(train):
    """Memory is planned by this order, and phases run one after the other."""
    symbol, shapes = models.network("lenet")
    requests = {n: "write" for n in symbol.list_arguments() if n not in shapes} if train else {}
    launches = lowered_program(symbol.graph, shapes, None, requests, train, skip=OPTIONAL).launches
    assert list(dict.fromkeys(each.phase for each in launches)) == [FORWARD, BACKWARD] if train else [PREPARE, FORWARD]
    assert by_phase(launches) == launches


def changing(seed: int) -> list[str]:
    """The stages that change a network."""
    net = network(seed)
    shapes = {n.name: net.graph.shape(Entry(n)) for n in net.graph.variables}
    dtypes = {n.name: net.graph.dtype(Entry(n)) for n in net.graph.variables}

    def launches(*skip: str) -> list[tuple]:
        made = lowered_program(net.graph, shapes, dtypes, net.grad_req, net.is_train, cpu_target(), skip=skip)
        return [(each.phase, each.label, each.kernel) for each in made.launches]

    return [name for name in OPTIONAL if launches(name) != launches()]


def test_random_networks_without_a_stage(monkeypatch):
    """Each computes what the references do, in poisoned memory, as it does with all stages; every stage changes one of
    the networks at least."""
    missing = set(OPTIONAL) - OF_GPUS
    with lowered(LOWERED):
        for seed in SEEDS:
            assert not wrong(network(seed), Report()), f"seed {seed}"
            names = changing(seed)
            missing.difference_update(names)
            for skip in (*names, ",".join(names)):
                monkeypatch.setenv("MXC_SKIP", skip)
                what = wrong(network(seed), Report())
                monkeypatch.delenv("MXC_SKIP")
                assert not what, f"seed {seed} without {skip}: {what}"
        others = [seed for seed in range(0, 1000 * bool(missing), SIZES) if missing.intersection(changing(seed))]
        assert not missing, (f"none of SEEDS is changed by {missing}, but {others} are; where it changes none, lower "
                             "what it decides by in THRESHOLDS of reader_checks.py")


# -- the guide


def test_the_pass_of_the_guide():
    pass_, _ = blocks("docs/adding-a-pass.md", "python")
    names: dict = {}
    exec(pass_, names)
    text = "graph(x: float32[4])\n a = exp(x)\n b = elemwise_mul(a, a)\n c = elemwise_mul(a, x)\n return b, c"
    graph = parse_graph(text)
    after = names["squares"](graph, options())
    assert_graph(after, text.replace("elemwise_mul(a, a)", "square(a)"))
    assert_same_numbers(graph, after)
    check_order((*PASSES, names["squares"]), pipeline.INFERRED)


def test_the_stage_of_the_guide():
    _, stage_ = blocks("docs/adding-a-pass.md", "python")
    names: dict = {}
    exec(stage_, names)
    made = lowered_program(mx.sym.sum(mx.sym.tanh(mx.sym.Variable("x"))).graph, {"x": (70, 500)}, skip=())
    kept = list(made.launches)
    assert len(kept) > 1
    made.launches.insert(1, launch(Storage("arena", "float32", (4,))))
    names["unread"].run(made)
    assert made.launches == kept
    check_order((*STAGES[:-1], names["unread"], STAGES[-1]), GIVEN)
