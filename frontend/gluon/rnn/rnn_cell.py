"""Recurrent cells: one step of a sequence."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc import ndarray, symbol
from mxc.compiler.error import AssertedError
from mxc.gluon.block import Block
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.nn.activations import LeakyReLU
from mxc.gluon.rnn import sequences
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"mxc.gluon.rnn.combined_cells": """
    BidirectionalCell DropoutCell HybridSequentialRNNCell ModifierCell ResidualCell SequentialRNNCell ZoneoutCell"""}, {
    "mxc.base": "numeric_types string_types", "mxc.gluon.parameter": "tensor_types"})
__all__ = ["GRUCell", "HybridRecurrentCell", "LSTMCell", "RNNCell", "RecurrentCell", *_names]

State = list[Any]


class RecurrentCell(Block):
    """A cell: `cell(inputs, states)` gives the output of one step and the new states."""

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Begin anew to count steps: their symbols' names have the numbers."""
        self._init_counter = self._counter = -1
        for cell in self._children.values():
            cell.reset()  # type: ignore[attr-defined]

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state; a subclass says it."""
        raise NotImplementedError

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = ndarray.zeros, **kwargs: Any) -> State:
        """The states before the first step: zeros, or what `func(name=..., shape=..., ...)` gives.

        Raises AssertionError for a cell that a modifier has taken.
        """
        if self._modified:
            raise AssertedError(f"{self.name} is a part of a modifier cell: call begin_state of that one")
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            given = {**info, **kwargs}
            given.pop("__layout__", None)
            if func in (symbol.zeros, symbol.Variable, symbol.var) or _takes_name(func):
                given["name"] = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(func(**given))
        return states

    def unroll(self, length: int, inputs: Any, begin_state: State | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, State]:
        """The outputs of `length` steps, and the states after the last.

        inputs: a list of steps, or one array or symbol in `layout`. merge_outputs: the outputs as one (True), as a list
        (False), or for None as it comes. valid_length: of each example, (N,): outputs behind it are 0, states are those
        after it.
        """
        self.reset()
        steps, axis, F, batch_size = sequences.steps_of(length, inputs, layout)
        states = _first_states(self, begin_state, F, steps[0], batch_size)
        outputs: list[Any] = []
        history: list[State] = []
        for step in steps[:length]:
            output, states = self(step, states)
            outputs.append(output)
            if valid_length is not None:
                history.append(states)
        if valid_length is not None:
            states = [F.SequenceLast(F.stack(*values, axis=0), sequence_length=valid_length, use_sequence_length=True,
                                     axis=0) for values in zip(*history, strict=True)]
            merge = True if merge_outputs is None else merge_outputs
            return sequences.masked(F, outputs, length, valid_length, axis, merge), states
        return (sequences.merged(F, outputs, axis) if merge_outputs else outputs), states

    def _activated(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """An activation by its name, as a layer, or as a function."""
        if isinstance(activation, str):
            found = {"tanh": F.tanh, "relu": F.relu, "sigmoid": F.sigmoid, "softsign": F.softsign}.get(activation)
            return found(inputs, **kwargs) if found else F.Activation(inputs, act_type=activation, **kwargs)
        if isinstance(activation, LeakyReLU):
            return F.LeakyReLU(inputs, act_type="leaky", slope=activation._alpha, **kwargs)
        return activation(inputs, **kwargs)

    def forward(self, inputs: Any, states: State) -> Any:
        """The output of one step and the new states."""
        self._counter += 1
        return super().forward(inputs, states)


def _takes_name(func: Callable[..., Any]) -> bool:
    return getattr(func, "__module__", "").startswith("mxc.symbol")


def _first_states(cell: Any, begin_state: State | None, F: Any, step: Any, batch_size: int) -> State:
    """The given states, or zeros for a batch like a step's."""
    if begin_state is not None:
        return begin_state
    if F is ndarray:
        return cell.begin_state(func=F.zeros, batch_size=batch_size, ctx=step.context, dtype=step.dtype)
    return cell.begin_state(func=F.zeros, batch_size=batch_size)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """A cell that can be hybridised."""

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The output of one step and the new states; a subclass says them."""
        raise NotImplementedError

    def _make_parameters(self, **parts: tuple[tuple[int, ...], Any]) -> None:
        """Make parameters of these names, each of a shape, in which 0 is not known yet, and with an initializer."""
        for name, (shape, init) in parts.items():
            setattr(self, name, self.params.get(name, shape=shape, init=init, allow_deferred_init=True))


class _GateCell(HybridRecurrentCell):
    """A cell whose gates are sums of a product of the inputs and one of the last output.

    i2h: weights (gates * hidden_size, input_size) and biases for the inputs, h2h for the output of the step before.
    input_size: 0 for what the first input tells.
    """

    _gates = 1

    def __init__(self, hidden_size: int, initializers: tuple[Any, Any, Any, Any], input_size: int, prefix: str | None,
                 params: Any):
        super().__init__(prefix=prefix, params=params)
        self._hidden_size, self._input_size = hidden_size, input_size
        rows = self._gates * hidden_size
        i2h_weight, h2h_weight, i2h_bias, h2h_bias = initializers
        self._make_parameters(i2h_weight=((rows, input_size), i2h_weight), h2h_weight=((rows, hidden_size), h2h_weight),
                              i2h_bias=((rows,), i2h_bias), h2h_bias=((rows,), h2h_bias))

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"}]

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape  # type: ignore[attr-defined]
        return f"{type(self).__name__}({shape[1] if shape[1] else None} -> {shape[0]}{self._more()})"

    def _more(self) -> str:
        return ""

    def _products(self, F: Any, inputs: Any, state: Any, weights: Any) -> tuple[Any, Any, str]:
        """Both products, and what the names of the step's symbols begin with."""
        prefix, rows = f"t{self._counter}_", self._gates * self._hidden_size
        i2h_weight, h2h_weight, i2h_bias, h2h_bias = weights
        return (F.FullyConnected(data=inputs, weight=i2h_weight, bias=i2h_bias, num_hidden=rows, name=f"{prefix}i2h"),
                F.FullyConnected(data=state, weight=h2h_weight, bias=h2h_bias, num_hidden=rows, name=f"{prefix}h2h"),
                prefix)


