"""Cells that change the output or the states of another cell: zoneout, residual connections."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc import symbol
from mxc.compiler.error import MXNetError
from mxc.rnn.fused_cell import FusedRNNCell
from mxc.rnn.rnn_cell import Arrays, BaseRNNCell, Inputs, NotSteppedError, RNNParams, States, _normalize_sequence
from mxc.rnn.several_cells import BidirectionalCell, SequentialRNNCell
from mxc.symbol import Symbol


class ModifierCell(BaseRNNCell):
    """A cell that changes the output or the states of another one, the base cell. It has the base cell's weights; the
    base cell must not be used by itself then."""

    def __init__(self, base_cell: BaseRNNCell):
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return self.base_cell.state_info

    def begin_state(self, init_sym: Callable[..., Symbol] = symbol.zeros,  # type: ignore[override]
                    **kwargs: Any) -> States:
        """The base cell's states before the first step. init_sym: makes each; kwargs are for it."""
        self._check_own()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=init_sym, **kwargs)
        finally:
            self.base_cell._modified = True

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        raise NotSteppedError(f"{type(self).__name__} has no step of its own")

    def unpack_weights(self, args: Arrays) -> Arrays:
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Arrays) -> Arrays:
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """A cell in which, in training, random elements of the output and of the states keep their values of the step
    before.

    zoneout_outputs, zoneout_states: the probabilities. Raises MXNetError for a FusedRNNCell or BidirectionalCell, which
    have no steps.
    """

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0):
        if isinstance(base_cell, FusedRNNCell):
            raise MXNetError("ZoneoutCell: a FusedRNNCell has no steps; use its unfuse() instead")
        if isinstance(base_cell, BidirectionalCell) or (
                isinstance(base_cell, SequentialRNNCell)
                and any(isinstance(cell, BidirectionalCell) for cell in base_cell._cells)):
            raise MXNetError("ZoneoutCell: a BidirectionalCell has no steps; make ZoneoutCells of the cells in it")
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states

    def reset(self) -> None:
        super().reset()
        self.prev_output: Symbol | None = None

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        output, after = self.base_cell(inputs, states)
        before = self.prev_output if self.prev_output is not None else symbol.zeros((0, 0))
        if self.zoneout_outputs:
            output = _either(self.zoneout_outputs, output, before)
        self.prev_output = output
        if self.zoneout_states:
            after = [_either(self.zoneout_states, new, old) for new, old in zip(after, states, strict=True)]
        return output, after


def _either(probability: float, new: Symbol, old: Symbol) -> Symbol:
    """Elements of `old` with that probability, else of `new`: where dropout has made a zero of a one, `old` is taken.
    """
    return symbol.where(symbol.Dropout(symbol.ones_like(new), p=probability), new, old)


class ResidualCell(ModifierCell):
    """The base cell's output plus its input."""

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        output, states = self.base_cell(inputs, states)
        return _plus_input(output, inputs), states

    def unroll(self, length: int, inputs: Inputs, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, begin_state=begin_state, layout=layout,
                                                    merge_outputs=merge_outputs)
        finally:
            self.base_cell._modified = True
        is_merged = isinstance(outputs, Symbol) if merge_outputs is None else merge_outputs
        steps, _ = _normalize_sequence(length, inputs, layout, is_merged)
        if is_merged:
            return _plus_input(outputs, steps), states
        return [_plus_input(output, step) for output, step in zip(outputs, steps, strict=True)], states


def _plus_input(output: Symbol, inputs: Symbol) -> Symbol:
    return symbol.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")
