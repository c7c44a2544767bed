"""Graphs as text: what the passes' tests and MXC_DEBUG show.

    graph(data: float32[2,3,8,8], conv_weight: float32[4,3,3,3])
      conv = Convolution(data, conv_weight, kernel=(3, 3), num_filter=4, no_bias=True)
      act = Activation(conv, act_type=relu)
      return act, grad(data) = g1, add grad(conv_weight) = g2, aux(bn_moving_mean) = m

A line per node: its name, its operator, its inputs, then those parameters that are not at their default. `NAME.1` is
output 1 of a node. The last line has the outputs; an output that is not the user's says what it is for, and one whose
sink has another name than its node is `output(NAME) = ENTRY`. Names that are not plain words stand in single quotes,
and so do parameter values that contain separators outside of brackets. Of several nodes that a program gave one name,
those after the first are NAME#2, NAME#3, ...
"""
from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Sink, topological
from mxc.compiler.graph.names import distinct_names
from mxc.compiler.ops import table

_WORD = re.compile(r"[A-Za-z_][\w/-]*\Z")
_VALUE = re.compile(r"[\w.+-]+\Z")
_HEAD = re.compile(r"graph\((.*)\)\Z")
_CALL = re.compile(r"(?P<name>'[^']*'|[^\s=']+) = (?P<op>[\w.]+)\((?P<args>.*)\)\Z")
_TYPED = re.compile(r"(?P<name>'[^']*'|[^\s:']+): (?P<dtype>\w+)\[(?P<shape>[\d,]*)\]\Z")
_SINK = re.compile(r"(?:(?P<mode>add) )?(?P<kind>output|grad|aux)\((?P<name>.*)\) = (?P<entry>.*)\Z")


def graph_text(graph: Graph) -> str:
    """The graph as text, without a newline at its end. Variables whose facts are not known are shown untyped."""
    names = distinct_names(graph.nodes)
    variables = ", ".join(_quoted(names[node]) + _type_text(graph, node) for node in graph.variables)
    lines = [f"graph({variables})"]
    lines += [f"  {_node_text(node, names)}" for node in graph.nodes if node.op is not None]
    outputs = ", ".join(_output_text(e, s, names) for e, s in zip(graph.outputs, graph.sinks, strict=True))
    return "\n".join([*lines, f"  return {outputs}"])


def parse_graph(text: str) -> Graph:
    """The typed graph that `text` describes; shapes and dtypes of its nodes are inferred. Indentation is free.

    Raises MXNetError naming the line when it does not follow the form, names something that was not made before it,
    or its operator does not fit its inputs.
    """
    builder = GraphBuilder()
    names: dict[str, list[Entry]] = {}
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    outputs: list[Entry] = []
    sinks: list[Sink] = []
    finished = False
    for place, (number, line) in enumerate(lines):
        try:
            if finished:
                raise MXNetError("expected nothing after the line 'return ...'")
            if place == 0:
                _parse_head(builder, names, line)
            elif line.startswith("return "):
                outputs, sinks = _parse_outputs(names, line.removeprefix("return "))
                finished = True
            else:
                _parse_node(builder, names, line)
        except MXNetError as error:
            raise MXNetError(f"graph text, line {number} ({line}): {error}") from None
    if not finished:
        raise MXNetError("graph text: expected a last line 'return ...'")
    return builder.finish(outputs, sinks)


def _node_text(node: Node, names: Mapping[Node, str]) -> str:
    assert node.op is not None
    arguments = [_entry_text(e, names) for e in node.inputs]
    arguments += [f"{key}={_value_text(value)}" for key, value in node.op.attrs_of(node.params).items()]
    return f"{_quoted(names[node])} = {node.op.name}({', '.join(arguments)})"


def _type_text(graph: Graph, node: Node) -> str:
    if not graph.facts.shape or not graph.facts.dtype:
        return ""
    shape = graph.facts.shape[graph.ids[node]][0]
    dtype = graph.facts.dtype[graph.ids[node]][0]
    return f": {dtype or '?'}[{'?' if shape is None else ','.join(map(str, shape))}]"


def _output_text(entry: Entry, sink: Sink, names: Mapping[Node, str]) -> str:
    if sink.kind == "output" and sink.name == names[entry.node]:
        return _entry_text(entry, names)
    mode = "add " if sink.mode == "add" else ""
    return f"{mode}{sink.kind}({_quoted(sink.name)}) = {_entry_text(entry, names)}"


