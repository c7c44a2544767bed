"""Symbol JSON: reads what every MXNet version wrote, writes what MXNet 1.9.1 reads back.

Read: attributes under `attrs`, `attr` or `param` (merged), entries of two or three integers, subgraphs, the upgrades of
`legacy`. Node order, names and attributes survive reading and writing; what no output needs is dropped, as in MXNet.
"""
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from mxc.compiler.error import ModelFileError, MXNetError, UnsupportedError, nearest
from mxc.compiler.graph import legacy
from mxc.compiler.graph.compose import check_auxiliary, inner_params, input_names, is_user_key
from mxc.compiler.graph.control_flow import check_control_flow
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.graph.legacy import Record
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.system import input_files

_INTERNAL = "_mxc_"  # Names begin so where only passes make the operator: no file holds one.
_IN_PYTHON = ": a program that has it in Python registers it by mx.operator.register before it loads the model"
_OWN = " (an operator of a program's own is registered, as by mx.operator.elementwise, before the model is loaded)"
_TYPE_NAMES = {dict: "an object", list: "a list", str: "a string", int: "an integer"}


def read_file(path: str | Path) -> Graph:
    """The graph in a Symbol JSON file.

    Raises ModelFileError (path, byte offset where there is one, reason) for a file that cannot be read or is not such
    a graph, UnsupportedError naming all operators and attributes that mxc does not know.
    """
    return read_bytes(input_files.content(path), str(path))


def read_bytes(data: bytes, path: str) -> Graph:
    """The graph in the bytes of a Symbol JSON file; errors as `read_file`, naming `path`."""
    return read(_text(data, path), path)


