"""The frame around passes: order, skipping, checking and printing. That around stages is in test_stages.py."""
from __future__ import annotations

import re

import pytest
from pass_checks import options

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Graph
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.passes.registry import graph_pass
from mxc.compiler.transformation import check_order

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


def test_a_pass_before_what_it_needs_is_refused():
    check_order([unchanged, late], ["shape"])
    with pytest.raises(MXNetError, match="late needs bare"):
        check_order([late, unchanged], ["shape"])
    with pytest.raises(MXNetError, match="late is listed twice"):
        check_order([unchanged, late, late], ["shape"])


def test_skip_leaves_out_an_optional_pass(monkeypatch):
    graph = parse_graph(SMALL)
    monkeypatch.setenv("MXC_SKIP", "only_exp, other")
    assert only_exp(graph, options()) is graph


def test_check_finds_a_graph_that_a_pass_broke(monkeypatch):
    graph = parse_graph(SMALL)
    monkeypatch.delenv("MXC_CHECK", raising=False)
    only_exp(graph, options())
    monkeypatch.setenv("MXC_CHECK", "1")
    with pytest.raises(MXNetError, match="broken after pass only_exp"):
        only_exp(graph, options())


@pytest.mark.parametrize(("level", "names", "printed"), [
    ("0", "late", ""), ("0", "late,unchanged", ""), ("3", "", ""), ("4", "", r"-- unchanged: no change, \d+\.\d ms\n")])
def test_what_an_unchanged_graph_prints(monkeypatch, capsys, level, names, printed):
    monkeypatch.setenv("MXC_DEBUG", level)
    monkeypatch.setenv("MXC_PRINT", names)
    unchanged(parse_graph(SMALL), options())
    out, err = capsys.readouterr()
    assert out == "" and re.fullmatch(printed, err)


@pytest.mark.parametrize(("level", "names", "is_printed"), [
    ("0", "", False), ("2", "late", False), ("0", "late,swapped", True), ("3", "", True)])
def test_a_changed_graph_is_printed_whole(monkeypatch, capsys, level, names, is_printed):
    monkeypatch.setenv("MXC_DEBUG", level)
    monkeypatch.setenv("MXC_PRINT", names)

    @graph_pass()
    def swapped(graph: Graph, options: Options) -> Graph:
        return parse_graph("graph(x: float32[2,3])\n y = sin(x)\n return y")

    swapped(parse_graph(SMALL), options())
    printed = r"-- after swapped: 3 -> 2 nodes, \d+\.\d ms\ngraph\(x: float32\[2,3\]\)\n  y = sin\(x\)\n  return y\n"
    assert re.fullmatch(printed if is_printed else "", capsys.readouterr().err)


@pytest.mark.parametrize(("grad_req", "wants"), [
    ({}, False), ({"w": "null"}, False), ({"w": "null", "v": "add"}, True)])
def test_options_know_whether_gradients_are_wanted(grad_req, wants):
    assert options(grad_req=grad_req).wants_gradients is wants