def _entry_text(entry: Entry, names: Mapping[Node, str]) -> str:
    return _quoted(names[entry.node]) + (f".{entry.index}" if entry.index else "")


def _quoted(name: str) -> str:
    return name if _WORD.match(name) else f"'{name}'"


def _value_text(value: str) -> str:
    plain = _VALUE.match(value) or (value[:1] in "([" and "'" not in value and '"' not in value)
    return value if plain else f"'{value}'"


def _split(text: str) -> Iterator[str]:
    """The parts of `text` between commas that are outside of brackets and quotes."""
    depth, start, quoted = 0, 0, False
    for i, char in enumerate(text):
        if char == "'":
            quoted = not quoted
        elif not quoted:
            depth += (char in "([") - (char in ")]")
            if char == "," and depth == 0:
                yield text[start:i].strip()
                start = i + 1
    if text[start:].strip():
        yield text[start:].strip()


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def _parse_head(builder: GraphBuilder, names: dict[str, list[Entry]], line: str) -> None:
    head = _HEAD.match(line)
    if not head:
        raise MXNetError("expected graph(NAME: DTYPE[DIM,DIM...], ...)")
    for part in _split(head[1]):
        typed = _TYPED.match(part)
        if not typed:
            raise MXNetError(f"expected NAME: DTYPE[DIM,DIM...], got {part}")
        shape = tuple(int(dim) for dim in typed["shape"].split(",") if dim)
        name = _unquoted(typed["name"])
        _define(names, name, [builder.variable(name, shape, typed["dtype"])])


def _parse_node(builder: GraphBuilder, names: dict[str, list[Entry]], line: str) -> None:
    call = _CALL.match(line)
    if not call:
        raise MXNetError("expected NAME = OPERATOR(INPUT, ..., PARAMETER=VALUE, ...)")
    name, inputs, attrs = _unquoted(call["name"]), [], {}
    for part in _split(call["args"]):
        key, equals, value = part.partition("=")
        if equals and not part.startswith("'"):
            attrs[key] = _unquoted(value)
        else:
            inputs.append(_parse_entry(names, part))
    op = table.get(call["op"])
    _define(names, name, builder.add(Node(op, name, attrs, op.parse_attrs(attrs, name), inputs)))


def _parse_outputs(names: dict[str, list[Entry]], text: str) -> tuple[list[Entry], list[Sink]]:
    outputs, sinks = [], []
    for part in _split(text):
        sink = _SINK.match(part)
        entry = _parse_entry(names, sink["entry"] if sink else part)
        outputs.append(entry)
        if sink:
            sinks.append(Sink(sink["kind"], _unquoted(sink["name"]), sink["mode"] or "write"))
        else:
            sinks.append(Sink("output", entry.node.name))
    return outputs, sinks


def _parse_entry(names: dict[str, list[Entry]], text: str) -> Entry:
    name, dot, index = text.rpartition(".")
    if not dot or not index.isdigit():
        name, index = text, "0"
    entries = names.get(_unquoted(name))
    if entries is None or int(index) >= len(entries):
        raise MXNetError(f"{text} was not made before")
    return entries[int(index)]


def _define(names: dict[str, list[Entry]], name: str, entries: list[Entry]) -> None:
    if name in names:
        raise MXNetError(f"{name!r} is made twice")
    names[name] = entries


def same_graph(one: Graph, other: Graph) -> bool:
    """True when both compute the same from the same variables: the texts agree but for the operator nodes' names."""
    return _canonical(one) == _canonical(other)


def digest(graph: Graph) -> str:
    """A digest of all that `same_graph` compares, except the names of variables."""
    return hashlib.sha256(_canonical(graph, has_names=False).encode()).hexdigest()[:16]


def _canonical(graph: Graph, has_names: bool = True) -> str:
    """The graph's text with operator nodes named by their place; variables too, unless it `has_names`."""
    renamed: dict[Node, Node] = {}
    for node in topological(graph.outputs):
        name = node.name if node.is_variable and has_names else f"n{len(renamed)}"
        inputs = [Entry(renamed[e.node], e.index) for e in node.inputs]
        renamed[node] = Node(node.op, name, node.attrs, node.params, inputs, node.subgraphs)
    sinks = [Sink(s.kind, s.name if has_names and s.kind != "output" else "", s.mode) for s in graph.sinks]
    new = Graph([Entry(renamed[e.node], e.index) for e in graph.outputs], sinks, graph.facts)
    return graph_text(new)
