"""Shape rules of layers: fully connected, normalisation, softmax, dropout and outputs with labels."""
from __future__ import annotations

import math

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shapes, merge, merge_all, normal_axis
from mxc.compiler.ops.table import Params


def fully_connected(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """out = (N, num_hidden) of data flattened to (N, K), or (..., num_hidden) without `flatten`.

    The weight is (num_hidden, K), the bias (num_hidden,) or (num_hidden, 1). Backward: the batch (without `flatten`:
    every axis but the last) from the output, K from the weight.
    """
    data, weight, *rest = ins
    hidden, out = params["num_hidden"], outs[0]
    assert isinstance(hidden, int)
    if data is None:
        return ins, outs
    if params["flatten"]:
        width = math.prod(data[1:])
        out = merge((data[0], hidden), out)
        assert out is not None
        data = (out[0], *data[1:])
    else:
        width = data[-1]
        out = merge((*data[:-1], hidden), out)
        assert out is not None
        data = (*out[:-1], width)
    weight = merge((hidden, width), weight)
    if len(data) == 2 or not params["flatten"]:
        assert weight is not None
        data = (*data[:-1], weight[1])
    biases = [merge((hidden, 1) if b is not None and len(b) == 2 else (hidden,), b) for b in rest]
    return [data, weight, *biases], [out]


def batch_norm(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; (channels,) for everything else, channels being the data's size along `axis`."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    axis = params.get("axis", 1)
    assert isinstance(axis, int)
    axis = normal_axis(axis, len(data))
    channels = merge_all([(data[axis],), *ins[1:], *outs[1:]])
    assert channels is not None
    data = (*data[:axis], *channels, *data[axis + 1:])
    return [data, *[channels] * (len(ins) - 1)], [data, *[channels] * (len(outs) - 1)]


def leaky_relu(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape for all outputs; gamma has one slope for each of the channels (axis 1), or one for all."""
    data = merge(ins[0], outs[0])
    if len(ins) == 1 or data is None:
        return [data, *ins[1:]], [data] * len(outs)
    channels = data[1] if len(data) > 1 else 1
    gamma = ins[1] or (channels,)
    if len(gamma) != 1 or (gamma[0] not in (0, 1) and channels and gamma[0] != channels):
        raise MXNetError(f"expected gamma of shape ({channels},) or (1,), got {gamma}")
    return [data, gamma if gamma[0] else (channels,)], [data] * len(outs)


def softmax(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; `length` has it without the softmax's axis."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    axis = params["axis"]
    assert isinstance(axis, int)
    axis = normal_axis(axis, len(data))
    return [data, *[merge((*data[:axis], *data[axis + 1:]), length) for length in ins[1:]]], [data]


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


def softmax_activation(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, which needs an axis of channels for that mode."""
    data = merge(ins[0], outs[0])
    if params["mode"] == "channel" and data is not None and len(data) < 2:
        raise MXNetError(f"expected data of at least 2 axes for mode=channel, got {data}")
    return [data], [data]


def dropout(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; the mask has it too, with 1 along `axes`."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    axes = params["axes"]
    assert isinstance(axes, tuple)
    if any(not 0 <= a < len(data) for a in axes):
        raise MXNetError(f"expected axes from 0 to {len(data) - 1}, got {axes}")
    return [data], [data, merge(tuple(1 if i in axes else d for i, d in enumerate(data)), outs[1])]


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
