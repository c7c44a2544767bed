"""Dtype inference: both directions, attributes, the default."""
import pytest

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops import table
from mxc.compiler.passes.infer_dtype import infer_dtype
from mxc.compiler.passes.stated import attribute_dtype


def make(op, name, *inputs, **params):
    operator = table.get(op)
    return Entry(Node(operator, name, None, operator.make_params(params), inputs))


def by_name(graph, dtypes):
    return {node.name: found[0] if len(found) == 1 else found
            for node, found in zip(graph.nodes, dtypes, strict=True)}


def addition(a_attrs=None):
    a, b = Entry(variable("a", a_attrs)), Entry(variable("b"))
    return Graph([make("elemwise_add", "s", a, b)])


@pytest.mark.parametrize("attrs, known, expected", [
    ({}, {"a": "float16"}, "float16"),               # forward and back
    ({}, {"b": "int32"}, "int32"),
    ({}, {}, None),                                   # nothing is known
    ({"__dtype__": "1"}, {}, "float64"),              # a number as in files
    ({"__dtype__": "int8"}, {}, "int8"),
    ({"__dtype__": "1"}, {"a": "float32"}, "float32"),  # what is given wins
    ({"__dtype__": "-1"}, {}, None),
])
def test_partial(attrs, known, expected):
    graph = addition(attrs)
    assert by_name(graph, infer_dtype(graph, known, partial=True)) == dict.fromkeys("abs", expected)


def test_default_is_float32_only_where_nothing_is_known():
    a, b, c = (Entry(variable(n)) for n in "abc")
    s = make("elemwise_add", "s", a, make("Cast", "k", b, dtype="float16"))
    graph = Graph([s, make("tanh", "t", c)])
    assert by_name(graph, infer_dtype(graph, {})) == {
        "a": "float16", "b": "float32", "k": "float16", "s": "float16", "c": "float32", "t": "float32"}


def test_conflict_names_operator_node_inputs_and_what_was_given():
    with pytest.raises(MXNetError) as error:
        infer_dtype(addition(), {"a": "float16", "b": "float32"})
    assert str(error.value).splitlines() == [
        "elemwise_add 's': expected the same dtype, got float16 and float32",
        "  input lhs (a) = float16", "  input rhs (b) = float32",
        "given dtypes:", "  a: float16", "  b: float32"]


def test_unknown_argument():
    with pytest.raises(MXNetError, match="'aa' is no argument of this graph; did you mean 'a'"):
        infer_dtype(addition(), {"aa": "float16"})


def test_bad_attribute():
    with pytest.raises(MXNetError, match=r"'a'.*__dtype__ is '99'.*0 \(float32\)"):
        attribute_dtype(variable("a", {"__dtype__": "99"}))
