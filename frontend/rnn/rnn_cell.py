"""Cells of recurrent networks: one step in time as a symbol, and such steps unrolled."""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from mxc import symbol
from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.ndarray import NDArray, concatenate
from mxc.runtime.elsewhere import elsewhere
from mxc.symbol import Symbol

__getattr__, _names = elsewhere(
    __name__,
    {"": "functools warnings init=mxc.initializer ndarray=mxc.ndarray", "mxc.base": "numeric_types string_types",
     "mxc.rnn.several_cells": "BidirectionalCell SequentialRNNCell",
     "mxc.rnn.dropout_cell": "DropoutCell", "mxc.rnn.modifier_cells": "ModifierCell ResidualCell ZoneoutCell",
     "mxc.rnn.fused_cell": "FusedRNNCell",
     "mxc.rnn.conv_cells": "BaseConvRNNCell ConvGRUCell ConvLSTMCell ConvRNNCell"})
__all__ = ["BaseRNNCell", "GRUCell", "LSTMCell", "RNNCell", "RNNParams", "symbol", *_names]

Arrays = dict[str, NDArray]
States = list[Symbol]
Inputs = Symbol | Sequence[Symbol]


class NotSteppedError(MXNetError, NotImplementedError):
    """A cell that has no single step; a NotImplementedError too."""


class RNNParams:
    """Variables by name, each made when it is first asked for: cells that have one of these share their weights.

    prefix: the beginning of the variables' names.
    """

    def __init__(self, prefix: str = ""):
        self._prefix, self._params = prefix, {}

    _params: dict[str, Symbol]

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """The variable PREFIX + name; kwargs: for `mx.sym.Variable`, when it is made."""
        full = self._prefix + name
        if full not in self._params:
            self._params[full] = symbol.Variable(full, **kwargs)
        return self._params[full]


def _normalize_sequence(length: int, inputs: Inputs, layout: str, merge: bool | None,
                        in_layout: str | None = None) -> tuple[Any, int]:
    """A sequence in the wanted form, and the axis of time in `layout`.

    inputs: a symbol for all steps, or a list with one for each. merge: the wanted form: True for one symbol, False for
    a list, None for either. in_layout: the layout of a symbol for all steps, where it is not `layout`.
    Raises ValueError for a list of another length, for a symbol of several outputs and for a layout without T.
    """
    axis = _time_axis(layout)
    in_axis = axis if in_layout is None else _time_axis(in_layout)
    if isinstance(inputs, Symbol):
        if merge is False:
            if len(inputs.list_outputs()) != 1:
                raise ArgumentError(f"unroll takes a list of symbols, or one of one output; this one has the outputs "
                                    f"{', '.join(inputs.list_outputs())}")
            return list(symbol.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=1)), axis
    else:
        if not isinstance(inputs, (list, tuple)) or not all(isinstance(each, Symbol) for each in inputs):
            raise ArgumentTypeError(f"unroll takes a symbol or a list of symbols, got {type(inputs)}")
        if length is not None and len(inputs) != length:
            raise ArgumentError(f"unroll: the length is {length}, but there are {len(inputs)} inputs")
        if not merge:
            return list(inputs), axis
        inputs = symbol.Concat(*[symbol.expand_dims(each, axis=axis) for each in inputs], dim=axis)
        in_axis = axis
    if axis != in_axis:
        inputs = symbol.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis


def _time_axis(layout: str) -> int:
    if not isinstance(layout, str) or "T" not in layout:
        raise ArgumentError(f"the layout {layout!r} has no axis T for time; use NTC or TNC")
    return layout.find("T")


