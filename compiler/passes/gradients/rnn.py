"""Gradients of RNN: the steps of each direction backwards are a routine, what weights get are products over all."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.ops.shapes.rnn import dropped, output_size, pieces
from mxc.compiler.passes.building import as_shape, filled, widened
from mxc.compiler.passes.decompositions.rnn import Direction, joined, layers, packed, part, row
from mxc.compiler.passes.gradients.context import Gradient


def rnn(g: Gradient) -> list[Entry | None]:
    """To data, parameters, state and cell; sequence_length gets none.

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
            to_weights, to_pre, states[place], cells[place] = _direction(g, direction, own, last_state, last_cell)
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


def _direction(g: Gradient, own: Direction, og: Entry, last_state: Entry | None, last_cell: Entry | None,
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
