"""Cells over sequences by a loop: a hybridised block's graph then has the cell once, however long sequences are."""
from __future__ import annotations

from typing import Any

from mxc import ndarray, symbol
from mxc.compiler.error import AssertedError
from mxc.ndarray import NDArray


def dynamic_unroll(cell: Any, inputs: Any, begin_state: Any, drop_inputs: float = 0, drop_outputs: float = 0,
                   layout: str = "TNC", valid_length: Any = None) -> tuple[Any, Any]:
    """A recurrent cell applied to the steps of a sequence, an array or a symbol, by `foreach`.

    begin_state: the states at first. drop_inputs, drop_outputs: probabilities with which elements of the inputs and of
    the outputs are dropped, the same ones in all steps. layout: TNC or NTC. valid_length: (batch,), how many steps of
    each example count: the outputs of others are 0, and the states are those after the last that counts.

    Returns the outputs, in the layout of the inputs, and the last states. Raises AssertionError for another layout.
    """
    if layout not in ("TNC", "NTC"):
        raise AssertedError(f"dynamic_unroll takes the layouts TNC and NTC, got {layout!r}")
    F = ndarray if isinstance(inputs, NDArray) else symbol
    if layout == "NTC":
        inputs = F.swapaxes(inputs, dim1=0, dim2=1)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(0,))
    single = not isinstance(begin_state, (list, tuple))
    first = [begin_state] if single else list(begin_state)
    if valid_length is None:
        outputs, states = F.contrib.foreach(cell, inputs, begin_state if single else first)
    else:
        def step(data: Any, states: Any) -> tuple[Any, Any]:
            *old, number = states
            output, new = cell(data, old[0] if single else old)
            counts = F.broadcast_lesser(number, valid_length)
            kept = [F.where(counts, after, before) for after, before in zip([new] if single else new, old, strict=True)]
            return output, [*kept, number + 1]

        none = F.zeros_like(F.slice_axis(valid_length, axis=0, begin=0, end=1))
        outputs, states = F.contrib.foreach(step, inputs, [*first, none])
        outputs = F.SequenceMask(outputs, sequence_length=valid_length, use_sequence_length=True, axis=0)
        states = states[0] if single else states[:-1]
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(0,))
    return F.swapaxes(outputs, dim1=0, dim2=1) if layout == "NTC" else outputs, states
