"""Shapes and dtypes of the softmax family."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes, require_kind
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge, normal_axis


def softmax(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape; `length` has it without the softmax's axis."""
    data = merge(ins[0], outs[0])
    if data is None:
        return ins, outs
    axis = params["axis"]
    assert isinstance(axis, int)
    axis = normal_axis(axis, len(data))
    return [data, *[merge((*data[:axis], *data[axis + 1:]), length) for length in ins[1:]]], [data]


def softmax_activation(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape, which needs an axis of channels for that mode."""
    data = merge(ins[0], outs[0])
    if params["mode"] == "channel" and data is not None and len(data) < 2:
        raise MXNetError(f"expected data of at least 2 axes for mode=channel, got {data}")
    return [data], [data]


def softmax_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the data's dtype, or the one that the parameter `dtype` names; `length` counts, in integers."""
    asked = params["dtype"]
    assert asked is None or isinstance(asked, str)
    data = ins[0] if asked else merge_dtypes([ins[0], outs[0]])
    require_kind(data, "float", "data")
    for length in ins[1:]:
        require_kind(length, "int", "length")
    return [data, *ins[1:]], [merge_dtypes([asked or data, outs[0]])]
