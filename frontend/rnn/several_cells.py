"""Cells made of cells: several one behind the other, or two, one of which goes backwards in time."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc import symbol
from mxc.compiler.error import MXNetError
from mxc.rnn.rnn_cell import Arrays, BaseRNNCell, Inputs, NotSteppedError, RNNParams, States, _normalize_sequence
from mxc.symbol import Symbol


class _CellsCell(BaseRNNCell):
    """A cell that is made of cells; its states are those of the cells, one after the other."""

    _cells: list[BaseRNNCell]

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **kwargs: Any) -> States:  # type: ignore[override]
        """The states of all cells before the first step; kwargs: for their `begin_state`."""
        self._check_own()
        return [state for cell in self._cells for state in cell.begin_state(**kwargs)]

    def unpack_weights(self, args: Arrays) -> Arrays:
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return args

    def pack_weights(self, args: Arrays) -> Arrays:
        for cell in self._cells:
            args = cell.pack_weights(args)
        return args

    def _with_states(self, states: Sequence[Symbol]) -> list[tuple[BaseRNNCell, States]]:
        """Each cell with its part of the states."""
        found, at = [], 0
        for cell in self._cells:
            count = len(cell.state_info)
            found.append((cell, list(states[at:at + count])))
            at += count
        return found


class SequentialRNNCell(_CellsCell):
    """Cells one behind the other, added by `add`. params: weights that all of them share (`RNNParams`)."""

    def __init__(self, params: RNNParams | None = None):
        self._cells = []
        super().__init__("", params)
        self._override_cell_params = params is not None

    def add(self, cell: BaseRNNCell) -> None:
        """Put a cell behind the others. Raises MXNetError where both the cell and this one were given weights."""
        if self._override_cell_params:
            if not cell._own_params:
                raise MXNetError("SequentialRNNCell: params are given to it and to a cell that is added; give them to "
                                 "one of both")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)
        self._cells.append(cell)

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        self._counter += 1
        after: States = []
        for cell, before in self._with_states(states):
            inputs, new = cell(inputs, before)
            after += new
        return inputs, after

    def unroll(self, length: int, inputs: Inputs, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, States]:
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        after: States = []
        outputs: Any = inputs
        for cell, before in self._with_states(states):
            merge = merge_outputs if cell is self._cells[-1] else None
            outputs, new = cell.unroll(length, outputs, begin_state=before, layout=layout, merge_outputs=merge)
            after += new
        return outputs, after


class BidirectionalCell(_CellsCell):
    """Two cells, of which the second goes backwards in time; their outputs are joined.

    l_cell, r_cell: the two cells. params: weights that both share (`RNNParams`). output_prefix: the prefix of the names
    of the joined outputs.
    """

    def __init__(self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None,
                 output_prefix: str = "bi_"):
        self._cells = [l_cell, r_cell]
        super().__init__("", params)
        self._output_prefix = output_prefix
        if params is not None:
            if not (l_cell._own_params and r_cell._own_params):
                raise MXNetError("BidirectionalCell: params are given to it and to one of its cells; give them to one "
                                 "of both")
            for cell in self._cells:
                cell.params._params.update(self.params._params)
        for cell in self._cells:
            self.params._params.update(cell.params._params)

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        raise NotSteppedError("BidirectionalCell has no single step: it needs the whole sequence; use unroll")

    def unroll(self, length: int, inputs: Inputs, begin_state: States | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None) -> tuple[Any, Any]:
        """See `BaseRNNCell.unroll`. The states are two lists, those of the first cell and those of the second."""
        self.reset()
        steps, axis = _normalize_sequence(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        (left, left_states), (right, right_states) = self._with_states(states)
        forth, left_states = left.unroll(length, steps, begin_state=left_states, layout=layout,
                                         merge_outputs=merge_outputs)
        back, right_states = right.unroll(length, steps[::-1], begin_state=right_states, layout=layout,
                                          merge_outputs=merge_outputs)
        if merge_outputs is None:
            merge_outputs = isinstance(forth, Symbol) and isinstance(back, Symbol)
            forth, _ = _normalize_sequence(length, forth, layout, merge_outputs)
            back, _ = _normalize_sequence(length, back, layout, merge_outputs)
        if merge_outputs:
            outputs: Any = symbol.Concat(forth, symbol.reverse(back, axis=axis), dim=2,
                                         name=f"{self._output_prefix}out")
        else:
            outputs = [symbol.Concat(one, other, dim=1, name=f"{self._output_prefix}t{i}")
                       for i, (one, other) in enumerate(zip(forth, back[::-1], strict=True))]
        return outputs, [left_states, right_states]
