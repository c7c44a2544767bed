"""Decompositions and gradients of recurrent layers.

For each layer and direction, RNN is one product for the inputs of all steps, then a routine that does the steps. In the
gradient the steps of each direction are a routine too, and the weights' gradients are products over all steps.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mxc.compiler.graph.batch_rows import Rows, RowSite
from mxc.compiler.graph.building import as_dtype, as_shape, filled, random_numbers, widened
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.operators.rnn.shape import directions, dropped, output_size, pieces
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import PANEL


@dataclass
class Direction:
    """One direction of one layer.

    x: (T * N, inputs). weights: by the names of Piece. state, cell: the first ones, (N, outputs) and (N, size); cell is
    the state where the mode has none. begins: (T, N, 1), 1 at the step that comes first, of a layer with projection.
    made: the outputs of `_mxc_rnn_layer`, before a projection. settings: its parameters.
    """

    x: Entry
    weights: dict[str, Entry]
    state: Entry
    cell: Entry
    lengths: Entry
    begins: Entry | None
    first: Entry
    made: list[Entry]
    settings: dict[str, Any]


@dataclass
class Layers:
    """What the whole operator is made of: `output`, the last states, and each layer's directions."""

    output: Entry
    state: Entry
    cell: Entry | None
    layers: list[list[Direction]]


