"""Shapes and dtypes of elementwise operators.

Rules that operators of several families name are here, too.
"""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import MIXED, Dtypes, merge_dtypes, require_kind
from mxc.compiler.ops.extent import whole_shape
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all, reduced_axes, reduced_shape


def same_shape(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All inputs and outputs have one shape."""
    known = merge_all([*ins, *outs])
    return [known] * len(ins), [known] * len(outs)


def broadcast(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """NumPy's broadcasting. Backward: a dimension of the output that all but one input leave at 1 is that input's."""
    if any(s is None for s in ins):
        return ins, outs
    shapes: list[Shape] = [s for s in ins if s is not None]
    rank = max(len(s) for s in shapes)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    out = []
    for column in zip(*padded, strict=True):
        sizes = {d for d in column if d > 1}
        if len(sizes) > 1:
            raise MXNetError(f"the shapes {' and '.join(map(str, shapes))} do not broadcast: "
                             f"expected equal sizes or 1, got {' and '.join(map(str, column))}")
        out.append(sizes.pop() if sizes else 0 if 0 in column else 1)
    if len(outs) == 1 and outs[0] is not None and len(outs[0]) == rank:
        for j in range(rank):
            unknown = [i for i, s in enumerate(padded) if s[j] == 0]
            size = outs[0][j]
            if len(unknown) == 1 and size and all(s[j] == 1 for i, s in enumerate(padded) if i not in unknown):
                padded[unknown[0]] = (*padded[unknown[0]][:j], size, *padded[unknown[0]][j + 1:])
    ins_known: Shapes = [p[rank - len(s):] for p, s in zip(padded, shapes, strict=True)]
    return ins_known, [merge(tuple(out), o) for o in outs]


def reduce(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """sum, mean and the like. A dimension that is not reduced is known from the output too."""
    data = ins[0]
    if data is None:
        return ins, outs
    keepdims = bool(params.get("keepdims"))
    out = merge(reduced_shape(params, data, keepdims), outs[0])
    assert out is not None
    axes = reduced_axes(params, len(data))
    kept = [i for i in range(len(data)) if i not in axes]
    known = list(data)
    for position, i in enumerate(kept):
        known[i] = known[i] or (out[i] if keepdims else out[position])
    return [tuple(known)], [out]


def creation(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """`shape`, whose -1 (and, outside of NumPy's shape semantics, 0 and all of ()) are completed from its users."""
    return ins, [merge(whole_shape(params.shape), outs[0])]


def where(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """x, y and the output agree; the condition has their shape too, or is a vector over their first axis."""
    known = merge_all([ins[1], ins[2], outs[0]])
    condition = ins[0]
    if known is not None and condition is not None and (len(condition) != 1 or len(known) == 1):
        known = condition = merge(known, condition)
    elif known is not None and condition is not None:
        (first,) = merge(condition, known[:1]) or (0,)
        condition, known = (first,), (first, *known[1:])
    return [condition, known, known], [known]


def first_input(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The output has the first input's shape."""
    known = merge(ins[0], outs[0])
    return [known, *ins[1:]], [known]


def stated_shape(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The output has the shape that the parameter `shape` states."""
    shape = params["shape"]
    assert isinstance(shape, tuple)
    return ins, [merge(shape, outs[0])]


def same_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """All inputs and outputs have one dtype; comparisons too (0 and 1)."""
    known = merge_dtypes([*ins, *outs])
    return [known] * len(ins), [known] * len(outs)


def first_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the first input's dtype; the other inputs are free."""
    known = merge_dtypes([ins[0], *outs])
    return [known, *ins[1:]], [known] * len(outs)


def scalar_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The tensor's dtype, with the exceptions that MXNet makes: an integer or bool tensor beside a number that is said
    not to be an integer (is_int=False) gives float64, a bool tensor beside an integer gives int64."""
    data = ins[0]
    if data is None and (not params["is_int"] or outs[0] == "int64"):
        return ins, outs
    if data == "bool" or not (params["is_int"] or data is None or "float" in data):
        return ins, [merge_dtypes(["int64" if params["is_int"] else "float64", outs[0]])]
    return same_dtype(params, ins, outs)


def param_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that the parameter `dtype` names; inputs are free."""
    dtype = params["dtype"]
    assert isinstance(dtype, str)
    return ins, [merge_dtypes([dtype, o]) for o in outs]


def param_dtype_of_mixed(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """As `param_dtype` where the input is of a dtype of mixed precision; else the output has the input's."""
    (dtype,) = ins
    if dtype is None:
        return ins, outs
    return param_dtype(params, ins, outs) if dtype in MIXED else (ins, [merge_dtypes([dtype, o]) for o in outs])


def where_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """x, y and the output agree; the condition is free."""
    known = merge_dtypes([ins[1], ins[2], outs[0]])
    return [ins[0], known, known], [known]


def float32_only(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is float32."""
    return ins, ["float32"] * len(outs)


def int64_only(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is int64."""
    return ins, ["int64"] * len(outs)


def floating(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Like `same_dtype`, for operators that take only floats."""
    ins, outs = same_dtype(params, ins, outs)
    require_kind(ins[0], "float", "data")
    return ins, outs


def numbers(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Like `same_dtype`, for operators that do not take bool."""
    ins, outs = same_dtype(params, ins, outs)
    if ins[0] == "bool":
        raise MXNetError("expected data of a float or int dtype, got bool")
    return ins, outs


def to_int32(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is int32."""
    return ins, ["int32"] * len(outs)


def float32(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """float32 in and out, and nothing else."""
    for dtype in ins:
        merge_dtypes([dtype, "float32"])
    return ["float32"] * len(ins), ["float32"] * len(outs)
