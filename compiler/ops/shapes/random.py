"""Shape rules of random operators."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.extent import counts, whole_shape
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge, merge_all
from mxc.compiler.ops.table import Params


def drawn(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All have the shape that the parameter `shape` states, where it does."""
    known = merge_all([whole_shape(params.get("shape")), *ins, *outs])  # type: ignore[arg-type]
    return [known] * len(ins), [known] * len(outs)


def drawn_each(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """key, parameters (n, m) -> (n, each)."""
    return ins, [None if ins[1] is None else (ins[1][0], params.each)]


def sample(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Parameters of one shape; of each of their elements `shape` numbers, which are the output's last axes."""
    more: Shape = params.shape
    known = merge_all(ins)
    if outs[0] is not None and len(outs[0]) > len(more):
        known = merge(known, outs[0][:len(outs[0]) - len(more)])
    return [known] * len(ins), [None if known is None else merge((*known, *more), outs[0])]


def multinomial(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """data (..., classes) -> (..., *shape); (1,) for one draw of one distribution."""
    data = ins[0]
    if data is None:
        return ins, outs
    if not data:
        raise MXNetError("expected data of at least one axis, got a number")
    out = merge_all([(*data[:-1], *counts(*params.shape)) or (1,), *outs])
    return ins, [out] * len(outs)


def zipfian(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(rows, n) and (rows,); n different classes of range_max."""
    shape = merge(whole_shape(params.shape), outs[0])
    if shape is None:
        return ins, outs
    if len(shape) != 2:
        raise MXNetError(f"expected a shape of 2 axes, got {shape}")
    if shape[1] > params.range_max:
        raise MXNetError(f"expected a shape of at most range_max = {params.range_max} different classes in a row, "
                         f"got {shape}")
    return ins, [shape, merge(shape[:1], outs[1])]
