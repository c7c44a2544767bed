"""Shapes, dtypes and flops of recurrent layers.

`pieces` tells where the weights of each layer are in the one vector of parameters.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes, require_kind
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import PANEL, Shape, Shapes, merge

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
KEPT = {"rnn_relu": 0, "rnn_tanh": 0, "gru": 4, "lstm": 4}  # blocks of gates that the gradient reads


@dataclass(frozen=True)
class Piece:
    """One matrix or bias in the vector of parameters: its layer, direction, name, first element and shape.

    name: "input" (gates * size, inputs), "recurrent" (gates * size, outputs), "projection" (outputs, size),
    "input_bias" or "recurrent_bias" (gates * size,).
    """

    layer: int
    direction: int
    name: str
    start: int
    shape: Shape

    @property
    def stop(self) -> int:
        return self.start + prod(self.shape)


def directions(params: Params) -> int:
    return 2 if params.bidirectional else 1


def output_size(params: Params) -> int:
    """Elements of one direction's output: projection_size, else state_size."""
    size = params.state_size if params.projection_size is None else params.projection_size
    assert isinstance(size, int)
    return size


def pieces(params: Params, inputs: int) -> list[Piece]:
    """The vector's parts in order: first all matrices, layer by layer and direction by direction, then all biases in
    the same order."""
    assert isinstance(params.num_layers, int) and isinstance(params.state_size, int)
    rows, outputs = GATES[str(params.mode)] * params.state_size, output_size(params)
    found: list[Piece] = []

    def add(place: tuple[int, int], name: str, *shape: int) -> None:
        found.append(Piece(*place, name, found[-1].stop if found else 0, shape))

    places = [(layer, direction) for layer in range(params.num_layers) for direction in range(directions(params))]
    for place in places:
        add(place, "input", rows, outputs * directions(params) if place[0] else inputs)
        add(place, "recurrent", rows, outputs)
        if params.projection_size is not None:
            add(place, "projection", outputs, params.state_size)
    for place in places:
        add(place, "input_bias", rows)
        add(place, "recurrent_bias", rows)
    return found


def length_of(params: Params, inputs: int) -> int:
    """How many elements the pieces have together, however many layers there are."""
    assert isinstance(params.num_layers, int) and isinstance(params.state_size, int)
    rows, outputs, both = GATES[str(params.mode)] * params.state_size, output_size(params), directions(params)
    every = rows * (outputs + 2) + (0 if params.projection_size is None else outputs * params.state_size)
    return both * (rows * inputs + (params.num_layers - 1) * rows * both * outputs + params.num_layers * every)


def _inputs_of(params: Params, length: int) -> int:
    """How wide the data is, from the length of the parameters; 0 when no width fits."""
    fixed, slope = length_of(params, 0), length_of(params, 1) - length_of(params, 0)
    return (length - fixed) // slope if (length - fixed) % slope == 0 and length > fixed else 0


def _refuse(params: Params) -> None:
    for name in ("state_size", "num_layers", "projection_size"):
        if params[name] == 0:
            raise MXNetError(f"expected {name} of at least 1, got 0")
    if params.projection_size is not None and params.mode != "lstm":
        raise MXNetError(f"expected mode=lstm with projection_size, got mode={params.mode}")


