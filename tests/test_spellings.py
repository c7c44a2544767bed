"""Spellings of parameters in files are read as MXNet 1.9.1 reads them (golden/spellings.json)."""
from __future__ import annotations

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table

spellings = importlib.import_module("golden.spellings")
REAL = json.loads((Path(__file__).parent / "golden" / "spellings.json").read_text())
# Taken by MXNet as 0 or 1, without a digit where one belongs: refused here.
NO_NUMBERS = {"", "  ", ".", "f", ".f", "e5", "-", "+", "1e", "1e-"}
# Taken here besides, by kind: what has no other meaning.
LARGE = {"2147483648", "-2147483649", "9223372036854775807"}
MORE = {
    "float": {"1e-46", "1e-400"}, "double": {"1e-400"},  # the nearest number
    "double or None": {
        "0.5f", "0.5F", "1f", "1.f", ".5f", "1e-5f", "0.1e1f", "inf", "-inf", "+inf", "Inf", "INF", "infinity",
        "INFINITY", "-Infinity", "nan", "NaN", "-nan", "NAN", "nan(1)", "nan()", "1e-400",
    },
    "int": LARGE, "int or None": LARGE, "int in 1..": LARGE,
    "shape": {"+1", "1L", "5L", "(1L ,2)"}, "shape or None": {"+1", "1L", "5L", "(1L ,2)"}, "bounds": {"+1", "(1 L,2)"},
    "floats": {"(0.5f,1.f)", "0.5f", "(inf,1)", "(-inf,1)", "(nan,1)", "(1L,2L)", "5L"},
}
OTHERS = {  # what MXNet reads wrongly
    "float": {"99999999999999999999": float(np.float32(1e20))}, "double": {"99999999999999999999": 1e20},
}


def same(ours: object, theirs: object) -> bool:
    """Whether a value is the one that was recorded, but for the last digits of a float, which MXNet's reader misses."""
    if theirs is True:
        return True
    if isinstance(theirs, float):
        assert isinstance(ours, float)
        return math.isclose(ours, theirs, rel_tol=1e-14) or (math.isnan(ours) and math.isnan(theirs))
    return (list(ours) if isinstance(ours, tuple) else ours) == theirs


def test_every_spelling_is_recorded():
    assert {kind: list(texts) for kind, texts in REAL.items()} == {
        kind: list(dict.fromkeys(case[0])) for kind, case in spellings.KINDS.items()}


@pytest.mark.parametrize("kind", REAL)
def test_spellings_are_read_as_mxnet_reads_them(kind: str):
    _, op, name, *_ = spellings.KINDS[kind]
    wrong = {}
    for text, real in REAL[kind].items():
        try:
            found: object = table.get(op).params[name].parse(text)
        except MXNetError as error:
            assert "expected" in str(error)
            if real is not None and text not in NO_NUMBERS:
                wrong[text] = f"refused, where MXNet has {real}"
            continue
        if real is None:
            if text not in MORE.get(kind, ()) and text.strip() == text:  # spaces never count here
                wrong[text] = f"{found}, which MXNet refuses"
        elif not same(found, OTHERS.get(kind, {}).get(text, real)):
            wrong[text] = f"{found}, where MXNet has {real}"
    assert not wrong


@pytest.mark.parametrize(("op", "name", "attrs", "inputs"), spellings.UNSET, ids=[case[0] for case in spellings.UNSET])
def test_a_tuple_that_is_not_set(op: str, name: str, attrs: dict[str, str], inputs: list[str]):
    shapes = {"x": (1, 1, 4, 4), **({"y": (1, 1, 2, 2)} if "y" in inputs else {})}
    unset, left_out = (spellings._graph(mx, op, inputs, {**attrs, **given}) for given in ({name: "None"}, {}))
    assert unset.infer_shape(**shapes) == left_out.infer_shape(**shapes) != (None, None, None)


def test_a_graph_with_numbers_of_c():
    symbol = spellings._graph(mx, "_mul_scalar", ["x"], {"scalar": "0.5f"})
    assert spellings._run(mx, symbol, np.float32([3])).tolist() == [1.5]
    with pytest.raises(MXNetError, match=r"op.*scalar.*expected double, got '0\.5d'"):
        spellings._graph(mx, "_mul_scalar", ["x"], {"scalar": "0.5d"})
