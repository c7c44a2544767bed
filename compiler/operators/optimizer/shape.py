"""Shapes and dtypes of updates of weights."""
from __future__ import annotations

from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.operators.basic.shape import same_shape
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes, require_kind
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes


def lamb_step(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All arrays have one shape except the third and fourth input, two norms, which have one element."""
    for name, shape in zip(("r1", "r2"), ins[2:4], strict=True):
        if shape is not None and any(n > 1 for n in shape):
            raise MXNetError(f"expected {name} of one element, got {shape}")
    rest, outs = same_shape(params, [*ins[:2], *ins[4:]], outs)
    return [*rest[:2], *ins[2:4], *rest[2:]], outs


def adamw(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All arrays have one shape except the last, a factor, which has one element."""
    *arrays, factor = ins
    if factor is not None and any(n > 1 for n in factor):
        raise MXNetError(f"expected rescale_grad of one element, got {factor}")
    arrays, outs = same_shape(params, arrays, outs)
    return [*arrays, factor], outs


def number_for_each_row(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Weight and gradient have one shape; the third input has as many elements as that has rows."""
    (weight, grad), outs = same_shape(params, ins[:2], outs)
    history = ins[2]
    if weight and history is not None and prod(history) != weight[0] and 0 not in history:
        raise MXNetError(f"expected history of {weight[0]} numbers, one for each row of the weight, got {history}")
    return [weight, grad, history], outs


def no_output(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Arrays of any shapes; there is no output."""
    return ins, outs


def floats_of_any_kind(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Arrays of float dtypes, each of its own; there is no output."""
    for dtype in ins:
        require_kind(dtype, "float", "data")
    return ins, outs


def mixed_update(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Weight, gradient and result have one float dtype, the states are float32."""
    known = merge_dtypes([*ins[:2], *outs])
    require_kind(known, "float", "weight")
    return [known, known, *["float32"] * (len(ins) - 2)], [known]


def mixed_direction(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Like `mixed_update`, but the result is float32."""
    return mixed_update(params, ins, [])[0], ["float32"]


def mixed_step(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Weight and result have one float dtype, all else is float32."""
    known = merge_dtypes([ins[0], *outs])
    require_kind(known, "float", "weight")
    return [known, *["float32"] * (len(ins) - 1)], [known]


def factor_update(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """All arrays have one float dtype except the last, a factor, which is float32."""
    known = merge_dtypes([*ins[:-1], *outs])
    require_kind(known, "float", "weight")
    return [*[known] * (len(ins) - 1), "float32"], [known]
