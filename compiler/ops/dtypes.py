"""Dtype rules: `def NAME(params, ins, outs) -> (ins, outs)` on NumPy's names; None: not known (yet)."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.table import Params

Dtypes = list[str | None]
_UNKNOWN = {None}


def merge(dtypes: Dtypes) -> str | None:
    """The one dtype of all that are known. Raises MXNetError when they differ."""
    known = {*dtypes} - _UNKNOWN
    if len(known) > 1:
        raise MXNetError(f"expected the same dtype, got {' and '.join(d for d in dict.fromkeys(dtypes) if d)}")
    return known.pop() if known else None


def same_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """All inputs and outputs have one dtype; comparisons too (0 and 1)."""
    known = merge([*ins, *outs])
    return [known] * len(ins), [known] * len(outs)


def first_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the first input's dtype; the other inputs are free."""
    known = merge([ins[0], *outs])
    return [known, *ins[1:]], [known] * len(outs)


def scalar(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The tensor's dtype, with the exceptions that MXNet makes: an integer or bool tensor beside a number that is said
    not to be an integer (is_int=False) gives float64, a bool tensor beside an integer gives int64."""
    data = ins[0]
    if data is None and (not params["is_int"] or outs[0] == "int64"):
        return ins, outs
    if data == "bool" or not (params["is_int"] or data is None or data.startswith("float")):
        return ins, [merge(["int64" if params["is_int"] else "float64", outs[0]])]
    return same_dtype(params, ins, outs)


def param_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that the parameter `dtype` names; inputs are free."""
    dtype = params["dtype"]
    assert isinstance(dtype, str)
    return ins, [merge([dtype, o]) for o in outs]


def norm(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that `out_dtype` names, else the data's."""
    if params["out_dtype"] is None:
        return same_dtype(params, ins, outs)
    return ins, [merge([str(params["out_dtype"]), outs[0]])]


def where(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """x, y and the output agree; the condition is free."""
    known = merge([ins[1], ins[2], outs[0]])
    return [ins[0], known, known], [known]


def float32_only(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is float32."""
    return ins, ["float32"] * len(outs)


def int64_only(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is int64."""
    return ins, ["int64"] * len(outs)


def numbered_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype of MXNet's number `dtype`; -1: that of what uses it."""
    numbers = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
    number = params["dtype"]
    assert isinstance(number, int)
    return ins, outs if number == -1 else [merge([numbers[number], *outs])]


def floating(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """As `same_dtype`, for operators that take floats alone."""
    ins, outs = same_dtype(params, ins, outs)
    _require(ins[0], "float", "data")
    return ins, outs


def mixed_update(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Weight, gradient and result have one float dtype, the states are float32."""
    known = merge([*ins[:2], *outs])
    _require(known, "float", "weight")
    return [known, known, *["float32"] * (len(ins) - 2)], [known]


def mixed_direction(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """As `mixed_update`, but the result is float32."""
    return mixed_update(params, ins, [])[0], ["float32"]


def mixed_step(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Weight and result have one float dtype, all else is float32."""
    known = merge([ins[0], *outs])
    _require(known, "float", "weight")
    return [known, *["float32"] * (len(ins) - 1)], [known]


def numbers(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """As `same_dtype`, for operators that do not take bool."""
    ins, outs = same_dtype(params, ins, outs)
    if ins[0] == "bool":
        raise MXNetError("expected data of a float or int dtype, got bool")
    return ins, outs


def _require(dtype: str | None, kind: str, what: str) -> None:
    if dtype is not None and kind not in dtype:
        raise MXNetError(f"expected {what} of a{'n' if kind == 'int' else ''} {kind} dtype, got {dtype}")


def batch_norm(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Data and output agree; the statistics and parameters have that dtype too, or float32 where it is float16."""
    data = merge([ins[0], outs[0]])
    _require(data, "float", "data")
    other = "float32" if data == "float16" else data
    rest = merge([other, *ins[1:], *outs[1:]])
    return [data, *[rest] * (len(ins) - 1)], [data, *[rest] * (len(outs) - 1)]


def softmax(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the data's dtype, or the one that the parameter `dtype` names; `length` counts, in integers."""
    asked = params["dtype"]
    assert asked is None or isinstance(asked, str)
    data = ins[0] if asked else merge([ins[0], outs[0]])
    _require(data, "float", "data")
    for length in ins[1:]:
        _require(length, "int", "length")
    return [data, *ins[1:]], [merge([asked or data, outs[0]])]


def box_nms(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Floats; the hidden output counts rows."""
    ins, out = floating(params, ins, outs[:1])
    return ins, [out[0], "int32"]


def to_int32(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is int32."""
    return ins, ["int32"] * len(outs)


def embedding(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Weight and output agree; where nothing is known of them, on `dtype`. The data is free."""
    known = merge([ins[1], outs[0]]) or params["dtype"]
    assert isinstance(known, str)
    return [ins[0], known], [known]


def batch_take(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Data and output agree; indices are int32."""
    known = merge([ins[0], outs[0]])
    return [known, merge([ins[1], "int32"])], [known]


def onehot_encode(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The second input and the output agree; the indices are free."""
    known = merge([ins[1], outs[0]])
    return [ins[0], known], [known]


def two_and_index(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The first two inputs and the output agree; the third, an index, is free."""
    known = merge([*ins[:2], outs[0]])
    return [known, known, ins[2]], [known]


def index_copy(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The first and the last input and the output agree; the index between is free."""
    known = merge([ins[0], ins[2], outs[0]])
    return [known, ins[1], known], [known]


def rnn(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """One float dtype for all but sequence_length, which may be of any; the data's where nothing says another."""
    count = len(ins) - bool(params["use_sequence_length"])
    known = merge([*ins[:count], *outs])
    _require(known, "float", "data")
    return [known] * count + [length or known for length in ins[count:]], [known] * len(outs)


def topk(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Values and masks have the data's dtype, places that of the parameter."""
    places = params["dtype"]
    assert isinstance(places, str)
    if params["ret_typ"] == "indices":
        return ins, [merge([places, outs[0]])]
    known = merge([ins[0], outs[0]])
    return [known], [known, *(merge([places, o]) for o in outs[1:])]


def sort(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Values have the data's dtype, places are int32."""
    known = merge([ins[0], outs[0]])
    return [known], [known, "int32"]


def cumsum(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that `dtype` names, else the data's, and int64 for bool."""
    asked = params["dtype"]
    assert asked is None or isinstance(asked, str)
    if asked or ins[0] == "bool":
        return ins, [merge([asked or "int64", outs[0]])]
    return same_dtype(params, ins, outs)


def histogram(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Counts are int64, edges have the data's dtype."""
    known = merge([*ins, outs[1]])
    return [known] * len(ins), ["int64", known]


def float32(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """float32 in and out, and nothing else."""
    for dtype in ins:
        merge([dtype, "float32"])
    return ["float32"] * len(ins), ["float32"] * len(outs)


def assign(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """An index, and a number of the first input's dtype."""
    return ins, ["int32", ins[0]]


def drawn(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output has the dtype that `dtype` names; else the one that is asked of it, else float32. Inputs agree."""
    known = merge(ins)
    return [known] * len(ins), [merge([params["dtype"], outs[0]]) or "float32"]  # type: ignore[list-item]


def drawn_integers(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """As `drawn`, with int32 at last."""
    return ins, [merge([params["dtype"], outs[0]]) or "int32"]  # type: ignore[list-item]


def float64_only(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """The output is float64."""
    return ins, ["float64"] * len(outs)


def multinomial(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """Classes have the dtype that `dtype` names, the logarithms of their probabilities the data's, a float."""
    _require(ins[0], "float", "data")
    data = merge([ins[0], *outs[1:]])
    return [data], [merge([str(params["dtype"]), outs[0]]), *[data] * len(outs[1:])]
