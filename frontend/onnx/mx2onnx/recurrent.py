"""Recurrent layers: MXNet has all of them in one operator with one vector of parameters, ONNX a node for each layer."""
from __future__ import annotations

import numpy as np

from mxc.onnx.mx2onnx.writer import Call, Converter, Names

# ONNX's operator of each mode, and where MXNet's gates stand in ONNX's order.
MODES = {"lstm": ("LSTM", (0, 3, 1, 2)), "gru": ("GRU", (1, 0, 2)), "rnn_relu": ("RNN", (0,)),
         "rnn_tanh": ("RNN", (0,))}


def rnn(c: Call) -> Names:
    for name in ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max"):
        c.refuse_unless(c.params[name] is None, name)
    mode, state, layers = c.params["mode"], c.params["state_size"], c.params["num_layers"]
    both = 2 if c.params["bidirectional"] else 1
    op_type, order = MODES[mode]
    vector, width = c.known(1), c.fixed_axis(2)
    rows = len(order) * state
    lengths = c.cast(c.inputs[-1], "int32") if c.params["use_sequence_length"] else ""
    how = {"hidden_size": state, "direction": "bidirectional" if both == 2 else "forward"}
    if mode == "gru":
        how["linear_before_reset"] = 1
    elif mode != "lstm":
        how["activations"] = ["Relu" if mode == "rnn_relu" else "Tanh"] * both
    place = 0

    def taken(*shape: int) -> np.ndarray:
        """The next numbers of the vector, with the gates in ONNX's order."""
        nonlocal place
        count = int(np.prod(shape))
        part = vector[place:place + count].reshape(len(order), state, *shape[1:])
        place += count
        return part[list(order)].reshape(shape)

    widths = [width] + [state * both] * (layers - 1)
    matrices = [[(taken(rows, w), taken(rows, state)) for _ in range(both)] for w in widths]
    biases = [[np.concatenate([taken(rows), taken(rows)]) for _ in range(both)] for _ in widths]
    data, states = c.inputs[0], []
    for layer in range(layers):
        weight, recurrent = (c.constant(np.stack([pair[i] for pair in matrices[layer]])) for i in (0, 1))
        bias = c.constant(np.stack(biases[layer]))
        first = [begin(c, i, layer * both, both) for i in ((2, 3) if mode == "lstm" else (2,))]
        made = c.emit_many(3 if mode == "lstm" else 2, op_type, data, weight, recurrent, bias, lengths, *first, **how)
        steps, *last = made
        states.append(last)
        data = c.emit("Reshape", c.emit("Transpose", steps, perm=[0, 2, 1, 3]), c.ints(0, 0, -1))
    if not c.params["state_outputs"]:
        return [data]
    return [data, *(c.emit("Concat", *each, axis=0) if layers > 1 else each[0] for each in zip(*states, strict=True))]


def begin(c: Call, i: int, first: int, count: int) -> str:
    """The states of a layer that input i begins with; nothing where they are zeros."""
    op = c.entries[i].node.op
    if op is not None and op.name == "_zeros":
        return ""
    if c.extents(i)[0][0] == count:
        return c.inputs[i]
    return c.emit("Slice", c.inputs[i], c.ints(first), c.ints(first + count), c.ints(0))


CONVERTERS: dict[str, Converter] = {"RNN": rnn}
