"""Graphs as text, there and back, and the check of a graph."""
import pytest

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.graph import Entry, Graph, Node, Sink, variable
from mxc.compiler.graph.text import graph_text, parse_graph
from mxc.compiler.ops import table

TEXTS = [
    """graph(a: float32[2,3], b: float32[4,3])
  d = dot(a, b, transpose_b=True)
  t = tanh(d)
  m = mean(t, axis=(1,), keepdims=True)
  return t, grad(u) = m, add grad(v) = d, aux(s) = t""",
    """graph('a b': float16[1], x: int64[])
  'n.1' = negative('a b')
  c = Cast(x, dtype=float32)
  return 'n.1', output(other) = c, x""",
    """graph()
  z = _zeros(shape=(2, 3))
  return z, z""",
    """graph('s/a:0': uint8[5])
  return 's/a:0'""",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back(text):
    graph = parse_graph(text)
    assert graph_text(graph) == text
    check_graph(graph)


def test_facts_are_inferred():
    graph = parse_graph("graph(a: float16[2,3])\n s = sum(a, axis=1)\n c = Cast(s, dtype=int8)\n return c")
    assert graph.facts.shape == [[(2, 3)], [(2,)], [(2,)]]
    assert graph.facts.dtype == [["float16"], ["float16"], ["int8"]]


@pytest.mark.parametrize("text, says", [
    ("graph(a: float32[2])\n return b", "line 2.*b was not made before"),
    ("graph(a: float32[2])\n a = tanh(a)\n return a", "'a' is made twice"),
    ("graph(a: float32[2])\n t = tanh(a)", "expected a last line 'return"),
    ("graph(a: float32)\n return a", "line 1.*expected NAME: DTYPE"),
    ("graph(a: float32[2])\n t = tanhh(a)\n return t", "line 2.*'tanhh' is not known; did you mean 'tanh'"),
    ("graph(a: float32[2])\n t = clip(a, a_min=0)\n return t", "line 2.*'a_max'.*missing"),
    ("graph(a: float32[2], b: float32[3])\n t = elemwise_add(a, b)\n return t", r"elemwise_add 't'.*\(2,\) and \(3,\)"),
    ("graph(a: float32[2])\n t = tanh(a)\n return t.1", "t.1 was not made before"),
])
def test_bad_text_is_refused(text, says):
    with pytest.raises(MXNetError, match=says):
        parse_graph(text)


def node_of(op, name, *inputs, **params):
    operator = table.get(op)
    return Node(operator, name, None, operator.make_params(params), inputs)


def test_check_finds_arity():
    a = variable("a")
    graph = Graph([Entry(node_of("elemwise_add", "s", Entry(a)))])
    with pytest.raises(MXNetError, match=r"s.* takes lhs, rhs; it has 1 inputs"):
        check_graph(graph)


def test_check_finds_an_output_that_is_not_there():
    a = variable("a")
    with pytest.raises(MXNetError, match=r"reads output 3 of .*a.*, which has 1"):
        check_graph(Graph([Entry(node_of("tanh", "t", Entry(a, 3)))]))


def broken(change):
    graph = parse_graph("graph(a: float32[2,3])\n t = tanh(a)\n return t, grad(a) = t")
    change(graph)
    return graph


@pytest.mark.parametrize("change, says", [
    (lambda g: g.facts.shape.__setitem__(1, [(2, 4)]), r"is stated to give \['float32'\] \[\(2, 4\)\]; inference"),
    (lambda g: g.facts.shape.__setitem__(1, [None]), "1 outputs; known are shapes"),
    (lambda g: g.facts.dtype.pop(), "facts on 2 shapes and 1 dtypes for 2 nodes"),
    (lambda g: g.sinks.pop(), "1 sinks for 2 outputs"),
    (lambda g: g.sinks.__setitem__(0, Sink("input", "a")), "is no sink"),
    (lambda g: g.nodes.reverse(), "ids are not the places"),
])
def test_check_finds_what_is_broken(change, says):
    with pytest.raises(MXNetError, match=says):
        check_graph(broken(change))


def test_check_finds_a_gradient_of_another_shape():
    graph = parse_graph("graph(a: float32[2,3])\n t = sum(a, axis=1)\n return t, grad(a) = t")
    with pytest.raises(MXNetError, match=r"grad of 'a' is float32 \(2,\); the variable is float32 \(2, 3\)"):
        check_graph(graph)


def test_check_finds_two_variables_of_one_name():
    one, two = variable("a"), variable("a")
    graph = Graph([Entry(one), Entry(two)])
    graph.facts.shape, graph.facts.dtype = [[(2,)], [(2,)]], [["float32"], ["float32"]]
    with pytest.raises(MXNetError, match="two nodes have the name 'a'"):
        check_graph(graph)