def _text(data: bytes, path: str) -> str:
    """The bytes as text. Raises ModelFileError where they are none, and says what they look like."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        kind = input_files.looks_like(data)
        reason = f"it looks like {kind}; give the graph, NAME-symbol.json" if kind else "the bytes are not UTF-8 text"
        raise ModelFileError(path, f"not a JSON graph: {reason}", error.start) from None


def read(text: str, path: str = "<string>") -> Graph:
    """The graph that a Symbol JSON text describes; errors as `read_file`, naming `path`."""
    try:
        return _Reader(path, _parse(text, path)).graph()
    except RecursionError:
        raise ModelFileError(path, "nested too deeply for a graph") from None


def count_operators(data: bytes, path: str) -> dict[str, int]:
    """How many nodes of each operator the bytes of a Symbol JSON file have, known or not, those first that are there
    most often; subgraphs are left out. Raises ModelFileError, naming `path`, for what is no such graph."""
    reader = _Reader(path, _parse(_text(data, path), path))
    document = reader.expect(reader.document, dict, "a JSON graph")
    records = [reader.read_record(raw, f"node {i}") for i, raw in enumerate(document.get("nodes", ()))]
    return dict(Counter(record.op for record in records if record.op != "null").most_common())


def _parse(text: str, path: str) -> object:
    """The text as JSON. Raises ModelFileError where it is none, and says what the text looks like."""
    start = len(text) - len(text.lstrip())
    body = text.strip().rstrip("\0")
    if not body:
        raise ModelFileError(path, "the file is empty; expected a JSON graph", 0)
    if body.startswith("\ufeff"):
        raise ModelFileError(path, "starts with a byte order mark; save the file as UTF-8 without one", 0)
    if body.startswith("<"):
        raise ModelFileError(path, "not a JSON graph: it looks like an HTML or XML page; download the raw file",
                             _byte_offset(text, start))
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        ended = error.pos >= len(body) - 1 or error.msg.startswith("Unterminated string")
        reason = f"not a JSON graph: {'the text ends too early (cut off?): ' if ended else ''}{error.msg}"
        raise ModelFileError(path, reason, _byte_offset(text, start + error.pos)) from None
    except ValueError as error:  # Python refuses an integer of thousands of digits.
        raise ModelFileError(path, f"not a JSON graph: {error}") from None


def _byte_offset(text: str, position: int) -> int:
    return len(text[:position].encode("utf-8", "surrogatepass"))


class _Reader:
    """Reads one parsed file; collects what is unknown over the whole of it before refusing it."""

    def __init__(self, path: str, document: object):
        self.path = path
        self.document = document
        self.version = legacy.UNVERSIONED
        self.unknown_operators: dict[str, list[str]] = {}
        self.unknown_attributes: list[str] = []
        self.bad_values: list[str] = []

    def fail(self, reason: str) -> ModelFileError:
        return ModelFileError(self.path, reason)

    def expect(self, value: object, kind: type, what: str):
        """`value`, which must be of that JSON type; text must be valid Unicode."""
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.fail(f"{what}: expected {_TYPE_NAMES[kind]}, got {str(value)[:60]!r}")
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise self.fail(f"{what}: {value!r} is not valid Unicode") from None
        return value

    def graph(self) -> Graph:
        document = self.expect(self.document, dict, "a JSON graph")
        self.version = self.read_version(document)
        graph = self.read_graph(document, "")
        self.refuse_unknown()
        return graph

    def read_version(self, document: dict) -> int:
        """`attrs.mxnet_version`: ["int", NUMBER]."""
        attrs = self.expect(document.get("attrs", {}), dict, "attrs")
        if "mxnet_version" not in attrs:
            return legacy.UNVERSIONED
        pair = self.expect(attrs["mxnet_version"], list, "mxnet_version")
        if len(pair) != 2 or pair[0] != "int":
            raise self.fail(f"mxnet_version: expected ['int', NUMBER], got {str(pair)[:60]}")
        return self.expect(pair[1], int, "mxnet_version")

    def refuse_unknown(self) -> None:
        """Raise one error for everything that was not understood."""
        known = [name for name in table.names() if not name.startswith(_INTERNAL)] if self.unknown_operators else []
        lines = [f"operator {name!r} (node {', '.join(map(repr, nodes[:3]))}{', ...' if len(nodes) > 3 else ''}, "
                 f"{len(nodes)} of them){_IN_PYTHON if name == 'Custom' else nearest(name, known) + _OWN}"
                 for name, nodes in self.unknown_operators.items()]
        lines += self.unknown_attributes
        if lines:
            raise UnsupportedError("\n  ".join([f"{self.path}: unknown operators or attributes:", *lines]))
        if self.bad_values:
            raise self.fail("\n  ".join(self.bad_values))

    # -- one graph

    def read_graph(self, document: dict, where: str) -> Graph:
        """A graph of the file. where: "" for the outer one, else a prefix for messages."""
        for key in ("nodes", "heads"):
            if key not in document:
                raise self.fail(f"{where}not a graph: the key {key!r} is missing")
        records = [self.read_record(raw, f"{where}node {i}")
                   for i, raw in enumerate(self.expect(document["nodes"], list, f"{where}nodes"))]
        self.check_arg_nodes(document, records, where)
        nodes: list[Node | None] = []
        for i, record in enumerate(records):
            nodes.append(self.make(record, i, nodes, f"{where}node {i} ({record.name!r})"))
        heads = [self.entry(raw, f"{where}head {i}")
                 for i, raw in enumerate(self.expect(document["heads"], list, f"{where}heads"))]
        if not heads:
            raise self.fail(f"{where}the graph has no outputs (heads is empty)")
        entries = [self.link(pair, nodes, len(nodes), f"{where}head {i}") for i, pair in enumerate(heads)]
        return Graph([e for e in entries if e is not None])

    def check_arg_nodes(self, document: dict, records: list[Record], where: str) -> None:
        """arg_nodes repeats which nodes are variables; it must not contradict them."""
        for raw in self.expect(document.get("arg_nodes", []), list, f"{where}arg_nodes"):
            number = self.expect(raw, int, f"{where}arg_nodes")
            if not 0 <= number < len(records) or records[number].op != "null":
                raise self.fail(f"{where}arg_nodes names node {number}, which is not a variable of this graph")

    def read_record(self, raw: object, where: str) -> Record:
        """A node's own part: its attributes merged from all three spellings, newer ones winning."""
        node = self.expect(raw, dict, where)
        for key in ("op", "name"):
            if key not in node:
                raise self.fail(f"{where}: the key {key!r} is missing")
        op, name = self.expect(node["op"], str, f"{where}: op"), self.expect(node["name"], str, f"{where}: name")
        where = f"{where} ({name!r})"
        attrs: dict[str, str] = {}
        for spelling in ("param", "attr", "attrs"):
            for key, value in self.expect(node.get(spelling, {}), dict, f"{where}: {spelling}").items():
                attrs[self.expect(key, str, f"{where}: {spelling}")] = self.expect(
                    value, str, f"{where}: {spelling} {key!r}")
        inputs = [self.entry(pair, f"{where}: input {i}")
                  for i, pair in enumerate(self.expect(node.get("inputs", []), list, f"{where}: inputs"))]
        subgraphs = [self.expect(sub, dict, f"{where}: subgraph {i}")
                     for i, sub in enumerate(self.expect(node.get("subgraphs", []), list, f"{where}: subgraphs"))]
        return Record(op, name, attrs, inputs, subgraphs)

    def entry(self, raw: object, where: str) -> tuple[int, int]:
        """[node, output] or [node, output, version]; the version follows from the graph and is not kept."""
        numbers = self.expect(raw, list, where)
        if len(numbers) not in (2, 3):
            raise self.fail(f"{where}: expected [node, output] or [node, output, version], got {str(raw)[:60]}")
        for number in numbers:
            if self.expect(number, int, where) < 0:
                raise self.fail(f"{where}: negative number in {str(raw)[:60]}")
        return numbers[0], numbers[1]

    def link(self, pair: tuple[int, int], nodes: list[Node | None], end: int, where: str) -> Entry | None:
        """The entry that a pair means; None when its node is of an unknown operator (refused at the end)."""
        number, index = pair
        if number >= end:
            raise self.fail(f"{where}: refers to node {number}; expected one before node {end} "
                            "(a cycle, or nodes out of order)")
        node = nodes[number]
        if node is not None and index >= node.num_outputs:
            raise self.fail(f"{where}: refers to output {index} of node {number} ({node.name!r}), "
                            f"which has {node.num_outputs}")
        return None if node is None else Entry(node, index)

    # -- one node

    def make(self, record: Record, number: int, nodes: list[Node | None], where: str) -> Node | None:
        """The node of a record; None when it cannot be made because something in it is unknown or wrong."""
        entries = [self.link(pair, nodes, number, f"{where}: input {i}") for i, pair in enumerate(record.inputs)]
        if record.op == "null":
            if entries:
                raise self.fail(f"{where}: a variable takes no inputs, but this one lists {len(entries)}")
            legacy.upgrade_attributes(record, self.version, None)
            return variable(record.name, record.attrs)
        subgraphs = [self.read_graph(sub, f"{where}: subgraph {i}: ") for i, sub in enumerate(record.subgraphs)]
        maker = table.made.get(record.op)
        if maker is None and (record.op.startswith(_INTERNAL) or not table.has(record.op)):
            self.unknown_operators.setdefault(record.op, []).append(record.name)
            return None
        op = maker(record.attrs) if maker is not None else table.get(record.op)
        legacy.upgrade_attributes(record, self.version, op)
        params = self.params(op, record, where)
        if params is None or None in entries:
            return None
        try:
            params = inner_params(op, params, subgraphs)
        except MXNetError as error:
            raise self.fail(f"{where}: {error}") from None
        known = [e for e in entries if e is not None]
        self.check_counts(op, params, known, where)
        known += legacy.missing_inputs(record, self.version, op, params, known)
        names = input_names(op, params)
        if len(known) != len(names):
            raise self.fail(f"{where}: {op.name} takes {len(names)} inputs ({', '.join(names[:8])}), "
                            f"but {len(known)} are listed")
        node = Node(op, record.name, record.attrs, params, known, subgraphs)
        try:
            check_auxiliary(node)
            check_control_flow(node)
        except MXNetError as error:
            raise self.fail(f"{where}: {error}") from None
        legacy.hand_down(record, self.version, node)
        return node

    def params(self, op: Operator, record: Record, where: str) -> Params | None:
        """The typed parameters; None (and a note for the final error) when attributes are unknown or wrong."""
        unknown = [k for k in record.attrs if op.params and not is_user_key(k) and k not in op.params]
        if unknown:
            self.unknown_attributes += [f"{where}: {op.name} has no attribute {k!r}{nearest(k, op.params)}"
                                        for k in unknown]
            return None
        try:
            return op.parse_attrs(record.attrs, record.name)
        except MXNetError as error:
            self.bad_values.append(f"{where}: {error}")
            return None

    def check_counts(self, op: Operator, params: Params, entries: list[Entry], where: str) -> None:
        """Refuse counts in parameters that the file itself belies, before any list of that length is made."""
        if op.counter and int(params[op.counter]) > len(entries):  # type: ignore[call-overload]
            raise self.fail(f"{where}: {op.counter}={params[op.counter]}, but {len(entries)} inputs are listed")
        try:
            op.num_outputs(params)
        except MXNetError as error:
            raise self.fail(f"{where}: {error}") from None


