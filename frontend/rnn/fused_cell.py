"""FusedRNNCell: layers of recurrent cells as one operator, and its weights, which are one vector."""
from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

from mxc import symbol
from mxc.compiler.error import ArgumentError, MXNetError
from mxc.ndarray import NDArray, empty
from mxc.rnn import rnn_cell
from mxc.rnn.dropout_cell import DropoutCell
from mxc.rnn.rnn_cell import Arrays, BaseRNNCell, GRUCell, Inputs, LSTMCell, NotSteppedError, RNNCell, RNNParams, States
from mxc.rnn.several_cells import BidirectionalCell, SequentialRNNCell
from mxc.symbol import Symbol

_GATES = {"rnn_relu": RNNCell._gate_names, "rnn_tanh": RNNCell._gate_names, "lstm": LSTMCell._gate_names,
          "gru": GRUCell._gate_names}


class FusedRNNCell(BaseRNNCell):
    """Layers of recurrent cells over a whole sequence as one operator, the fastest way.

    num_hidden: the size of each layer's output, in each direction. mode: "rnn_relu", "rnn_tanh", "lstm" or "gru".
    bidirectional: each layer has two cells, one backwards in time. dropout: the probability between layers.
    get_next_state: whether `unroll` gives the last states too. forget_bias: see `LSTMCell`. prefix: MODE_ by default.
    Raises ValueError for another mode.
    """

    # MXNet's signature
    def __init__(self, num_hidden: int, num_layers: int = 1, mode: str = "lstm", bidirectional: bool = False,
                 dropout: float = 0.0, get_next_state: bool = False, forget_bias: float = 1.0,
                 prefix: str | None = None, params: RNNParams | None = None):
        if mode not in _GATES:
            raise ArgumentError(f"FusedRNNCell: mode is {mode!r}; expected one of {', '.join(_GATES)}")
        super().__init__(f"{mode}_" if prefix is None else prefix, params)
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._dropout, self._get_next_state = bidirectional, dropout, get_next_state
        self._directions = ["l", "r"] if bidirectional else ["l"]
        self._gate_names = list(_GATES[mode])
        self._forget_bias = forget_bias
        given = {"init": None, "num_hidden": num_hidden, "num_layers": num_layers, "mode": mode,
                 "bidirectional": bidirectional, "forget_bias": forget_bias}
        self._parameter = self.params.get("parameters", init=json.dumps(["fusedrnn", given]))
        self._vector = str(self._parameter.name)  # the name of the variable that holds all weights

    @property
    def state_info(self) -> list[dict[str, Any]]:
        shape = len(self._directions) * self._num_layers, 0, self._num_hidden
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(2 if self._mode == "lstm" else 1)]

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        raise NotSteppedError("FusedRNNCell has no single step: it needs the whole sequence; use unroll")

    def unroll(self, length: int, inputs: Inputs, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        self.reset()
        sequence, axis = rnn_cell._normalize_sequence(length, inputs, layout, True)
        if axis == 1:
            warnings.warn("FusedRNNCell: the layout NTC takes two transpositions more than TNC", stacklevel=2)
            sequence = symbol.swapaxes(sequence, dim1=0, dim2=1)
        elif axis != 0:
            raise ArgumentError(f"FusedRNNCell: the layout is {layout!r}; expected NTC or TNC")
        states = self.begin_state() if begin_state is None else begin_state
        named = dict(zip(("state", "state_cell"), states, strict=False))
        made = symbol.RNN(data=sequence, parameters=self._parameter, state_size=self._num_hidden,
                          num_layers=self._num_layers, bidirectional=self._bidirectional, p=self._dropout,
                          state_outputs=self._get_next_state, mode=self._mode, name=f"{self._prefix}rnn",
                          attr={"__layout__": "LNC"} if self._get_next_state else None, **named)
        outputs = made[0] if self._get_next_state else made
        after = [made[i + 1] for i in range(len(named))] if self._get_next_state else []
        if axis == 1:
            outputs = symbol.swapaxes(outputs, dim1=0, dim2=1)
        return rnn_cell._normalize_sequence(length, outputs, layout, merge_outputs)[0], after

    def unfuse(self) -> SequentialRNNCell:
        """The same layers as single cells, with dropout between them: for weights that `unpack_weights` gives."""
        stack = SequentialRNNCell()
        for layer in range(self._num_layers):
            cells = [self._cell(f"{self._prefix}{side}{layer}_") for side in self._directions]
            stack.add(BidirectionalCell(cells[0], cells[1], output_prefix=f"{self._prefix}bi_l{layer}_")
                      if self._bidirectional else cells[0])
            if self._dropout > 0 and layer < self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{layer}_"))
        return stack

    def _cell(self, prefix: str) -> BaseRNNCell:
        if self._mode == "lstm":
            return LSTMCell(self._num_hidden, prefix=prefix, forget_bias=self._forget_bias)
        if self._mode == "gru":
            return GRUCell(self._num_hidden, prefix=prefix)
        return RNNCell(self._num_hidden, activation=self._mode.removeprefix("rnn_"), prefix=prefix)

    def unpack_weights(self, args: Arrays) -> Arrays:
        """Weights by name, with the vector cut into a weight and a bias for each layer, direction and gate. Their names
        are those that `unpack_weights` of the cells of `unfuse` gives. Raises KeyError where the vector is missing,
        MXNetError where its length does not fit."""
        args = dict(args)
        vector = args.pop(self._vector)
        sides, hidden, gates = len(self._directions), self._num_hidden, self._num_gates
        width = vector.size // sides // hidden // gates - (self._num_layers - 1) * (hidden + sides * hidden + 2) \
            - hidden - 2
        if width < 1 or self._size(width) != vector.size:
            raise MXNetError(f"{self._vector} has {vector.size} elements, which no width of the input gives for "
                             f"{self._num_layers} layers of {sides} x {hidden} in mode {self._mode}")
        for name, begin, shape in self._places(width):
            rows = vector[begin:begin + shape[0] * (shape[1] if len(shape) > 1 else 1)]
            args[name] = rows.reshape(shape).copy()
        return args

    def pack_weights(self, args: Arrays) -> Arrays:
        """The opposite of `unpack_weights`."""
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        vector: NDArray = empty((self._size(first.shape[1]),), first.context, first.dtype)
        for name, begin, shape in self._places(first.shape[1]):
            weight = args.pop(name)
            if weight.shape != shape:
                raise MXNetError(f"{name} has the shape {weight.shape}; expected {shape}")
            vector[begin:begin + weight.size] = weight.reshape((-1,))
        args[self._vector] = vector
        return args

    def _size(self, width: int) -> int:
        """The elements of the vector for inputs of that width."""
        sides, hidden = len(self._directions), self._num_hidden
        later = (self._num_layers - 1) * (hidden + sides * hidden + 2)
        return (width + hidden + 2 + later) * hidden * self._num_gates * sides

    def _places(self, width: int) -> Iterator[tuple[str, int, tuple[int, ...]]]:
        """Name, first element in the vector, and shape of each weight, then of each bias."""
        hidden, at = self._num_hidden, 0
        for kind in ("weight", "bias"):
            for layer in range(self._num_layers):
                for side in self._directions:
                    for place in ("i2h", "h2h"):
                        columns = hidden if place == "h2h" else width if not layer else hidden * len(self._directions)
                        shape = (hidden, columns) if kind == "weight" else (hidden,)
                        for gate in self._gate_names:
                            yield f"{self._prefix}{side}{layer}_{place}{gate}_{kind}", at, shape
                            at += hidden * (columns if kind == "weight" else 1)
