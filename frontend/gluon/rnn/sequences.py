"""Sequences as lists of steps or as one array, and what cells do with them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc import ndarray, symbol
from mxc.compiler.error import AssertedError
from mxc.ndarray import NDArray
from mxc.symbol import Symbol


def steps_of(length: int | None, inputs: Any, layout: str) -> tuple[list[Any], int, Any, int]:
    """The steps of a sequence, as a list; the axis of time; F, mx.nd or mx.sym; and the batch size, 0 of symbols.

    inputs: a list of steps, or one array or symbol. Raises AssertionError for another number of steps than `length`.
    """
    axis, batch_axis = layout.find("T"), layout.find("N")
    if isinstance(inputs, Symbol):
        if len(inputs) != 1:
            raise AssertedError(f"a sequence is one symbol or a list of steps, got a symbol of {len(inputs)} outputs")
        assert length is not None
        return list(symbol.split(inputs, axis=axis, num_outputs=length, squeeze_axis=1)), axis, symbol, 0
    if isinstance(inputs, NDArray):
        found = inputs.shape[axis]
        if length is not None and length != found:
            raise AssertedError(f"a sequence of the shape {inputs.shape} has {found} steps in the layout {layout}; "
                                f"expected {length}")
        steps = ndarray.split(inputs, axis=axis, num_outputs=found, squeeze_axis=1)
        return list(steps) if isinstance(steps, (list, tuple)) else [steps], axis, ndarray, inputs.shape[batch_axis]
    steps = list(inputs)
    if length is not None and len(steps) != length:
        raise AssertedError(f"a sequence has {len(steps)} steps; expected {length}")
    if isinstance(steps[0], Symbol):
        return steps, axis, symbol, 0
    return steps, axis, ndarray, steps[0].shape[batch_axis if batch_axis < axis else batch_axis - 1]


def merged(F: Any, steps: Sequence[Any], axis: int) -> Any:
    """The steps as one array or symbol."""
    return F.stack(*steps, axis=axis)


def split(F: Any, sequence: Any, length: int, axis: int) -> list[Any]:
    """One array or symbol as steps."""
    made = F.split(sequence, axis=axis, num_outputs=length, squeeze_axis=1)
    return list(made) if isinstance(made, (list, tuple, Symbol)) else [made]


def masked(F: Any, outputs: Any, length: int, valid_length: Any, axis: int, merge: bool) -> Any:
    """Outputs with zeros behind the valid length of each example."""
    whole = merged(F, outputs, axis) if isinstance(outputs, (list, tuple)) else outputs
    whole = F.SequenceMask(whole, sequence_length=valid_length, use_sequence_length=True, axis=axis)
    return whole if merge else split(F, whole, length, axis)


def reversed_steps(F: Any, steps: Sequence[Any], valid_length: Any) -> list[Any]:
    """The steps from the last to the first; of each example the valid ones only, with the others behind them."""
    if valid_length is None:
        return list(reversed(steps))
    whole = F.SequenceReverse(F.stack(*steps, axis=0), sequence_length=valid_length, use_sequence_length=True)
    return split(F, whole, len(steps), 0)
