"""The reference of operators on batches of sequences."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.gather.reference import Arrays, integers
from mxc.compiler.ops.expr import number_as
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _lengths(params: Params, inputs: Arrays) -> np.ndarray:
    """One length for each sequence, at most the data's; without `use_sequence_length` all of it."""
    data = inputs[0]
    steps = data.shape[params.axis]
    if not params.use_sequence_length:
        return np.full(data.shape[1 - params.axis], steps)
    return np.minimum(integers(inputs[1], "int32"), steps)


def sequence_mask(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """`value` behind a sequence's length."""
    out = np.moveaxis(inputs[0], params.axis, 0).copy()
    for sequence, length in enumerate(_lengths(params, inputs)):
        out[max(length, 0):, sequence] = number_as(params.value, str(out.dtype))
    return [np.moveaxis(out, 0, params.axis)]


def sequence_last(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The last step of each sequence; of a sequence without steps, the first one."""
    data = np.moveaxis(inputs[0], params.axis, 0)
    return [np.stack([data[max(length - 1, 0), i] for i, length in enumerate(_lengths(params, inputs))])]


def sequence_reverse(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Steps up to a sequence's length backwards."""
    out = inputs[0].copy()
    for sequence, length in enumerate(_lengths(params, inputs)):
        if length > 0:
            out[:length, sequence] = inputs[0][:length, sequence][::-1]
    return [out]
