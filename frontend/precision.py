"""Models that compute in float16, made of models in float32, whose inputs and outputs they keep.

Products, convolutions and recurrent layers become narrow, and what passes narrow arrays on, adds or scales them: the
table says which operators those are (`float16` in ops.yaml). Everything else stays in float32, with a Cast in between:
what sums, divides or raises to powers, whose results may leave the range of float16, and what makes or reads indices
and places, of which float16 has the first 2048 alone.
"""
from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Graph, Node, variable
from mxc.compiler.graph.purity import static_names
from mxc.compiler.ops import table
from mxc.compiler.passes.infer_dtype import infer_dtype
from mxc.compiler.passes.stated import DTYPE_CODES

WIDE, ALWAYS = "float32", "always"  # the dtype that is converted, and what the table says of what is worth it
DTYPE = "__dtype__"  # the attribute of a variable that states its dtype


def narrowed(graph: Graph, dtype: str, learned: Collection[str] | None = None) -> tuple[Graph, list[str]]:
    """A model whose layers compute in `dtype`, and the names of the parameters that are of it then.

    learned: the names of parameters; None: those that operators read as such. Inputs, outputs and auxiliary states
    keep their dtypes and names. Raises MXNetError when dtypes contradict each other.
    """
    return _Narrowing(graph, dtype, {*static_names(graph)} if learned is None else {*learned}).made()


class _Narrowing:
    """Makes the graph: `base` has the new entry of each old one, which is narrow if it is in `narrow`."""

    def __init__(self, graph: Graph, dtype: str, learned: set[str]):
        self.graph, self.dtype = graph, dtype
        self.facts = infer_dtype(graph, {})
        self.parameters = {node for node in graph.variables if node.name in learned
                           and self._of(Entry(node)) == WIDE}
        self.tied = {node: places for node in graph.nodes if (places := self._tied(node))}
        self.narrow: set[Entry] = set()
        self.base: dict[Entry, Entry] = {}
        self.casts: dict[tuple[Entry, str], Entry] = {}

    def _of(self, entry: Entry) -> str | None:
        return self.facts[self.graph.ids[entry.node]][entry.index]

    def made(self) -> tuple[Graph, list[str]]:
        """The graph, and the names of narrow parameters."""
        chosen = self._chosen()
        kept: set[Node] = set()  # parameters that something else than a narrow node reads
        for node in self.graph.nodes:
            kept |= {e.node for i, e in enumerate(node.inputs) if node not in chosen or i not in self.tied[node]}
        kept |= {e.node for e in self.graph.outputs}
        for node in self.graph.nodes:
            self._make(node, node in chosen, kept)
        outputs = [self._output(e) for e in self.graph.outputs]
        return Graph(outputs, self.graph.sinks), [node.name for node in self.graph.variables
                                                  if Entry(node) in self.narrow]

    def _tied(self, node: Node) -> list[int]:
        """The inputs that are narrow where the first output is; none where the operator does not take such, or its
        outputs are not in float32."""
        op = node.op
        if op is None or node.is_control_flow or op.rule("dtype") is None or self._of(Entry(node)) != WIDE:
            return []
        if not op.float16:
            return []
        rule, params = op.rule("dtype"), self._params(node)
        assert rule is not None
        try:
            ins, _ = rule(params, [None] * len(node.inputs), [self.dtype, *[None] * (node.num_outputs - 1)])
            tied = [i for i, found in enumerate(ins) if found == self.dtype]
            given = [self.dtype if i in tied else self._of(e) for i, e in enumerate(node.inputs)]
            _, outs = rule(params, given, [None] * node.num_outputs)
        except MXNetError:
            return []
        return tied if outs[0] == self.dtype and all(self._of(node.inputs[i]) == WIDE for i in tied) else []

    def _params(self, node: Node) -> Any:
        """The parameters; of an operator that says the dtype of its output, with the narrow one."""
        assert node.op is not None
        if node.op.float16 == ALWAYS and node.params.get("dtype") == WIDE:
            return node.op.make_params({**node.params, "dtype": self.dtype})
        return node.params

    def _chosen(self) -> set[Node]:
        """The nodes that become narrow. An output of the model by several names stays as it is, for its name."""
        chosen: set[Node] = set()
        named = {e.node for e in self.graph.outputs if e.node.num_outputs > 1}
        for node, tied in self.tied.items():
            assert node.op is not None
            data = [node.inputs[i] for i in tied if node.inputs[i].node not in self.parameters]
            if node not in named and (node.op.float16 == ALWAYS or (data and all(e in self.narrow for e in data))):
                chosen.add(node)
                self.narrow |= {e for e in self._outputs(node) if self._becomes(node, e)}
        return chosen

    def _outputs(self, node: Node) -> list[Entry]:
        return [Entry(node, i) for i in range(node.num_outputs)]

    def _becomes(self, node: Node, entry: Entry) -> bool:
        """Whether an output of a narrow node is narrow: BatchNorm's statistics are not."""
        assert node.op is not None
        rule = node.op.rule("dtype")
        assert rule is not None
        given = [self.dtype if i in self.tied[node] else self._of(e) for i, e in enumerate(node.inputs)]
        _, outs = rule(self._params(node), given, [None] * node.num_outputs)
        return outs[entry.index] == self.dtype

    def _make(self, node: Node, is_narrow: bool, kept: set[Node]) -> None:
        if node.op is None:
            new = node
            if node in self.parameters and node not in kept:
                code = next(code for code, name in DTYPE_CODES.items() if name == self.dtype)
                new = variable(node.name, {**node.attrs, DTYPE: str(code)})
                self.narrow.add(Entry(node))
            self.base[Entry(node)] = Entry(new)
            return
        tied = self.tied[node] if is_narrow else []
        free = range(len(node.inputs)) if is_narrow else ()
        inputs = [self._as(e, self.dtype) if i in tied else self.base[e] if i in free else self._as(e, WIDE)
                  for i, e in enumerate(node.inputs)]
        params, attrs = (self._params(node), node.attrs) if is_narrow else (node.params, node.attrs)
        if params is not node.params:
            attrs = {**attrs, "dtype": self.dtype}
        new = node if inputs == node.inputs and params is node.params else \
            Node(node.op, node.name, attrs, params, inputs, node.subgraphs)
        for entry in self._outputs(node):
            self.base[entry] = Entry(new, entry.index)

    def _as(self, entry: Entry, dtype: str) -> Entry:
        """An old entry's new one in a dtype, where it is in float32 or narrow."""
        is_narrow = entry in self.narrow
        if self._of(entry) != WIDE or is_narrow == (dtype == self.dtype):
            return self.base[entry]
        key = entry, dtype
        if key not in self.casts:
            name = f"{entry.node.name}{entry.index or ''}_{dtype}"
            self.casts[key] = Entry(_cast(name, self.base[entry], dtype))
        return self.casts[key]

    def _output(self, entry: Entry) -> Entry:
        """An output of the model, by its own name."""
        if entry not in self.narrow:
            return self.base[entry]
        inner = self.base[entry].node
        cast = _cast(inner.name, self.base[entry], WIDE)
        inner.name = f"{inner.name}_{self.dtype}"
        return Entry(cast)


def _cast(name: str, entry: Entry, dtype: str) -> Node:
    op = table.get("Cast")
    return Node(op, name, {"dtype": dtype}, op.make_params({"dtype": dtype}), [entry])