class BaseRNNCell:
    """A cell: a function of the input of one step in time and the states before it.

    prefix: the beginning of the names of symbols and weights. params: weights that are shared with other cells
    (`RNNParams`).
    """

    _gate_names: Sequence[str] = ()

    def __init__(self, prefix: str = "", params: RNNParams | None = None):
        self._own_params = params is None
        self._params = RNNParams(prefix) if params is None else params
        self._prefix, self._modified = prefix, False
        self.reset()

    def reset(self) -> None:
        """Count steps and states from 0 again; call it before another graph is made."""
        self._init_counter = self._counter = -1

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        """The output of one step, and the states after it."""
        raise NotSteppedError(f"{type(self).__name__} has no step of its own")

    @property
    def params(self) -> RNNParams:
        """The weights. After a program has asked for them they may belong to another cell too."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; 0 stands for the batch."""
        raise NotSteppedError(f"{type(self).__name__} has no states of its own")

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """The shape of each state; 0 stands for the batch."""
        return [info["shape"] for info in self.state_info]

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

    def begin_state(self, func: Callable[..., Symbol] = symbol.zeros, **kwargs: Any) -> States:
        """Symbols for the states before the first step.

        func: a function that makes each of them: `mx.sym.zeros`, `mx.sym.Variable`, or another one that takes name,
        shape and `__layout__`; kwargs are for it. Raises MXNetError for a cell that is a modifier's base cell.
        """
        self._check_own()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**kwargs, **info}))
        return states

    def unroll(self, length: int, inputs: Inputs, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        """The outputs of `length` steps, and the last states.

        inputs: a symbol for all steps, whose axes are as `layout` says, or a list with one for each. begin_state:
        the states before the first step, by default `begin_state()`. merge_outputs: True for one symbol of all outputs,
        False for a list, None for the form in which they are made. Raises ValueError for inputs that do not fit.
        """
        self.reset()
        steps, _ = _normalize_sequence(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for each in steps:
            output, states = self(each, states)
            outputs.append(output)
        return _normalize_sequence(length, outputs, layout, merge_outputs)[0], states

    def unpack_weights(self, args: Arrays) -> Arrays:
        """Weights by name, with those of this cell cut into one for each gate. Raises KeyError for one that is missing.
        """
        args = dict(args)
        height = getattr(self, "_num_hidden", 0)
        for place, kind in self._matrices():
            packed = args.pop(f"{self._prefix}{place}_{kind}")
            for i, gate in enumerate(self._gate_names):
                args[f"{self._prefix}{place}{gate}_{kind}"] = packed[i * height:(i + 1) * height].copy()
        return args

    def pack_weights(self, args: Arrays) -> Arrays:
        """The opposite of `unpack_weights`."""
        args = dict(args)
        for place, kind in self._matrices():
            args[f"{self._prefix}{place}_{kind}"] = concatenate(
                [args.pop(f"{self._prefix}{place}{gate}_{kind}") for gate in self._gate_names])
        return args

    def _matrices(self) -> list[tuple[str, str]]:
        return [(place, kind) for place in ("i2h", "h2h") for kind in ("weight", "bias")] if self._gate_names else []

    def _check_own(self) -> None:
        if self._modified:
            raise MXNetError(f"a modifier such as ZoneoutCell has this {type(self).__name__}; use the modifier instead")

    def _get_activation(self, inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
        """An activation by name, or by a function of a symbol."""
        if isinstance(activation, str):
            return symbol.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)

    def _next_name(self) -> str:
        """The prefix of the next step's names."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"


class _DenseCell(BaseRNNCell):
    """A cell whose gates are dense layers of the input and of the state before."""

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, **bias: Any):
        super().__init__(prefix, params)
        self._num_hidden = num_hidden
        self._iW, self._iB = self.params_at("i2h", **bias)
        self._hW, self._hB = self.params_at("h2h")

    def params_at(self, place: str, **bias: Any) -> tuple[Symbol, Symbol]:
        """The weight and the bias of one of the two layers."""
        return self._params.get(f"{place}_weight"), self._params.get(f"{place}_bias", **bias)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _layers(self, name: str, inputs: Symbol, state: Symbol) -> tuple[Symbol, Symbol]:
        """The dense layers of the input and of the state, for all gates."""
        size = self._num_hidden * self._num_gates
        return (symbol.FullyConnected(data=inputs, weight=self._iW, bias=self._iB, num_hidden=size, name=f"{name}i2h"),
                symbol.FullyConnected(data=state, weight=self._hW, bias=self._hB, num_hidden=size, name=f"{name}h2h"))


def plain_step(cell: Any, inputs: Symbol, states: States, activation: Any) -> tuple[Symbol, States]:
    """A step of a cell without gates: the activation of the sum of both layers."""
    name = cell._next_name()
    from_input, from_state = cell._layers(name, inputs, states[0])
    output = cell._get_activation(from_input + from_state, activation, name=f"{name}out")
    return output, [output]


def lstm_step(cell: Any, inputs: Symbol, states: States, activation: Any, **axis: Any) -> tuple[Symbol, States]:
    """A step of long short-term memory; `activation` is for new memory and output. axis: the axis of the gates."""
    name = cell._next_name()
    from_input, from_state = cell._layers(name, inputs, states[0])
    gates = symbol.SliceChannel(from_input + from_state, num_outputs=4, name=f"{name}slice", **axis)
    taken, kept = (symbol.Activation(gates[i], act_type="sigmoid", name=f"{name}{letter}") for i, letter in
                   enumerate("if"))
    new = cell._get_activation(gates[2], activation, name=f"{name}c")
    shown = symbol.Activation(gates[3], act_type="sigmoid", name=f"{name}o")
    memory = symbol._internal._plus(kept * states[1], taken * new, name=f"{name}state")
    output = symbol._internal._mul(shown, cell._get_activation(memory, activation), name=f"{name}out")
    return output, [output, memory]


def gru_step(cell: Any, inputs: Symbol, states: States, activation: Any, layers: str, **axis: Any
             ) -> tuple[Symbol, States]:
    """A step of a gated recurrent unit. layers: the prefix of the layers' names. axis: the axis of the gates."""
    name = cell._next_name()
    before = states[0]
    from_input, from_state = cell._layers(name + layers, inputs, before)
    reset_i, update_i, new_i = symbol.SliceChannel(from_input, num_outputs=3, name=f"{name}_i2h_slice", **axis)
    reset_h, update_h, new_h = symbol.SliceChannel(from_state, num_outputs=3, name=f"{name}_h2h_slice", **axis)
    reset = symbol.Activation(reset_i + reset_h, act_type="sigmoid", name=f"{name}_r_act")
    update = symbol.Activation(update_i + update_h, act_type="sigmoid", name=f"{name}_z_act")
    new = cell._get_activation(new_i + reset * new_h, activation, name=f"{name}_h_act")
    output = symbol._internal._plus((1.0 - update) * new, update * before, name=f"{name}out")
    return output, [output]


class RNNCell(_DenseCell):
    """A simple recurrent cell: activation(W x + b + R h + c).

    num_hidden: the size of its output. activation: a name, such as "tanh" or "relu", or a function of a symbol.
    prefix, params: see `BaseRNNCell`.
    """

    _gate_names = ("",)

    def __init__(self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_",
                 params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        return plain_step(self, inputs, states, self._activation)


class LSTMCell(_DenseCell):
    """Long short-term memory, with the gates input, forget, memory and output.

    num_hidden: the size of its output and of its memory. forget_bias: the first value of the forget gate's bias.
    prefix, params: see `BaseRNNCell`.
    """

    _gate_names = ("_i", "_f", "_c", "_o")

    def __init__(self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None,
                 forget_bias: float = 1.0):
        super().__init__(num_hidden, prefix, params, init=json.dumps(["lstmbias", {"forget_bias": forget_bias}]))

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return super().state_info * 2

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        return lstm_step(self, inputs, states, "tanh")


class GRUCell(_DenseCell):
    """A gated recurrent unit, with the gates reset and update and the new value.

    num_hidden: the size of its output. prefix, params: see `BaseRNNCell`.
    """

    _gate_names = ("_r", "_z", "_o")

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None):
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        return gru_step(self, inputs, states, "tanh", "_")
