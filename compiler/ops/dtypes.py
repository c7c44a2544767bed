"""Dtype rules: `def NAME(params, ins, outs) -> (ins, outs)` on NumPy's names; None: not known (yet)."""
from __future__ import annotations

from collections.abc import Iterable

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.table import Params

Dtypes = list[str | None]


def merge(dtypes: Iterable[str | None]) -> str | None:
    """The one dtype of all that are known. Raises MXNetError when they differ."""
    known = list(dict.fromkeys(d for d in dtypes if d is not None))
    if len(known) > 1:
        raise MXNetError(f"expected the same dtype, got {' and '.join(known)}")
    return known[0] if known else None


def same_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """All inputs and outputs have one dtype; comparisons too (0 and 1)."""
    known = merge([*ins, *outs])
    return [known] * len(ins), [known] * len(outs)


def first_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the first input's dtype; the other inputs are free."""
    known = merge([ins[0], *outs])
    return [known, *ins[1:]], [known] * len(outs)


def scalar(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The tensor's dtype; float64 for an integer tensor beside a number said not to be an integer (is_int=False)."""
    if not params["is_int"]:
        if ins[0] is None:
            return ins, outs
        if not ins[0].startswith("float"):
            return ins, [merge(["float64", outs[0]])]
    return same_dtype(params, ins, outs)


def param_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that the parameter `dtype` names; inputs are free."""
    dtype = params["dtype"]
    assert isinstance(dtype, str)
    return ins, [merge([dtype, o]) for o in outs]


def where(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """x, y and the output agree; the condition is free."""
    known = merge([ins[1], ins[2], outs[0]])
    return [ins[0], known, known], [known]


def float32_only(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is float32."""
    return ins, ["float32"] * len(outs)
