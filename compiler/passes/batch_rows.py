"""Whether a model keeps the rows of a batch apart, and where its outputs have them (graph/batch_rows.py).

The graph is looked at for two sizes of the batch: what differs between them grows with the batch. Composite operators
without a rule of their own are looked at as what they are made of.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.batch_rows import SIZES, MixedRows, Rows, RowSite, same, shape_text, sizes_of, trailing
from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Node, Shape, rewrite
from mxc.compiler.graph.loop import LoopOperator
from mxc.compiler.graph.names import with_distinct_names
from mxc.compiler.graph.options import Options
from mxc.compiler.graph.purity import RANDOM
from mxc.compiler.ops.operator import Kind, Operator
from mxc.compiler.ops.shapes import reduced_axes
from mxc.compiler.passes.decompose import ROUNDS
from mxc.compiler.passes.infer import infer

Found = list[Rows | MixedRows | None]  # of each output; what is mixed may be there if nobody reads it
Pair = Sequence[Graph]  # a graph with its facts, for the two sizes


def find_rows(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], axes: Mapping[str, int],
              is_train: bool = False) -> list[Rows | None]:
    """Where each output has the rows of a batch; None for one that is the same for every batch.

    shapes, dtypes: of variables; what is left out follows. axes: by name of each input that has rows, along which axis.
    Raises MixedRows naming the layer and its operator where a row of an output depends on more than that row of the
    inputs, or on its place or the size of the batch, or where that is not known.
    """
    options = Options(None, is_train)  # type: ignore[arg-type]  # What operators are made of depends on no target.
    typed = [_of_size(graph, shapes, dtypes, axes, size) for size in SIZES]
    outputs = _through(typed, {name: Rows(axis) for name, axis in axes.items()}, options)
    return [_as_output(rows, *(graph.shape(graph.outputs[i]) for graph in typed)) for i, rows in enumerate(outputs)]


def _as_output(rows: Rows | None, first: Shape, second: Shape) -> Rows | None:
    """Where an output has rows; one that is equal along an axis that grows with the batch has them there."""
    varied = _varied(first, second)
    if rows is not None or not varied:
        return rows
    times, rest = divmod(first[varied[0]], SIZES[0])
    if len(varied) > 1 or rest or second[varied[0]] != times * SIZES[1]:
        raise MixedRows(f"an output has the shape {shape_text(first, varied)}, which grows with the batch (N)")
    return Rows(varied[0], times)


def _of_size(graph: Graph, shapes: Mapping[str, Shape], dtypes: Mapping[str, str], axes: Mapping[str, int],
             size: int) -> Graph:
    """The graph with its facts for batches of a size."""
    sized = {name: (*shape[:axes[name]], size, *shape[axes[name] + 1:]) if name in axes else shape
             for name, shape in shapes.items()}
    try:
        return with_distinct_names(infer(graph, sized, dtypes))
    except MXNetError as error:
        raise MixedRows(f"the model does not take batches of every size: with {size} rows, "
                        f"{str(error).partition(chr(10) + 'given shapes:')[0]}") from None


def _opened(graph: Graph, options: Options) -> Graph:
    """The graph, composite operators without a rule of rows decomposed."""
    def primitive(builder: GraphBuilder, node: Node) -> Sequence[Entry] | None:
        assert node.op is not None
        rule = None if "rows" in node.op.rules or _kind(node.op) else node.op.rule("decompose")
        return None if rule is None else rule(builder, node, [builder.map[e] for e in node.inputs], options)

    for _ in range(ROUNDS):
        before, graph = graph, rewrite(graph, primitive)
        if graph.nodes == before.nodes:
            break
    return graph


def _kind(op: Operator) -> Kind | None:
    """The kind of an operator that computes as all of its kind do; None of others."""
    if op.reduce is not None and op.rules.get("shape") == "reduce":
        return Kind.REDUCTION
    if op.expr is not None and op.rules.get("shape") == {Kind.ELEMENTWISE: "same_shape",
                                                         Kind.BROADCAST: "broadcast"}.get(op.kind):
        return op.kind
    return None


def _through(typed: Pair, given: Mapping[str, Rows | None], options: Options) -> list[Rows | None]:
    """Where the outputs of a graph have rows. given: where variables have them; others are the same for all rows, or
    have them along an axis as long as the batch, as labels."""
    pair = [_opened(graph.as_origin(), options) for graph in typed]
    forms = [[(node.op and node.op.name, *((graph.ids[e.node], e.index) for e in node.inputs)) for node in graph.nodes]
             for graph in pair]
    if forms[0] != forms[1]:
        raise MixedRows("what the model computes depends on the size of the batch")
    first = pair[0]
    found: list[Found] = []
    for i, nodes in enumerate(zip(first.nodes, pair[1].nodes, strict=True)):
        node, places = nodes[0], [(first.ids[e.node], e.index) for e in nodes[0].inputs]
        rows = [_used(found[at][k]) for at, k in places]
        try:
            outs = [_shapes(pair, i, k) for k in range(node.num_outputs)]
            ins = [_shapes(pair, *place) for place in places]
            if node.op is None:
                made: Found = [given[node.name] if node.name in given else _of_variable(outs[0])]
            elif isinstance(node.op, LoopOperator):
                made = _of_loop(nodes, ins, rows, options)
            else:
                made = _of_node(nodes, ins, outs, rows)
        except MixedRows as error:
            made = [error] * node.num_outputs
        found.append([_told_of(_layer(typed[0], first, node), each) for each in made])
    return [_used(found[first.ids[e.node]][e.index]) for e in first.outputs]


def _used(rows: Rows | MixedRows | None) -> Rows | None:
    """What is known of an array that somebody reads. Raises MixedRows when its rows are mixed."""
    if isinstance(rows, MixedRows):
        raise rows
    return rows


def _told_of(layer: str, rows: Rows | MixedRows | None) -> Rows | MixedRows | None:
    return MixedRows(f"{layer}: {rows}") if isinstance(rows, MixedRows) else rows


def _shapes(pair: Pair, node: int, output: int) -> tuple[Shape, Shape]:
    first, second = (graph.facts.shape[node][output] for graph in pair)
    assert first is not None and second is not None
    if len(first) != len(second):
        raise MixedRows(f"its result has {len(first)} axes or {len(second)}, by the size of the batch")
    return first, second


def _of_variable(shapes: tuple[Shape, Shape]) -> Rows | None:
    first, second = shapes
    varied = [i for i in range(len(first)) if first[i] != second[i]]
    if len(varied) > 1 or (varied and (first[varied[0]], second[varied[0]]) != SIZES):
        raise MixedRows(f"its shape {shape_text(first, varied)} grows with the batch (N), but has no axis of that size")
    return Rows(varied[0]) if varied else None


def _of_node(nodes: Sequence[Node], ins: Sequence[tuple[Shape, Shape]], outs: Sequence[tuple[Shape, Shape]],
             rows: Sequence[Rows | None]) -> Found:
    """Where a node's outputs have rows. nodes: the node for both sizes."""
    node, other = nodes
    op = node.op
    assert op is not None
    if op.name in RANDOM:
        raise MixedRows("it draws random numbers, which are others in every run")
    learned = {*op.parameters, *op.aux}
    site = RowSite((node.params, other.params), ins, outs, rows, [n in learned for n in op.all_names(node.params)])
    rule = op.rule("rows")
    if any(node.params[name] != other.params[name] for name in {*node.params} - {*sizes_of(rule)}):
        raise MixedRows("what it computes depends on the size of the batch")
    if not site.has_rows:
        return [None] * len(outs)
    if rule is not None:
        return list(rule(site))
    kind = _kind(op)
    if kind is Kind.ELEMENTWISE:
        return list(site.everywhere(*map(same, site.ins)))
    if kind is Kind.BROADCAST:
        return list(site.everywhere(*(trailing(shape, site.outs[0]) for shape in site.ins)))
    if kind is Kind.REDUCTION:
        return [_of_reduction(site)]
    raise MixedRows("it is not known that it computes each row of a batch by itself")


