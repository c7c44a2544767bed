"""Shapes of losses."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.basic.shape import first_dtype
from mxc.compiler.ops.dtypes import Dtypes, require_kind
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge


def softmax_output(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape. The label has the data's shape (probabilities), else: without `multi_output` the data's shape
    without its last axis; with it (N, everything after the classes), which may be given unfolded or with classes 1.
    """
    data = merge(ins[0], outs[0])
    label = ins[1]
    if not math.isfinite(float(params["ignore_label"])):  # type: ignore[arg-type]
        raise MXNetError(f"expected a class as ignore_label, got {params['ignore_label']}")
    if data is None:
        return ins, outs
    if label is None or label != data:
        if params["multi_output"]:
            if len(data) < 2:
                raise MXNetError(f"expected data of at least 2 axes for multi_output, got {data}")
            folded = (data[0], math.prod(data[2:]))
            allowed = [folded, (data[0], *data[2:]), (data[0], 1, *data[2:])]
            if label is None:
                label = folded
            elif label not in allowed and 0 not in data and 0 not in label:
                raise MXNetError(f"expected a label of shape {folded} or {allowed[1]}, got {label}")
        else:
            if len(data) == 1 and label is not None:
                raise MXNetError(f"expected a label of the data's shape {data}, got {label}")
            label = merge(data[:-1] or None, label)
    return [data, label], [data]


def regression_output(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; the label has as many elements and the same first axis: (N,) by default for data (N, 1)."""
    data, label = merge(ins[0], outs[0]), ins[1]
    if data is None:
        return ins, outs
    if label is None:
        label = data[:1] if len(data) == 2 and data[1] == 1 else data
    elif 0 not in data and 0 not in label and (label[:1] != data[:1] or math.prod(label) != math.prod(data)):
        raise MXNetError(f"expected a label with as many elements and rows as data {data}, got {label}")
    return [data, label], [data]


def svm_output(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; the label has it without the last axis, the classes."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    if len(data) < 2:
        raise MXNetError(f"expected data of at least 2 axes, got {data}")
    return [data, merge(data[:-1], ins[1])], [data]


def softmax_cross_entropy(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(1,) of data (rows, classes) and a label (rows,)."""
    data, label = (merge((0,) * rank, shape) for rank, shape in zip((2, 1), ins, strict=True))
    assert data is not None
    label = merge(data[:1], label)
    assert label is not None
    return [(*label, data[1]), label], [merge((1,), outs[0])]


def ctc_loss(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (steps, batch, classes), label (batch, most) with most <= steps, lengths (batch,) -> the loss (batch,) and a
    gradient of the data's shape."""
    data, label = (merge((0,) * rank, shape) for rank, shape in zip((3, 2), ins[:2], strict=True))
    assert data is not None and label is not None
    loss = (data[1],)
    for shape in (label[:1], *ins[2:], outs[0]):
        loss = merge(loss, shape)  # type: ignore[assignment]
    data, label = merge((data[0], *loss, data[2]), outs[1]), (*loss, label[1])
    assert data is not None
    if 0 < data[0] < label[1]:
        raise MXNetError(f"expected a label of at most as many places as there are steps, {data[0]}, got {label}")
    return [data, label, *[loss] * (len(ins) - 2)], [loss, data]


def ctc_loss_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The loss has the data's dtype, a float; labels and lengths may have any dtype."""
    ins, outs = first_dtype(params, ins, outs)
    require_kind(ins[0], "float", "data")
    return ins, outs


def ctc_steps(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(batch,)."""
    return ins, [merge(ins[2], outs[0])]


def sparse_penalty(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Data (batch, channels, ...), a moving average of each channel."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    if len(data) < 2:
        raise MXNetError(f"expected data of channels along axis 1, got {data}")
    return [data, merge(ins[1], data[1:2])], [data]
