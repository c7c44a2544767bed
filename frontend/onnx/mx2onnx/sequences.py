"""Operators over sequences of different lengths, of which steps are one axis and samples another."""
from __future__ import annotations

import numpy as np

from mxc.onnx.mx2onnx.arrange import END
from mxc.onnx.mx2onnx.writer import Call, Converter


def sequence_mask(c: Call) -> str:
    if not c.params["use_sequence_length"]:
        return c.emit("Identity", c.inputs[0])
    axis, more = c.params["axis"], [1] * (c.rank() - 2)
    steps = c.constant(np.arange(c.fixed_axis(axis), dtype=c.dtype(1)).reshape([-1, 1, *more] if axis == 0 else
                                                                               [1, -1, *more]))
    lengths = c.emit("Reshape", c.inputs[1], c.ints(*([1, -1] if axis == 0 else [-1, 1]), *more))
    return c.emit("Where", c.emit("Less", steps, lengths), c.inputs[0], c.number(c.params["value"]))


def sequence_reverse(c: Call) -> str:
    if not c.params["use_sequence_length"]:
        return c.emit("Slice", c.inputs[0], c.ints(-1), c.ints(-END), c.ints(0), c.ints(-1))
    return c.emit("ReverseSequence", c.inputs[0], c.cast(c.inputs[1], "int64"), time_axis=0, batch_axis=1)


def sequence_last(c: Call) -> str:
    axis = c.params["axis"]
    if not c.params["use_sequence_length"]:
        return c.emit("Gather", c.inputs[0], c.writer.constant(np.array(-1, np.int64), "last"), axis=axis)
    rows = c.inputs[0] if axis == 1 else c.emit("Transpose", c.inputs[0], perm=[1, 0, *range(2, c.rank())])
    last = c.emit("Sub", c.cast(c.inputs[1], "int64"), c.ints(1))
    return c.emit("GatherND", rows, c.emit("Unsqueeze", last, c.ints(1)), batch_dims=1)


CONVERTERS: dict[str, Converter] = {"SequenceMask": sequence_mask, "SequenceReverse": sequence_reverse,
                                    "SequenceLast": sequence_last}
