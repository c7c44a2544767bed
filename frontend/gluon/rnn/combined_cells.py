"""Cells made of cells: one above the other, in both directions, and with dropout, zoneout or a residual around one."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc import ndarray, symbol
from mxc.compiler.error import AssertedError
from mxc.gluon.rnn import sequences
from mxc.gluon.rnn.rnn_cell import HybridRecurrentCell, RecurrentCell, State, _first_states

__all__ = ["BidirectionalCell", "DropoutCell", "HybridSequentialRNNCell", "ModifierCell", "ResidualCell",
           "SequentialRNNCell", "ZoneoutCell"]


class _Stack:
    """What both kinds of stacks share: each cell's output is the next one's input."""

    _children: Any

    def __repr__(self) -> str:
        lines = "\n".join(f"({i}): " + repr(cell).replace("\n", "\n  ") for i, cell in self._children.items())
        return f"{type(self).__name__}(\n{lines}\n)"

    def add(self, cell: Any) -> None:
        """Put a cell above those that are there."""
        self.register_child(cell)  # type: ignore[attr-defined]

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Those of all cells."""
        return [info for cell in self._children.values() for info in cell.state_info(batch_size)]

    def begin_state(self, **kwargs: Any) -> State:
        """Those of all cells. Raises AssertionError for a cell that a modifier has taken."""
        if self._modified:  # type: ignore[attr-defined]
            raise AssertedError(f"{self.name} is a part of a modifier cell: "  # type: ignore[attr-defined]
                                "call begin_state of that one")
        return [state for cell in self._children.values() for state in cell.begin_state(**kwargs)]

    def __call__(self, inputs: Any, states: State) -> Any:
        """The last cell's output, and all new states."""
        self._counter += 1  # type: ignore[attr-defined]
        made: State = []
        for cell, own in zip(self._children.values(), self._parts(states), strict=True):
            if isinstance(cell, BidirectionalCell):
                raise AssertedError("a BidirectionalCell reads whole sequences, so a stack with one is unrolled only")
            inputs, new = cell(inputs, own)
            made.extend(new)
        return inputs, made

    def _parts(self, states: State) -> list[State]:
        """The states of each cell."""
        found, first = [], 0
        for cell in self._children.values():
            count = len(cell.state_info())
            found.append(states[first:first + count])
            first += count
        return found

    def unroll(self, length: int, inputs: Any, begin_state: State | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, State]:
        """See RecurrentCell; cell by cell."""
        self.reset()  # type: ignore[attr-defined]
        steps, _, F, batch_size = sequences.steps_of(length, inputs, layout)
        states = _first_states(self, begin_state, F, steps[0], batch_size)
        made: State = []
        cells = list(self._children.values())
        inputs = steps
        for i, (cell, own) in enumerate(zip(cells, self._parts(states), strict=True)):
            merge = merge_outputs if i == len(cells) - 1 else None
            inputs, new = cell.unroll(length, inputs=inputs, begin_state=own, layout=layout, merge_outputs=merge,
                                      valid_length=valid_length)
            made.extend(new)
        return inputs, made

    def __getitem__(self, i: int) -> Any:
        return list(self._children.values())[i]

    def __len__(self) -> int:
        return len(self._children)


class SequentialRNNCell(_Stack, RecurrentCell):  # type: ignore[misc]  # begin_state takes names only, as MXNet's
    """Cells one above the other."""

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, *args: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError: its cells compute."""
        raise NotImplementedError


class HybridSequentialRNNCell(_Stack, HybridRecurrentCell):  # type: ignore[misc]
    """Hybrid cells one above the other."""

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)

    def __call__(self, inputs: Any, states: State) -> Any:
        """The last cell's output, and all new states."""
        return HybridRecurrentCell.__call__(self, inputs, states)

    def hybrid_forward(self, F: Any, inputs: Any, states: State) -> Any:
        """The last cell's output, and all new states."""
        return _Stack.__call__(self, inputs, states)