def rnn(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The layers, and Dropout's factors between them; the last cell is zeros in modes without one."""
    assert builder.old is not None
    outs = [Entry(node, i) for i in range(4)]
    shapes, dtype = [builder.old.shape(e) for e in outs], builder.old.dtype(outs[0])
    wide = [widened(builder, e) for e in inputs]
    mask = _mask(builder, node.params, shapes[3], builder.dtype(wide[0]), options.is_train)
    used = mask if options.is_train and dropped(node.params) else None
    made = layers(builder, node.params, wide, used, options.wants_gradients)
    cell = filled(builder, shapes[2], 0.0, dtype) if made.cell is None else made.cell
    return [as_dtype(builder, e, dtype) for e in (made.output, made.state, cell, mask)]


def _mask(builder: GraphBuilder, params: Params, shape: Sequence[int], dtype: str, is_train: bool) -> Entry:
    """1 / keep where a random number is below keep = 1 - p, 0 elsewhere; 1 where nothing is dropped."""
    if not is_train or not dropped(params):
        return filled(builder, shape, 1.0, dtype)
    assert isinstance(params.p, float)
    keep = 1.0 - params.p
    kept = builder.make("_lesser_scalar", random_numbers(builder, shape), scalar=keep)
    return builder.make("_mul_scalar", as_dtype(builder, kept, dtype), scalar=1.0 / keep if keep else 0.0)


def layers(builder: GraphBuilder, params: Params, inputs: Sequence[Entry], mask: Entry | None, keep: bool) -> Layers:
    """The operator on float32 or float64 inputs. The gradient's rule calls this too: what it makes again is merged.

    mask: (layers - 1, T, N, outputs) factors. keep: whether what the gradient needs is kept.
    """
    data, vector, state, *rest = inputs
    steps, batch, width = builder.shape(data)
    cell = rest[0] if params.mode == "lstm" else state
    lengths = as_dtype(builder, rest[-1], builder.dtype(data)) if params.use_sequence_length else None
    parts = {(p.layer, p.direction, p.name): as_shape(builder, part(builder, vector, 0, p.start, p.stop), p.shape)
             for p in pieces(params, width)}
    both, made = directions(params), []
    outputs, states, cells = [data], [], []
    for layer in range(int(params.num_layers)):  # type: ignore[call-overload]
        below = joined(builder, outputs, 2)
        if layer and mask is not None:
            factors = as_shape(builder, part(builder, mask, 0, layer - 1, layer), builder.shape(below))
            below = builder.make("elemwise_mul", below, factors)
        x = as_shape(builder, below, (steps * batch, prod(builder.shape(below)) // (steps * batch)))
        sides, outputs = [], []
        for side in range(both):
            weights = {name: e for (a, b, name), e in parts.items() if (a, b) == (layer, side)}
            own = [row(builder, e, layer * both + side) for e in (state, cell)]
            each = _direction(builder, params, side == 1, x, weights, own, lengths, keep)
            out, last, last_cell = each.made[:3]
            if "projection" in weights:
                out, last = (_projected(builder, e, weights["projection"]) for e in (out, last))
            sides.append(each)
            outputs.append(out)
            states.append(builder.make("expand_dims", last, axis=0))
            if params.mode == "lstm":
                cells.append(builder.make("expand_dims", last_cell, axis=0))
        made.append(sides)
    return Layers(joined(builder, outputs, 2), joined(builder, states, 0),
                  joined(builder, cells, 0) if cells else None, made)


def _direction(builder: GraphBuilder, params: Params, reverse: bool, x: Entry, weights: dict[str, Entry],
               own: list[Entry], lengths: Entry | None, keep: bool) -> Direction:
    """One direction of a layer. x: (T N, inputs). own: its state and cell (N, units).

    With projection, h = m P, the steps work on the states m before it: the next step reads h R = m (P R). The first
    state h is given and is no such product: its h R is added to the sums of the inputs of the first step.
    """
    state, cell = own
    batch = builder.shape(state)[0]
    steps = builder.shape(x)[0] // batch
    width = builder.shape(weights["input"])[0]
    pre = builder.make("FullyConnected", x, weights["input"], num_hidden=width, no_bias=True, flatten=False)
    pre = builder.make("broadcast_add", pre, as_shape(builder, weights["input_bias"], (1, width)))
    pre = as_shape(builder, pre, (steps, batch, width))
    settings: dict[str, Any] = {"mode": params.mode, "reverse": reverse, "masked": lengths is not None}
    for name in ("min", "max", "nan"):
        settings[f"clip_{name}"] = params[f"lstm_state_clip_{name}"]
    begins, first = None, state
    if "projection" in weights:
        begins = _begins(builder, reverse, lengths, (steps, batch), builder.dtype(x))
        start = builder.make("FullyConnected", state, weights["recurrent"], num_hidden=width, no_bias=True,
                             flatten=False)
        start = builder.make("broadcast_mul", begins, as_shape(builder, start, (1, batch, width)))
        pre = builder.make("elemwise_add", pre, start)
        weight = builder.make("dot", weights["recurrent"], weights["projection"])
        first = filled(builder, builder.shape(cell), 0.0, builder.dtype(x))
    else:
        weight = weights["recurrent"]
    unused = state if lengths is None else lengths
    made = builder.make_all("_mxc_rnn_layer", pre, packed(builder, weight), weights["recurrent_bias"], first, cell,
                            unused, keep=keep, **settings)
    return Direction(x, weights, state, cell, unused, begins, first, made, settings)


def packed(builder: GraphBuilder, matrix: Entry) -> Entry:
    """The transposed matrix as the routines read it."""
    return builder.make("_mxc_pack_rows", as_shape(builder, matrix, (1, *builder.shape(matrix))), block=PANEL)


def _begins(builder: GraphBuilder, reverse: bool, lengths: Entry | None, rows: tuple[int, int], dtype: str) -> Entry:
    """(T, N or 1, 1): 1 at each row's first step, 0 elsewhere."""
    steps, batch = rows
    positions = builder.make("_arange", start=0.0, stop=float(steps), dtype=dtype)
    if reverse and lengths is not None:
        last = builder.make("_minimum_scalar", builder.make("trunc", lengths), scalar=float(steps))
        start = as_shape(builder, builder.make("_minus_scalar", last, scalar=1.0), (1, batch, 1))
    else:
        start = filled(builder, (1, batch, 1), steps - 1.0 if reverse else 0.0, dtype)
    return builder.make("broadcast_equal", as_shape(builder, positions, (steps, 1, 1)), start)


def _projected(builder: GraphBuilder, states: Entry, weight: Entry) -> Entry:
    """states (..., size) times weight (outputs, size) transposed."""
    shape, (outputs, size) = builder.shape(states), builder.shape(weight)
    flat = as_shape(builder, states, (prod(shape[:-1]), size))
    out = builder.make("FullyConnected", flat, weight, num_hidden=outputs, no_bias=True, flatten=False)
    return as_shape(builder, out, (*shape[:-1], outputs))


def part(builder: GraphBuilder, entry: Entry, axis: int, begin: int, end: int) -> Entry:
    """`entry` from `begin` to `end` along an axis."""
    if (begin, end) == (0, builder.shape(entry)[axis]):
        return entry
    return builder.make("slice_axis", entry, axis=axis, begin=begin, end=end)


def row(builder: GraphBuilder, entry: Entry, index: int) -> Entry:
    """`entry[index]`."""
    return as_shape(builder, part(builder, entry, 0, index, index + 1), builder.shape(entry)[1:])


def joined(builder: GraphBuilder, entries: Sequence[Entry], axis: int) -> Entry:
    """The entries one after the other along an axis."""
    return entries[0] if len(entries) == 1 else builder.make("Concat", *entries, num_args=len(entries), dim=axis)


def rnn_grad(g: Gradient) -> list[Entry | None]:
    """The gradients of data, parameters, state and cell; sequence_length gets none.

    The forward pass is written here again, for its values in between: common subexpressions are one in the end.
    """
    builder, params = g.builder, g.params
    wide = [widened(builder, e) for e in g.inputs]
    mask = widened(builder, g.outputs[3]) if g.is_train and dropped(params) else None
    made = layers(builder, params, wide, mask, keep=True)
    steps, batch, width = g.shape(wide[0])
    flow, outputs = widened(builder, g.og), output_size(params)
    lasts = [None if e is None else widened(builder, e) for e in g.out_grads[1:3]]
    both = len(made.layers[0])
    grads: dict[tuple[int, int, str], Entry] = {}
    states: dict[int, Entry] = {}
    cells: dict[int, Entry] = {}
    to_data: Entry | None = None
    for layer in range(len(made.layers) - 1, -1, -1):
        flows = []
        for side, direction in enumerate(made.layers[layer]):
            place = layer * both + side
            last_state, last_cell = (None if e is None else row(builder, e, place) for e in lasts)
            own = part(builder, flow, 2, side * outputs, (side + 1) * outputs)
            to_weights, to_pre, states[place], cells[place] = _direction_grad(g, direction, own, last_state, last_cell)
            grads |= {(layer, side, name): e for name, e in to_weights.items()}
            if layer or g.asked[0]:
                flows.append(g.make("dot", to_pre, direction.weights["input"]))
        if flows:
            total = flows[0] if len(flows) == 1 else g.make("elemwise_add", *flows)
            flow = as_shape(builder, total, (steps, batch, g.shape(total)[1]))
            if layer and mask is not None:
                factors = as_shape(builder, part(builder, mask, 0, layer - 1, layer), g.shape(flow))
                flow = g.make("elemwise_mul", flow, factors)
            to_data = flow
    backs: list[Entry | None] = [to_data if g.asked[0] else None, None, None, *[None] * (len(g.inputs) - 3)]
    if g.asked[1]:
        flat = [as_shape(builder, e, (prod(g.shape(e)),)) for p in pieces(params, width)
                for e in (grads[p.layer, p.direction, p.name],)]
        backs[1] = joined(builder, flat, 0)
    for position, found in ((2, states), (3, cells)):
        if position == 2 or params.mode == "lstm":
            backs[position] = joined(builder, [g.make("expand_dims", found[i], axis=0) for i in sorted(found)], 0)
    return backs


def _direction_grad(g: Gradient, own: Direction, og: Entry, last_state: Entry | None, last_cell: Entry | None,
                    ) -> tuple[dict[str, Entry], Entry, Entry, Entry]:
    """What flows to the weights by name, to the inputs' sums (T * N, gates * size), to the first state and cell."""
    weights, (out, last, _, gates, cells) = own.weights, own.made
    recurrent = weights["recurrent"]
    zeros = filled(g.builder, g.shape(own.cell), 0.0, g.dtype(og))
    grads: dict[str, Entry] = {}
    if "projection" in weights:
        projection = weights["projection"]
        pairs = [(_rows(g, og), _rows(g, out)), *([] if last_state is None else [(last_state, last)])]
        parts = [g.make("dot", a, b, transpose_a=True) for a, b in pairs]
        og = as_shape(g.builder, g.make("dot", pairs[0][0], projection), g.shape(out))
        last_state = None if last_state is None else g.make("dot", last_state, projection)
        recurrent = g.make("dot", recurrent, projection)
    to_pre, to_state, to_cell, previous, to_recurrent = g.builder.make_all(
        "_mxc_rnn_layer_grad", og, last_state or zeros, last_cell or zeros, gates, cells, out, own.first, own.cell,
        packed(g.builder, g.make("transpose", recurrent, axes=(1, 0))), own.lengths, **own.settings)
    flat = _rows(g, to_pre)
    products = _rows(g, to_recurrent) if own.settings["mode"] == "gru" else flat
    grads["input"] = g.make("dot", flat, own.x, transpose_a=True)
    grads["recurrent"] = g.make("dot", products, _rows(g, previous), transpose_a=True)
    grads["input_bias"] = g.make("sum", flat, axis=(0,))
    grads["recurrent_bias"] = grads["input_bias"] if products is flat else g.make("sum", products, axis=(0,))
    if own.begins is not None:
        combined = grads["recurrent"]
        start = g.make("sum", g.make("broadcast_mul", to_pre, own.begins), axis=(0,))
        to_state = g.make("dot", start, weights["recurrent"])
        parts.append(g.make("dot", weights["recurrent"], combined, transpose_a=True))
        grads["projection"] = parts[0] if len(parts) == 1 else g.make("add_n", *parts, num_args=len(parts))
        grads["recurrent"] = g.make("elemwise_add", g.make("dot", combined, weights["projection"], transpose_b=True),
                                    g.make("dot", start, own.state, transpose_a=True))
    return grads, flat, to_state, to_cell


def _rows(g: Gradient, entry: Entry) -> Entry:
    """(T, N, width) as (T * N, width)."""
    shape = g.shape(entry)
    return as_shape(g.builder, entry, (prod(shape[:-1]), shape[-1]))


def rnn_rows(site: RowSite) -> list[Rows | None]:
    """Axis 1 of data and states, behind time and layers. The mask of what is dropped is ones, in inference."""
    names = ["data", "parameters", "state", *["state_cell"] * (site.params.mode == "lstm")]
    axes = [{} if name == "parameters" else {1: 1} for name in names] + [{0: 1}] * site.params.use_sequence_length
    return [*(site.along(*axes, output=i) if i < 2 or site.varied_outs[i] else None for i in range(3)), None]