class RNNCell(_GateCell):
    """out = activation(inputs . i2h' + out . h2h' + biases)."""

    # MXNet's signature
    def __init__(self, hidden_size: int, activation: Any = "tanh", i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", input_size: int = 0, prefix: str | None = None,
                 params: Any = None):
        super().__init__(hidden_size, (i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                                       h2h_bias_initializer), input_size, prefix, params)
        self._activation = activation

    def _alias(self) -> str:
        return "rnn"

    def _more(self) -> str:
        return f", {self._activation}"

    def hybrid_forward(self, F: Any, inputs: Any, states: State, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See the class."""
        i2h, h2h, prefix = self._products(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        total = F.elemwise_add(i2h, h2h, name=f"{prefix}plus0")
        output = self._activated(F, total, self._activation, name=f"{prefix}out")
        return output, [output]


class LSTMCell(_GateCell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997). The gates, in this order: input, forget, candidate,
    output. States: the output and the memory."""

    _gates = 4

    # MXNet's signature
    def __init__(self, hidden_size: int, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
                 i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", input_size: int = 0,
                 prefix: str | None = None, params: Any = None, activation: Any = "tanh",
                 recurrent_activation: Any = "sigmoid"):
        super().__init__(hidden_size, (i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                                       h2h_bias_initializer), input_size, prefix, params)
        self._activation, self._recurrent_activation = activation, recurrent_activation

    def _alias(self) -> str:
        return "lstm"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return super().state_info(batch_size) * 2

    def hybrid_forward(self, F: Any, inputs: Any, states: State, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See the class."""
        i2h, h2h, prefix = self._products(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        total = F.elemwise_add(i2h, h2h, name=f"{prefix}plus0")
        gates = F.SliceChannel(total, num_outputs=4, name=f"{prefix}slice")
        gate = self._recurrent_activation
        takes = self._activated(F, gates[0], gate, name=f"{prefix}i")
        keeps = self._activated(F, gates[1], gate, name=f"{prefix}f")
        candidate = self._activated(F, gates[2], self._activation, name=f"{prefix}c")
        shows = self._activated(F, gates[3], gate, name=f"{prefix}o")
        memory = F.elemwise_add(F.elemwise_mul(keeps, states[1], name=f"{prefix}mul0"),
                                F.elemwise_mul(takes, candidate, name=f"{prefix}mul1"), name=f"{prefix}state")
        shown = (F.Activation(memory, act_type=self._activation, name=f"{prefix}activation0")
                 if isinstance(self._activation, str) else self._activated(F, memory, self._activation))
        output = F.elemwise_mul(shows, shown, name=f"{prefix}out")
        return output, [output, memory]


class GRUCell(_GateCell):
    """The gated recurrent unit, cuDNN's form of it (arXiv 1406.1078). The gates, in this order: reset, update,
    candidate."""

    _gates = 3

    def __init__(self, hidden_size: int, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
                 i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", input_size: int = 0,
                 prefix: str | None = None, params: Any = None):
        super().__init__(hidden_size, (i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                                       h2h_bias_initializer), input_size, prefix, params)

    def _alias(self) -> str:
        return "gru"

    def hybrid_forward(self, F: Any, inputs: Any, states: State, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See the class."""
        before = states[0]
        i2h, h2h, prefix = self._products(F, inputs, before, (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        i2h_r, i2h_z, i2h_c = F.SliceChannel(i2h, num_outputs=3, name=f"{prefix}i2h_slice")
        h2h_r, h2h_z, h2h_c = F.SliceChannel(h2h, num_outputs=3, name=f"{prefix}h2h_slice")
        reset = F.Activation(F.elemwise_add(i2h_r, h2h_r, name=f"{prefix}plus0"), act_type="sigmoid",
                             name=f"{prefix}r_act")
        update = F.Activation(F.elemwise_add(i2h_z, h2h_z, name=f"{prefix}plus1"), act_type="sigmoid",
                              name=f"{prefix}z_act")
        seen = F.elemwise_mul(reset, h2h_c, name=f"{prefix}mul0")
        candidate = F.Activation(F.elemwise_add(i2h_c, seen, name=f"{prefix}plus2"), act_type="tanh",
                                 name=f"{prefix}h_act")
        new = F.elemwise_sub(F.ones_like(update, name=f"{prefix}ones_like0"), update, name=f"{prefix}minus0")
        output = F.elemwise_add(F.elemwise_mul(new, candidate, name=f"{prefix}mul1"),
                                F.elemwise_mul(update, before, name=f"{prefix}mul20"), name=f"{prefix}out")
        return output, [output]
