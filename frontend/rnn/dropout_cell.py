"""A cell that is a layer of dropout, between other cells of a sequence."""
from __future__ import annotations

import numbers
from typing import Any

from mxc import symbol
from mxc.compiler.error import ArgumentTypeError
from mxc.rnn.rnn_cell import BaseRNNCell, Inputs, RNNParams, States, _normalize_sequence
from mxc.symbol import Symbol


class DropoutCell(BaseRNNCell):
    """A cell whose output is dropout of its input. dropout: the probability; with 0 the output is the input. prefix,
    params: see `BaseRNNCell`.

    Raises TypeError for a probability that is no number.
    """

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None):
        super().__init__(prefix, params)
        if not isinstance(dropout, numbers.Real):
            raise ArgumentTypeError(f"DropoutCell: the probability must be a number, got {dropout!r}")
        self.dropout: float = dropout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return []

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        return (symbol.Dropout(data=inputs, p=self.dropout) if self.dropout > 0 else inputs), states

    def unroll(self, length: int, inputs: Inputs, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        self.reset()
        inputs, _ = _normalize_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state=begin_state, layout=layout, merge_outputs=merge_outputs)