# -- writing

def write(graph: Graph, remove_amp_cast: bool = True) -> str:
    """The graph as Symbol JSON, laid out as MXNet 1.9.1 lays it out.

    remove_amp_cast: leave out `amp_cast` and `amp_multicast` nodes, which belong to a training run rather than a model.
    """
    if remove_amp_cast:
        graph = _without_amp_casts(graph)
    document = _document(graph)
    document["attrs"] = {"mxnet_version": ["int", legacy.NOW]}
    return _layout(document, 0)


def _document(graph: Graph, is_inside: bool = False) -> dict:
    """The graph as JSON values in MXNet's order of keys. is_inside: of an operator that stands for it, where variables
    have no versions."""
    versions: dict[Node, int] = {}
    nodes, row_ptr = [], [0]
    for node in graph.nodes:
        record: dict = {"op": node.op.name if node.op else "null", "name": node.name}
        if node.attrs:
            record["attrs"] = dict(sorted(node.attrs.items()))
        states = range(len(node.inputs))[node.op.states(node.params)] if node.op else ()
        record["inputs"] = inputs = []
        for position, entry in enumerate(node.inputs):
            if position in states and not is_inside:  # each operator that changes a variable makes its next version
                versions[entry.node] = versions.get(entry.node, 0) + 1
            inputs.append([graph.ids[entry.node], entry.index, versions.get(entry.node, 0)])
        if node.subgraphs:
            record["subgraphs"] = [_document(sub, not node.is_control_flow) for sub in node.subgraphs]
        nodes.append(record)
        row_ptr.append(row_ptr[-1] + node.num_outputs)
    return {"nodes": nodes, "arg_nodes": [graph.ids[n] for n in graph.variables], "node_row_ptr": row_ptr,
            "heads": [[graph.ids[e.node], e.index, versions.get(e.node, 0)] for e in graph.outputs]}


