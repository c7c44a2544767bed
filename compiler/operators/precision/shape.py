"""Shapes and dtypes of questions about arrays of several precisions."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import MIXED, Dtypes, merge_dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge

WIDTHS = "float16", "bfloat16", "float32", "float64"  # narrow first


def one_number(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(1,), of arrays of any shapes."""
    return ins, [merge((1,), outs[0])]


def number_of_each(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """One number for each array."""
    return ins, [merge((len(ins),), outs[0])]


def own_shapes(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Each output has its input's shape."""
    known = [merge(a, b) for a, b in zip(ins, outs, strict=True)]
    return known, list(known)


def alike(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A number without axes, of two arrays of one shape."""
    known = merge(*ins)
    return [known, known], [merge((), outs[0])]


def is_alike(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """uint8, of two arrays of one dtype."""
    known = merge_dtypes(ins)
    return [known, known], [merge_dtypes(["uint8", outs[0]])]


def finite_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """float32, of arrays of one float dtype."""
    known = merge_dtypes(ins)
    if known is not None and known not in WIDTHS:
        raise MXNetError(f"expected one of {', '.join(WIDTHS)}, got {known}")
    return [known] * len(ins), [merge_dtypes(["float32", outs[0]])]


def multicast_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """What is of a dtype of mixed precision gets the widest of these, or the narrowest with `cast_narrow`."""
    found = [MIXED.index(dtype) for dtype in ins if dtype in MIXED]
    if None in ins or not found:
        return ins, [merge_dtypes([a, b]) for a, b in zip(ins, outs, strict=True)]
    common = MIXED[min(found) if params.cast_narrow else max(found)]
    return ins, [merge_dtypes([common if a in MIXED else a, b]) for a, b in zip(ins, outs, strict=True)]


def fresh_output(values: Params) -> str:
    """Operators give new values: what an output held before is not known to them."""
    return "" if values.init_output else \
        "init_output=False, which also reads what the output held, is not there: multiply the two results"
