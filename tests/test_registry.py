"""The frame around passes: order, skipping, checking and printing."""
from __future__ import annotations

import pytest
from pass_checks import options

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Graph
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.passes.pipeline import INFERRED, PASSES
from mxc.compiler.passes.registry import check_names, check_order, graph_pass

SMALL = """graph(x: float32[2,3])
  y = exp(x)
  z = log(y)
  return z"""


@graph_pass(needs=("shape",))
def only_exp(graph: Graph, options: Options) -> Graph:
    return Graph([graph.outputs[0].node.inputs[0]], graph.sinks, None)


@graph_pass(needs=("shape",), gives=("bare",))
def unchanged(graph: Graph, options: Options) -> Graph:
    return graph


@graph_pass(needs=("bare",))
def late(graph: Graph, options: Options) -> Graph:
    return graph


def test_a_pass_has_its_functions_name_and_is_optional_when_it_gives_nothing():
    assert (only_exp.name, only_exp.optional) == ("only_exp", True)
    assert (unchanged.name, unchanged.optional) == ("unchanged", False)


def test_the_pipelines_passes_find_what_they_need():
    check_order(PASSES, INFERRED)


def test_a_pass_before_what_it_needs_is_refused():
    check_order([unchanged, late], ["shape"])
    with pytest.raises(MXNetError, match="late needs bare"):
        check_order([late, unchanged], ["shape"])


def test_skip_leaves_out_an_optional_pass(monkeypatch):
    graph = parse_graph(SMALL)
    monkeypatch.setenv("MXC_SKIP", "only_exp, other")
    assert only_exp(graph, options()) is graph


@pytest.mark.parametrize(("skip", "message"), [
    ("only_exp", ""), ("only_exp,fuse", ""),
    ("only_xp", "no pass 'only_xp'; expected .*; did you mean 'only_exp'"),
    ("unchanged", "'unchanged' cannot be left out.*bare.*one of only_exp, fuse"),
])
def test_skip_names_optional_passes(monkeypatch, skip, message):
    monkeypatch.setenv("MXC_SKIP", skip)
    if not message:
        check_names([only_exp, unchanged], ["fuse"])
        return
    with pytest.raises(MXNetError, match=message):
        check_names([only_exp, unchanged], ["fuse"])


def test_print_names_what_can_be_printed(monkeypatch):
    monkeypatch.setenv("MXC_PRINT", "only_exp, plan")
    check_names([only_exp, unchanged], ["fuse"], ["plan"])
    monkeypatch.setenv("MXC_PRINT", "plans")
    with pytest.raises(MXNetError, match=r"MXC_PRINT: there is no 'plans'; expected .*; did you mean 'plan'"):
        check_names([only_exp, unchanged], ["fuse"], ["plan"])


def test_check_finds_a_graph_that_a_pass_broke(monkeypatch):
    graph = parse_graph(SMALL)
    monkeypatch.delenv("MXC_CHECK", raising=False)
    only_exp(graph, options())
    monkeypatch.setenv("MXC_CHECK", "1")
    with pytest.raises(MXNetError, match="broken after pass only_exp"):
        only_exp(graph, options())


@pytest.mark.parametrize(("variable", "value", "printed"), [
    ("MXC_DEBUG", "0", ""), ("MXC_DEBUG", "2", ""), ("MXC_PRINT", "late", ""),
    ("MXC_DEBUG", "3", "-- unchanged: no change\n"), ("MXC_PRINT", "late,unchanged", "-- unchanged: no change\n"),
])
def test_what_is_printed(monkeypatch, capsys, variable, value, printed):
    for name in ("MXC_DEBUG", "MXC_PRINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    unchanged(parse_graph(SMALL), options())
    assert capsys.readouterr() == ("", printed)


def test_a_changed_graph_is_printed_whole(monkeypatch, capsys):
    monkeypatch.setenv("MXC_PRINT", "swapped")

    @graph_pass()
    def swapped(graph: Graph, options: Options) -> Graph:
        return parse_graph("graph(x: float32[2,3])\n y = sin(x)\n return y")

    swapped(parse_graph(SMALL), options())
    assert capsys.readouterr().err == ("-- after swapped: 3 -> 2 nodes\ngraph(x: float32[2,3])\n"
                                       "  y = sin(x)\n  return y\n")


@pytest.mark.parametrize(("grad_req", "wants"), [
    ({}, False), ({"w": "null"}, False), ({"w": "null", "v": "add"}, True)])
def test_options_know_whether_gradients_are_wanted(grad_req, wants):
    assert options(grad_req=grad_req).wants_gradients is wants
