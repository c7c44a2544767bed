"""Shapes and dtypes of reductions."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.basic.shape import same_dtype
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge


def argmax_channel(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape without axis 1."""
    data = ins[0]
    if data is None:
        return ins, outs
    if len(data) < 2:
        raise MXNetError(f"expected data of at least 2 axes, got {data}")
    out = merge((data[0], *data[2:]), outs[0])
    assert out is not None
    return [(out[0], data[1], *out[1:])], [out]


def norm_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that `out_dtype` names, else the data's."""
    if params["out_dtype"] is None:
        return same_dtype(params, ins, outs)
    return ins, [merge_dtypes([str(params["out_dtype"]), outs[0]])]
