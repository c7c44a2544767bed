"""Graphs of mixed precision, made of graphs in float32: which casts they get, where, and how these are called.

What dtype an output has is known of operators that compute in one dtype, and follows for others from that of their
first input. Of variables it is not known, for data may be of any dtype: operators in float32 read them as they are.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.compose import place_name
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.ops import table
from mxc.compiler.ops.infer import infer_dtypes
from mxc.compiler.passes.infer_dtype import DEFAULT, infer_dtype
from mxc.compiler.passes.stated import DTYPE_CODES

FLOAT32 = "float32"
# Operators whose results' dtypes MXNet does not derive from their first input alone.
NOT_FOLLOWED = ("_copyto", "broadcast_like", "reshape_like", "slice_like", "scatter_nd", "_contrib_BilinearResize2D",
                "_contrib_AdaptiveAvgPooling2D")
CODES = {name: str(code) for code, name in DTYPE_CODES.items()}


def _made(op: str, name: str, attrs: dict[str, str], inputs: Sequence[Entry]) -> Node:
    operator = table.get(op)
    return Node(operator, name, attrs, operator.parse_attrs(attrs, name), inputs)


@dataclass
class Casts:
    """What a graph is converted by. dtype: the narrow one. narrow, float32, widest: operators, by their main names.
    conditions: by operator, parameters with values with which it is in float32. excluded: nodes in float32. optional:
    variables that become narrow themselves where a cast of them would be."""

    dtype: str
    narrow: Collection[str]
    float32: Collection[str]
    widest: Collection[str]
    conditions: Mapping[str, Sequence[tuple[str, Sequence[str]]]]
    excluded: Collection[str] = ()
    optional: Collection[str] = ()
    new: dict[Entry, Entry] = field(default_factory=dict)
    known: dict[Entry, str | None] = field(default_factory=dict)  # of the old graph's outputs, in the new one
    made: dict[tuple[Entry, str], Entry] = field(default_factory=dict)
    narrowed: set[str] = field(default_factory=set)  # variables that are narrow where nothing else says so

    def graph(self, old: Graph) -> Graph:
        """The graph with its casts. Its outputs are in float32."""
        for node in old.nodes:
            self._node(node)
        return Graph([self._cast(e, FLOAT32) for e in old.outputs])

    def _node(self, node: Node) -> None:
        op = node.op
        outputs: list[str | None] = [None] * node.num_outputs
        if op is None:
            self._place(node, variable(node.name, node.attrs), outputs)
            return
        if op.name in self.float32 or node.name in self.excluded:
            inputs = [self.made.get((e, FLOAT32), self.new[e]) if e.node.is_variable else self._cast(e, FLOAT32)
                      for e in node.inputs]
            outputs = [FLOAT32] * node.num_outputs
        elif self._meets_a_condition(node):
            inputs = [self._cast(e, FLOAT32) for e in node.inputs]
            outputs = [FLOAT32] * node.num_outputs
        elif op.name in self.narrow:
            dtypes = self._followed(node, self.dtype)[0]
            inputs = [self._cast(e, self.dtype) if dtype in (None, self.dtype) else self.new[e]
                      for e, dtype in zip(node.inputs, dtypes, strict=True)]
            outputs = [self.dtype] * node.num_outputs
        elif op.name in self.widest and node.inputs:
            inputs, dtype = self._widest(node)
            outputs = [dtype] * node.num_outputs
        else:
            inputs = [self.new[e] for e in node.inputs]
            first = next((dtype for dtype in (self.dtype, FLOAT32) if self._is_there(node.inputs[0], dtype)), None) \
                if node.inputs else None
            if first is not None and op.name not in NOT_FOLLOWED:
                found = self._followed(node, first)[1]
                outputs = [dtype if dtype in (FLOAT32, self.dtype) else None for dtype in found]
        self._place(node, Node(op, node.name, node.attrs, node.params, inputs, node.subgraphs), outputs)

    def _place(self, node: Node, new: Node, outputs: Sequence[str | None]) -> None:
        for i, dtype in enumerate(outputs):
            self.new[Entry(node, i)], self.known[Entry(node, i)] = Entry(new, i), dtype

    def _meets_a_condition(self, node: Node) -> bool:
        assert node.op is not None
        return any(str(node.params[parameter]) in values
                   for parameter, values in self.conditions.get(node.op.name, ()))

    def _followed(self, node: Node, first: str) -> tuple[list[str | None], list[str | None]]:
        """The dtypes of a node's inputs and outputs that follow from that of its first input."""
        ins: list[str | None] = [first, *[None] * (len(node.inputs) - 1)]
        try:
            return infer_dtypes(node, ins, [None] * node.num_outputs)
        except MXNetError:  # It wants to know more, or has no such input.
            return ins, [None] * node.num_outputs

    def _widest(self, node: Node) -> tuple[list[Entry], str | None]:
        """The inputs in their widest dtype, and that dtype where it is known."""
        in_float32 = [self._is_there(e, FLOAT32) for e in node.inputs]
        if all(wide or self._is_there(e, self.dtype) for e, wide in zip(node.inputs, in_float32, strict=True)):
            common = FLOAT32 if any(in_float32) else self.dtype
            return [self._cast(e, common) for e in node.inputs], common
        if all(e.node.is_variable for e in node.inputs):
            self.narrowed |= {e.node.name for e in node.inputs if e.node.name in self.optional}
        cast = _made("amp_multicast", f"{place_name(node.inputs[0])}_amp_multicast",
                     {"num_outputs": str(len(node.inputs))}, [self.new[e] for e in node.inputs])
        return [Entry(cast, i) for i in range(len(node.inputs))], None

    def _is_there(self, entry: Entry, dtype: str) -> bool:
        """Whether an output is of that dtype, or a cast of it to that one was made."""
        return self.known[entry] == dtype or (entry, dtype) in self.made

    def _cast(self, entry: Entry, dtype: str) -> Entry:
        """An output of the old graph in that dtype."""
        if self.known[entry] == dtype:
            return self.new[entry]
        if dtype == self.dtype and entry.node.is_variable and entry.node.name in self.optional:
            self.narrowed.add(entry.node.name)
            self.made[entry, dtype] = self.new[entry]
        if (entry, dtype) not in self.made:
            cast = _made("amp_cast", f"{place_name(entry)}_amp_cast_{dtype}", {"dtype": dtype}, [self.new[entry]])
            self.made[entry, dtype] = Entry(cast)
        return self.made[entry, dtype]


def state_dtypes(graph: Graph, data_names: Collection[str], casts: Casts) -> None:
    """Write `__dtype__` on the variables but the data: what follows from data in float32."""
    parameters = [node for node in graph.variables if node.name not in data_names]
    for node in parameters:
        node.attrs.pop("__dtype__", None)
    found = infer_dtype(graph, dict.fromkeys(data_names, FLOAT32), partial=True)
    for node in parameters:
        otherwise = casts.dtype if node.name in casts.narrowed else DEFAULT
        node.attrs["__dtype__"] = CODES[found[graph.ids[node]][0] or otherwise]
