"""Shapes of Dropout."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge


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
