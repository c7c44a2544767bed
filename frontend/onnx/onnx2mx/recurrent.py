"""Recurrent layers: a node of ONNX is a layer of one or two directions, whose parameters MXNet has in one vector."""
from __future__ import annotations

import numpy as np

from mxc.onnx.mx2onnx.recurrent import MODES
from mxc.onnx.onnx2mx.reader import Call, Converter, Tensor

ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}


def layer(mode: str) -> Converter:
    """A layer of LSTM or GRU cells, or (`rnn_tanh`) of plain ones."""
    return lambda c: read_layer(c, mode)


def read_layer(c: Call, mode: str) -> list[Tensor]:
    data, directions = c.tensor(), c.tensor(1).shape[0]
    state, way = c.attr("hidden_size", c.tensor(2).shape[-1]), c.attr("direction", "forward")
    for name in ("clip", "input_forget", "layout"):
        c.refuse_unless(not c.attr(name), name)
    mode = checked(c, mode, directions)
    if c.has(7):
        c.refuse_unless(not c.known(7, "P").any(), "P")
    order = np.argsort(MODES[mode][1])
    weight, recurrent = (gates(c.known(i, name), order, state) for i, name in ((1, "W"), (2, "R")))
    both = c.known(3, "B") if c.has(3) else np.zeros((directions, 2 * len(order) * state), data.dtype)
    biases = gates(both.reshape(directions * 2, -1), order, state)
    vector = np.concatenate([*(part for d in range(directions) for part in (weight[d].ravel(), recurrent[d].ravel())),
                             biases.ravel()])
    if way == "reverse":
        if c.has(4):
            c.refuse("sequence_lens with direction='reverse'")
        data = c.op("reverse", data, axis=(0,))
    states = [c.tensor(i) if c.has(i) else zeros(c, data, directions, state)
              for i in ((5, 6) if mode == "lstm" else (5,))]
    lengths = [c.cast(c.tensor(4), data.dtype)] if c.has(4) else []
    made, *last = c.many("RNN", data, c.constant(vector, "parameters"), *states, *lengths, mode=mode,
                         state_size=state, num_layers=1, bidirectional=directions == 2, state_outputs=True,
                         use_sequence_length=bool(lengths))
    if way == "reverse":
        made = c.op("reverse", made, axis=(0,))
    first, second = ((*shape[:2], directions, state) for shape in made.extents)
    apart = c.op("expand_dims", made, axis=1) if directions == 1 else \
        c.transpose(c.reshape(made, (first, second)), (0, 2, 1, 3))
    return [apart, *last]


def checked(c: Call, mode: str, directions: int) -> str:
    """The mode, where attributes say no other. Raises UnsupportedError for cells that MXNet does not have."""
    given = c.attr("activations")
    if mode == "gru":
        c.refuse_unless(bool(c.attr("linear_before_reset", 0)), "linear_before_reset")
    if mode in ("lstm", "gru"):
        c.refuse_unless(given is None or given == ACTIVATIONS[c.op_type] * directions, "activations")
        return mode
    one = given[0] if given else "Tanh"
    c.refuse_unless(one in ("Relu", "Tanh") and (given or [one]) == [one] * len(given or [one]), "activations")
    return "rnn_relu" if one == "Relu" else "rnn_tanh"


def gates(array: np.ndarray, order: np.ndarray, state: int) -> np.ndarray:
    """An array whose second axis has the gates one after the other, with them in MXNet's order."""
    apart = array.reshape(array.shape[0], len(order), state, *array.shape[2:])
    return apart[:, order].reshape(array.shape)


def zeros(c: Call, data: Tensor, directions: int, state: int) -> Tensor:
    """The states to begin with where none are given, of the data's batch size."""
    one = c.constant(np.zeros((directions, 1, state), data.dtype), "begin")
    first, second = ((directions, shape[1], state) for shape in data.extents)
    return c.spread(one, (first, second))


CONVERTERS: dict[str, Converter] = {"LSTM": layer("lstm"), "GRU": layer("gru"), "RNN": layer("rnn_tanh")}