def _layout(value: object, depth: int, key: str = "") -> str:
    """JSON text with MXNet's line breaks: short lists of numbers and single attributes stay on one line."""
    if isinstance(value, dict):
        items = [f"{_quote(k)}: {_layout(v, depth + 1, k)}" for k, v in value.items()]
        return _block(items, "{}", depth, len(items) > 1 or key != "attrs")
    if isinstance(value, list):
        items = [_layout(v, depth + 1) for v in value]
        nested = bool(value) and isinstance(value[0], dict)
        return _block(items, "[]", depth, bool(items) and (nested or len(items) > 10))
    return _quote(value) if isinstance(value, str) else str(value)


def _block(items: list[str], brackets: str, depth: int, lines: bool) -> str:
    if not lines:
        return brackets[0] + ", ".join(items) + brackets[1]
    indent = "  " * (depth + 1)
    return f"{brackets[0]}\n{indent}" + f", \n{indent}".join(items) + f"\n{'  ' * depth}{brackets[1]}"


def _quote(text: str) -> str:
    """A JSON string in which only what must be escaped is: MXNet's reader does not know `\\u`."""
    return json.dumps(text, ensure_ascii=False)


def _without_amp_casts(graph: Graph) -> Graph:
    """The graph without `amp_cast` and `amp_multicast`: each of their outputs is the input it came from."""
    if not any(n.op is not None and n.op.name in ("amp_cast", "amp_multicast") for n in graph.nodes):
        return graph
    new: dict[Entry, Entry] = {}
    for node in graph.nodes:
        inputs = [new[e] for e in node.inputs]
        if node.op is not None and node.op.name in ("amp_cast", "amp_multicast"):
            new.update({Entry(node, i): e for i, e in enumerate(inputs)})
            continue
        kept = node if inputs == node.inputs else Node(node.op, node.name, node.attrs, node.params, inputs,
                                                       node.subgraphs)
        new.update({Entry(node, i): Entry(kept, i) for i in range(node.num_outputs)})
    return Graph([new[e] for e in graph.outputs])
