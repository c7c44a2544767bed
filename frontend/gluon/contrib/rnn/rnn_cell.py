"""A cell with a projection, one whose dropout is the same in all steps, and `dynamic_unroll`."""
from __future__ import annotations

from typing import Any

from mxc.compiler.error import AssertedError
from mxc.gluon.contrib.rnn.unrolling import dynamic_unroll  # noqa: F401  # a name of this module in MXNet too
from mxc.gluon.rnn import sequences
from mxc.gluon.rnn.combined_cells import (
    BidirectionalCell,
    HybridSequentialRNNCell,
    ModifierCell,
    SequentialRNNCell,
)
from mxc.gluon.rnn.rnn_cell import HybridRecurrentCell, State, _first_states

__all__ = ["LSTMPCell", "VariationalDropoutCell"]


class LSTMPCell(HybridRecurrentCell):
    """An LSTMCell whose output is projected to fewer elements (arXiv 1402.1128). States: the output (batch_size,
    projection_size) and the memory (batch_size, hidden_size).

    i2h, h2h: weights and biases as LSTMCell's. h2r_weight: (projection_size, hidden_size). input_size: 0 for what the
    first input tells.
    """

    # MXNet's signature
    def __init__(self, hidden_size: int, projection_size: int, i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, h2r_weight_initializer: Any = None,
                 i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", input_size: int = 0,
                 prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        self._hidden_size, self._projection_size = hidden_size, projection_size
        rows = 4 * hidden_size
        self._make_parameters(
            i2h_weight=((rows, input_size), i2h_weight_initializer),
            h2h_weight=((rows, projection_size), h2h_weight_initializer),
            h2r_weight=((projection_size, hidden_size), h2r_weight_initializer),
            i2h_bias=((rows,), i2h_bias_initializer), h2h_bias=((rows,), h2h_bias_initializer))

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return [{"shape": (batch_size, self._projection_size), "__layout__": "NC"},
                {"shape": (batch_size, self._hidden_size), "__layout__": "NC"}]

    def _alias(self) -> str:
        return "lstmp"

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape  # type: ignore[attr-defined]
        return f"{type(self).__name__}({shape[1] if shape[1] else None} -> {shape[0]} -> {self._projection_size})"

    def hybrid_forward(self, F: Any, inputs: Any, states: State, i2h_weight: Any, h2h_weight: Any, h2r_weight: Any,
                       i2h_bias: Any, h2h_bias: Any) -> Any:
        """See the class."""
        prefix, rows = f"t{self._counter}_", 4 * self._hidden_size
        i2h = F.FullyConnected(data=inputs, weight=i2h_weight, bias=i2h_bias, num_hidden=rows, name=f"{prefix}i2h")
        h2h = F.FullyConnected(data=states[0], weight=h2h_weight, bias=h2h_bias, num_hidden=rows, name=f"{prefix}h2h")
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, name=f"{prefix}slice")
        takes, keeps, candidate, shows = (
            F.Activation(gates[i], act_type=kind, name=f"{prefix}{gate}")
            for i, (gate, kind) in enumerate((("i", "sigmoid"), ("f", "sigmoid"), ("c", "tanh"), ("o", "sigmoid"))))
        memory = F.elemwise_add(keeps * states[1], takes * candidate, name=f"{prefix}state")
        hidden = F.elemwise_mul(shows, F.Activation(memory, act_type="tanh"), name=f"{prefix}hidden")
        output = F.FullyConnected(data=hidden, weight=h2r_weight, num_hidden=self._projection_size, no_bias=True,
                                  name=f"{prefix}out")
        return output, [output, memory]


class VariationalDropoutCell(ModifierCell):
    """Dropout around another cell that drops the same elements in all steps of a sequence (arXiv 1512.05287): of the
    inputs, of the first state, and of the outputs, with these probabilities. `reset` draws anew.

    Raises AssertionError for dropout of the states of a BidirectionalCell, whose directions begin apart.
    """

    def __init__(self, base_cell: Any, drop_inputs: float = 0., drop_states: float = 0., drop_outputs: float = 0.):
        both = isinstance(base_cell, BidirectionalCell) or (
            isinstance(base_cell, (SequentialRNNCell, HybridSequentialRNNCell))
            and any(isinstance(cell, BidirectionalCell) for cell in base_cell._children.values()))
        if drop_states and both:
            raise AssertedError("the states of a BidirectionalCell take no variational dropout: put "
                                "VariationalDropoutCells into it")
        super().__init__(base_cell)
        self.drop_inputs, self.drop_states, self.drop_outputs = drop_inputs, drop_states, drop_outputs
        self._masks: dict[str, Any] = {}

    def _alias(self) -> str:
        return "vardrop"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"

    def reset(self) -> None:
        """Forget which elements are dropped, too."""
        super().reset()
        self._masks = {}

    def _dropped(self, F: Any, name: str, p: float, value: Any) -> Any:
        """The value, times the factors that the first step has drawn."""
        if not p:
            return value
        if name not in self._masks:
            self._masks[name] = F.Dropout(F.ones_like(value), p=p)
        return value * self._masks[name]

    def hybrid_forward(self, F: Any, inputs: Any, states: State) -> Any:
        """See the class."""
        states = [self._dropped(F, "states", self.drop_states, states[0]), *states[1:]]
        inputs = self._dropped(F, "inputs", self.drop_inputs, inputs)
        output, new = self.base_cell(inputs, states)
        return self._dropped(F, "outputs", self.drop_outputs, output), new

    def unroll(self, length: int, inputs: Any, begin_state: State | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, State]:
        """See RecurrentCell; without dropout of states, inputs and outputs are dropped for all steps at once."""
        if self.drop_states:
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        self.reset()
        steps, axis, F, batch_size = sequences.steps_of(length, inputs, layout)
        states = _first_states(self, begin_state, F, steps[0], batch_size)
        if self.drop_inputs:
            inputs = sequences.merged(F, steps, axis) if isinstance(inputs, (list, tuple)) else inputs
            steps = sequences.split(F, F.Dropout(inputs, p=self.drop_inputs, axes=(axis,)), length, axis)
        outputs, states = self.base_cell.unroll(length, steps, states, layout, True, valid_length)
        if self.drop_outputs:
            outputs = F.Dropout(outputs, p=self.drop_outputs, axes=(axis,))
        return (sequences.split(F, outputs, length, axis) if merge_outputs is False else outputs), states