def rnn(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (T, N, inputs), parameters (as many as `pieces` has), states (layers * directions, N, size), sequence_length
    (N,) -> (T, N, directions * outputs), the last states of the states' shapes, and Dropout's factors.

    N follows from any of these, T from the output too, the data's width from the number of parameters too.
    """
    _refuse(params)
    data, length, state, *rest = ins
    for name, shape in (("data", data), ("state", state)):
        if shape is not None and len(shape) != 3:
            raise MXNetError(f"expected {name} of 3 dimensions, got {shape}")
    cells = rest[:1] if params.mode == "lstm" else []
    lengths = rest[len(cells):]
    out = outs[0]
    if all(known is None for known in (data, state, *cells, out)):
        return ins, outs
    assert isinstance(params.num_layers, int) and isinstance(params.state_size, int)
    both, outputs = directions(params), output_size(params)
    steps, batch, inputs = data or (0, 0, 0)
    for known in (state, *cells, outs[1], outs[2]):
        batch = batch or (known[1] if known is not None and len(known) == 3 else 0)
    batch = batch or next((known[0] for known in lengths if known is not None and len(known) == 1), 0)
    merged = merge((steps, batch, both * outputs), out)
    assert merged is not None
    steps, batch = merged[:2]
    if not inputs and length is not None:
        inputs = _inputs_of(params, length[0])
    if inputs:
        length = merge((length_of(params, inputs),), length)
    state_shape = (params.num_layers * both, batch, outputs)
    cell_shape = (*state_shape[:2], params.state_size)
    mask = (params.num_layers - 1, *merged) if dropped(params) else (1,)
    return ([(steps, batch, inputs), length, state_shape, *[cell_shape for _ in cells], *[(batch,) for _ in lengths]],
            [merged, state_shape, cell_shape, mask])


def dropped(params: Params) -> bool:
    """Whether training drops something between layers."""
    assert isinstance(params.num_layers, int)
    return params.p != 0 and params.num_layers > 1


def rnn_layer(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """pre (T, N, gates * H), state (N, H) -> out (T, N, H), last state and cell, gates (T, N, 4 H), cells (T, N, H).

    The weight (H, gates * H) comes packed. (1,) stands for what the mode does not have or `keep` does not ask for.
    """
    pre, state = ins[0], ins[3]
    if pre is None or state is None:
        return ins, outs
    steps, batch, size = pre[0], pre[1], state[1]
    kept, lstm = KEPT[str(params.mode)] if params.keep else 0, params.mode == "lstm"
    width = GATES[str(params.mode)] * size
    return ([(steps, batch, width), (1, -(-width // PANEL), size, PANEL), (width,), (batch, size), *ins[4:]],
            [(steps, batch, size), (batch, size), (batch, size) if lstm else (1,),
             (steps, batch, kept * size) if kept else (1,), (steps, batch, size) if kept and lstm else (1,)])


def rnn_layer_grad(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out_grad (T, N, H) -> gradients of pre (T, N, gates * H), of state and cell (N, H); the state before each step
    (T, N, H); of gru the gradients of the recurrent products (T, N, 3 H), else (1,). The weight comes packed."""
    og = ins[0]
    if og is None:
        return ins, outs
    steps, batch, size = og
    pre = (steps, batch, GATES[str(params.mode)] * size)
    weight = (1, -(-size // PANEL), pre[2], PANEL)
    return [*ins[:8], weight, *ins[9:]], [pre, (batch, size), (batch, size) if params.mode == "lstm" else (1,), og,
                 pre if params.mode == "gru" else (1,)]


def rnn_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """One float dtype for all but sequence_length, which may be of any; the data's where nothing says another."""
    count = len(ins) - bool(params["use_sequence_length"])
    known = merge_dtypes([*ins[:count], *outs])
    require_kind(known, "float", "data")
    return [known] * count + [length or known for length in ins[count:]], [known] * len(outs)


def rnn_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """2 for each element of the matrices and 1 for each of the biases, for each step of each sequence.

    The vector of parameters holds the matrices of all layers and directions and, for each, two biases of gates x size.
    """
    (steps, batch, _), (parameters,) = ins[0], ins[1]
    layers, size = params["num_layers"], params["state_size"]
    assert isinstance(layers, int) and isinstance(size, int)
    gates = {"gru": 3, "lstm": 4}.get(str(params.mode), 1)
    biases = 2 * gates * size * layers * (2 if params.bidirectional else 1)
    return steps * batch * (2 * (parameters - biases) + biases)