def _of_reduction(site: RowSite) -> Rows | None:
    """The axes that are kept."""
    shape = site.ins[0]
    axes = reduced_axes(site.params, len(shape))
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    return site.along({axis: axis if len(site.outs[0]) == len(shape) else place for place, axis in enumerate(kept)})


def _of_loop(nodes: Sequence[Node], ins: Sequence[tuple[Shape, Shape]], rows: Sequence[Rows | None],
             options: Options) -> Found:
    """Where a loop's outputs have rows: in each step along the same axes of the states, and never by the steps."""
    forms = [node.op.form for node in nodes if isinstance(node.op, LoopOperator)]
    form = forms[0]
    if form.length != forms[1].length or any(0 in _varied(*pair) for pair in ins[:form.data]):
        raise MixedRows("its steps go through the rows of the batch")
    sliced = [r and r._replace(axis=r.axis - 1) for r in rows[:form.data]]
    states = list(rows[form.data:form.data + form.states])
    names = [each.name for each in form.variables]
    inside = list(zip(*(node.subgraphs for node in nodes), strict=True))  # the body, and the test if there is one
    for _ in range(form.states + 1):
        given = dict(zip(names, [*sliced, *states, *rows[form.data + form.states:]], strict=True))
        made = _through(inside[0], given, options)
        after = [_joined(*each) for each in zip(states, made[form.stacks:], ins[form.data:], strict=False)]
        if after == states:
            break
        states = after
    if form.test is not None and _through(inside[1], given, options) != [None]:
        raise MixedRows("each row of the batch may end it at another step")
    return [*(r and r._replace(axis=r.axis + 1) for r in made[:form.stacks]), *states]


def _joined(before: Rows | None, after: Rows | None, shapes: tuple[Shape, Shape]) -> Rows | None:
    """Where a state has rows that has them in one place before a step, and in another one behind it. What is the same
    in every row, and as long along that axis, has rows there, too."""
    if before is None and after is not None and _varied(*shapes) == [after.axis]:
        return after
    if after is None or after == before:
        return before
    raise MixedRows("a step moves the rows of the batch to another place in its states")


def _varied(first: Shape, second: Shape) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]


def _layer(model: Graph, made: Graph, node: Node) -> str:
    """The node of the model that a node came from: its name and operator."""
    origin = model.nodes[min(made.origin(node))] if made.origin(node) else node
    if origin.op is None:
        return origin.name
    return f"{origin.name} ({'a loop' if isinstance(origin.op, LoopOperator) else origin.op.name})"