class DropoutCell(HybridRecurrentCell):
    """Dropout of its inputs; it has no state. axes: along these all elements share what is drawn."""

    def __init__(self, rate: float, axes: tuple[int, ...] = (), prefix: str | None = None, params: Any = None):
        super().__init__(prefix, params)
        if not isinstance(rate, (int, float)):
            raise AssertedError(f"rate is a number, got {type(rate).__name__}")
        self._rate, self._axes = rate, axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """None."""
        return []

    def _alias(self) -> str:
        return "dropout"

    def hybrid_forward(self, F: Any, inputs: Any, states: State) -> Any:
        """See the class."""
        if self._rate > 0:
            inputs = F.Dropout(data=inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def unroll(self, length: int, inputs: Any, begin_state: State | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, State]:
        """See RecurrentCell; a whole sequence at once where it comes as one."""
        if isinstance(inputs, (list, tuple)):
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        self.reset()
        F = ndarray if isinstance(inputs, ndarray.NDArray) else symbol
        outputs, states = self.hybrid_forward(F, inputs, begin_state or [])
        return (outputs if merge_outputs in (None, True) else
                sequences.split(F, outputs, length, layout.find("T"))), states


class ModifierCell(HybridRecurrentCell):
    """A cell around another one, whose parameters and states it has. The other one can no more be called by itself."""

    def __init__(self, base_cell: Any):
        if base_cell._modified:
            raise AssertedError(f"{base_cell.name} is a part of another modifier cell already")
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    @property
    def params(self) -> Any:
        """The other cell's."""
        return self.base_cell.params if "base_cell" in self.__dict__ else self._params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """The other cell's."""
        return self.base_cell.state_info(batch_size)

    def begin_state(self, func: Callable[..., Any] = symbol.zeros,  # type: ignore[override]
                    **kwargs: Any) -> State:
        """The other cell's."""
        if self._modified:
            raise AssertedError(f"{self.name} is a part of a modifier cell: call begin_state of that one")
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=func, **kwargs)
        finally:
            self.base_cell._modified = True

    def hybrid_forward(self, F: Any, inputs: Any, states: State) -> Any:
        """The output of one step and the new states; a subclass says them."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell})"


class ZoneoutCell(ModifierCell):
    """Zoneout (arXiv 1606.01305): in training an element of the output, or of a state, stays what it was in the step
    before, with these probabilities."""

    def __init__(self, base_cell: Any, zoneout_outputs: float = 0., zoneout_states: float = 0.):
        if isinstance(base_cell, BidirectionalCell):
            raise AssertedError("a BidirectionalCell has no steps for zoneout: put ZoneoutCells into it")
        super().__init__(base_cell)
        self._outputs, self._states = zoneout_outputs, zoneout_states
        self._prev_output: Any = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out={self._outputs}, p_state={self._states}, {self.base_cell})"

    def _alias(self) -> str:
        return "zoneout"

    def reset(self) -> None:
        """Forget the last output, too."""
        super().reset()
        self._prev_output = None

    def hybrid_forward(self, F: Any, inputs: Any, states: State) -> Any:
        """See the class."""
        output, new = self.base_cell(inputs, states)

        def mask(p: float, like: Any) -> Any:
            return F.Dropout(F.ones_like(like), p=p)

        before = self._prev_output if self._prev_output is not None else F.zeros_like(output)
        if self._outputs:
            output = F.where(mask(self._outputs, output), output, before)
        if self._states:
            new = [F.where(mask(self._states, one), one, old) for one, old in zip(new, states, strict=True)]
        self._prev_output = output
        return output, new


class ResidualCell(ModifierCell):
    """The other cell's output, plus its input (arXiv 1609.08144)."""

    def hybrid_forward(self, F: Any, inputs: Any, states: State) -> Any:
        """See the class."""
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(self, length: int, inputs: Any, begin_state: State | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, State]:
        """See RecurrentCell."""
        self.reset()
        steps, axis, F, _ = sequences.steps_of(length, inputs, layout)
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs=steps, begin_state=begin_state, layout=layout,
                                                    merge_outputs=False, valid_length=valid_length)
        finally:
            self.base_cell._modified = True
        if valid_length is not None:
            steps = sequences.masked(F, steps, length, valid_length, axis, merge=False)
            merge_outputs = True if merge_outputs is None else merge_outputs
        sums = [F.elemwise_add(one, other) for one, other in zip(outputs, steps, strict=True)]
        return (sequences.merged(F, sums, axis) if merge_outputs else sums), states


class BidirectionalCell(HybridRecurrentCell):
    """One cell over the sequence, another from behind; each step's outputs side by side. It is unrolled only."""

    def __init__(self, l_cell: Any, r_cell: Any, output_prefix: str = "bi_"):
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: State) -> Any:
        """Raises NotImplementedError: it reads whole sequences."""
        raise NotImplementedError("a BidirectionalCell has no single steps: call unroll")

    def __repr__(self) -> str:
        cells = self._children
        return f"{type(self).__name__}(forward={cells['l_cell']}, backward={cells['r_cell']})"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Those of both cells."""
        return [info for cell in self._children.values()
                for info in cell.state_info(batch_size)]  # type: ignore[attr-defined]

    def begin_state(self, **kwargs: Any) -> State:  # type: ignore[override]
        """Those of both cells."""
        if self._modified:
            raise AssertedError(f"{self.name} is a part of a modifier cell: call begin_state of that one")
        return [state for cell in self._children.values()
                for state in cell.begin_state(**kwargs)]  # type: ignore[attr-defined]

    def unroll(self, length: int, inputs: Any, begin_state: State | None = None, layout: str = "NTC",
               merge_outputs: bool | None = None, valid_length: Any = None) -> tuple[Any, State]:
        """See RecurrentCell."""
        self.reset()
        steps, axis, F, batch_size = sequences.steps_of(length, inputs, layout)
        states = _first_states(self, begin_state, F, steps[0], batch_size)
        left, right = self._children["l_cell"], self._children["r_cell"]
        count = len(left.state_info(batch_size))  # type: ignore[attr-defined]
        options = {"layout": layout, "merge_outputs": False, "valid_length": valid_length}
        backwards = sequences.reversed_steps(F, steps, valid_length)
        ahead, l_states = left.unroll(length, inputs=steps, begin_state=states[:count],  # type: ignore[attr-defined]
                                      **options)
        behind, r_states = right.unroll(length, inputs=backwards, begin_state=states[count:],  # type: ignore[attr-defined]
                                        **options)
        behind = sequences.reversed_steps(F, behind, valid_length)
        outputs = [F.concat(one, other, dim=1, name=f"{self._output_prefix}t{i}")
                   for i, (one, other) in enumerate(zip(ahead, behind, strict=True))]
        if valid_length is not None:
            outputs = sequences.masked(F, outputs, length, valid_length, axis, merge_outputs is None or merge_outputs)
        elif merge_outputs:
            outputs = sequences.merged(F, outputs, axis)
        return outputs, [*l_states, *r_states]
