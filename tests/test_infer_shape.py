"""Shape inference: both directions, partial knowledge, attributes, what the errors say."""
import pytest

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.check import check_graph
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.graph.text import graph_text
from mxc.compiler.ops import table
from mxc.compiler.passes.infer import infer
from mxc.compiler.passes.infer_shape import infer_shape
from mxc.compiler.passes.stated import attribute_shape


def make(op, name, *inputs, **params):
    operator = table.get(op)
    return Entry(Node(operator, name, None, operator.make_params(params), inputs))


def variables(names, **attrs):
    return [Entry(variable(name, attrs.get(name))) for name in names]


def shapes_of(graph, known, partial=True):
    return {node.name: found[0] for node, found in zip(graph.nodes, infer_shape(graph, known, partial), strict=True)}


def fully_connected(**attrs):
    x, w, b = variables(["x", "w", "b"], **attrs)
    return Graph([make("FullyConnected", "fc", x, w, b, num_hidden=4)])


def convolution(**params):
    x, w, b = variables(["x", "w", "b"])
    return Graph([make("Convolution", "conv", x, w, b, kernel=(3, 3), num_filter=4, **params)])


def addition(**attrs):
    return Graph([make("elemwise_add", "s", *variables("ab", **attrs))])


# Asked of MXNet 1.9.1, but for None, which it writes ().
@pytest.mark.parametrize("graph, known, expected", [
    (addition(), {"a": (2, 0), "b": (0, 3)}, {"a": (2, 3), "b": (2, 3), "s": (2, 3)}),
    (addition(b={"__shape__": "(0, 3)"}), {"a": (2, 0)}, {"a": (2, 3), "b": (2, 3), "s": (2, 3)}),
    (addition(), {}, {"a": None, "b": None, "s": None}),
    (fully_connected(), {"x": (0, 5)}, {"x": (0, 5), "w": (4, 5), "b": (4,), "fc": (0, 4)}),
    (fully_connected(w={"__shape__": "(4, 5)"}), {"x": (2, 3), "w": (4, 3)},
     {"x": (2, 3), "w": (4, 3), "b": (4,), "fc": (2, 4)}),
    (convolution(), {"x": (0, 3, 0, 0)}, {"x": (0, 3, 0, 0), "w": (4, 3, 3, 3), "b": (4,), "conv": (0, 4, 0, 0)}),
    (Graph([make("elemwise_add", "s", make("_zeros", "z", shape=(0, 3)), *variables("a"))]), {"a": (2, 3)},
     {"z": (2, 3), "a": (2, 3), "s": (2, 3)}),
    (Graph([make("Reshape", "r", *variables("a"), shape=(0, -1))]), {"a": (0, 3, 4)}, {"a": (0, 3, 4), "r": (0, 0)}),
    (Graph([make("SoftmaxOutput", "s", *variables(["a", "label"]))]), {"a": (3, 4)},
     {"a": (3, 4), "label": (3,), "s": (3, 4)}),
])
def test_partial(graph, known, expected):
    assert shapes_of(graph, known) == expected


def test_knowledge_goes_back_through_a_chain():
    (a,) = variables("a")
    chain = a
    for i in range(20):
        chain = make("tanh", f"t{i}", chain)
    graph = Graph([make("elemwise_add", "s", chain, *variables("b"))])
    assert shapes_of(graph, {"b": (2, 3)})["a"] == (2, 3)


def test_several_outputs():
    (a,) = variables("a")
    graph = Graph([make("SliceChannel", "p", a, num_outputs=2, axis=1)])
    assert infer_shape(graph, {"a": (2, 6)}) == [[(2, 6)], [(2, 3), (2, 3)]]


@pytest.mark.parametrize("batch", [0, -1])
def test_unknown_dimensions_name_argument_and_dimension(batch):
    with pytest.raises(MXNetError) as error:
        infer_shape(fully_connected(), {"x": (batch, 10)})
    text = str(error.value)
    assert "argument 'x': dimension 0 is unknown in (0, 10)" in text
    assert f"given shapes:\n  x: ({batch}, 10)" in text


def test_a_long_list_of_given_shapes_is_cut():
    names = [f"v{i}" for i in range(12)]
    total, *rest = variables(names)
    for i, other in enumerate(rest):
        total = make("elemwise_add", f"add{i}", total, other)
    with pytest.raises(MXNetError) as error:
        infer_shape(Graph([total]), {name: (i + 1,) for i, name in enumerate(names)})
    assert str(error.value).splitlines()[-2:] == ["  v9: (10,)", "  and 2 more"]


def test_nothing_known():
    with pytest.raises(MXNetError, match="argument 'a': nothing is known of its shape"):
        infer_shape(addition(), {})


@pytest.mark.parametrize("graph, known, parts", [
    (fully_connected(), {"x": (2, 3), "w": (4, 5)},
     ["FullyConnected 'fc': ", "(4, 5)", "(4, 3)", "input data (x) = (2, 3)", "input weight (w) = (4, 5)",
      "given shapes:\n  x: (2, 3)\n  w: (4, 5)"]),
    (convolution(), {"x": (1, 3, 8, 8), "w": (4, 5, 3, 3)},
     ["Convolution 'conv': ", "(4, 5, 3, 3)", "(4, 3, 3, 3)", "input data (x) = (1, 3, 8, 8)"]),
    (Graph([make("Concat", "c", *variables("ab"), num_args=2, dim=1)]), {"a": (2, 3), "b": (3, 4)},
     ["Concat 'c': ", "(a) = (2, 3)", "(b) = (3, 4)"]),
    (addition(), {"a": (2, 3), "b": (2, 3, 4)},
     ["elemwise_add 's': ", "(2, 3) and (2, 3, 4)", "input rhs (b) = (2, 3, 4)"]),
])
def test_conflicts_name_operator_node_and_shapes(graph, known, parts):
    with pytest.raises(MXNetError) as error:
        infer_shape(graph, known)
    for part in parts:
        assert part in str(error.value)


def test_unknown_argument():
    with pytest.raises(MXNetError, match=r"'datta' is no argument of this graph.*its arguments: x, w, b"):
        infer_shape(fully_connected(), {"datta": (2, 3)})


@pytest.mark.parametrize("text, expected", [("(2, 3)", (2, 3)), ("[2,0]", (2, 0)), ("5", (5,)), ("()", ()),
                                            ("(-1, 3)", (-1, 3)), ("None", None), ("(8L, 3L)", (8, 3))])
def test_shape_attribute(text, expected):
    assert attribute_shape(variable("a", {"__shape__": text})) == expected


def test_bad_shape_attribute():
    with pytest.raises(MXNetError, match=r"'a': its attribute __shape__ is '\(2, x\)'"):
        attribute_shape(variable("a", {"__shape__": "(2, x)"}))


def test_infer_completes_creation_operators():
    graph = Graph([make("elemwise_add", "s", make("_zeros", "z", shape=(0, 3)), *variables("a"))])
    typed = infer(graph, {"a": (2, 3)}, {})
    check_graph(typed)
    assert graph_text(typed) == ("graph(a: float32[2,3])\n  z = _zeros(shape=(2, 3))\n"
                                 "  s = elemwise_add(z, a)\n  return s")
