"""Calls of the array interface answer and raise what MXNet 1.9.1 does (golden/array_calls.json)."""
from __future__ import annotations

import builtins
import importlib
import json
import math
from pathlib import Path

import pytest

import mxc as mx
from mxc.compiler.error import MXNetError, UnsupportedError

array_calls = importlib.import_module("golden.array_calls")
REAL = json.loads((Path(__file__).parent / "golden" / "array_calls.json").read_text())
NO_ASSERTION = (TypeError, ValueError, MXNetError)  # what mxc raises where MXNet's assert statement fails
# Where mxc answers otherwise: what it raises, or None where it has a value.
OTHERS = {
    **{f"bool {name} bool": None for name in array_calls.OPERATORS},  # MXNet has no such kernels
    "array of None": TypeError, "array of complex": TypeError, "array of arrays": None,  # no numbers; a list of rows
    "array dtype complex64": TypeError, "array dtype uint16": TypeError,  # MXNet: KeyError, from a table of its own
    "zeros (2.0, 3)": None, "ones (2.0, 3)": None, "array parameter": None, "float for int": None,  # whole numbers
    "split_v2 0 {}": ValueError, "asscalar nested": None,  # MXNet: what a division says; an array as a scalar
    "empty sum": MXNetError,  # operators take arrays with elements
    "pickle ctx": None,  # the context is kept
    "out dtype": None,  # the result is cast
    "unknown": MXNetError,  # MXNet tells unknown parameters only of operators that have any
    "float": None, "int": None, "float many": ValueError, "percent": None,  # one element is a number
}


def same(ours, theirs) -> bool:
    """Equal, but for rounding of floats."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, float):
        return isinstance(ours, float) and (math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-7)
                                            or (math.isnan(ours) and math.isnan(theirs)))
    return type(ours) is type(theirs) and ours == theirs


def test_every_call_is_recorded():
    assert {f: calls.keys() for f, calls in REAL.items()} == {f: c.keys() for f, c in array_calls.FAMILIES.items()}


@pytest.mark.parametrize(("family", "name"), [(f, name) for f, calls in REAL.items() for name in calls])
def test_answers_as_mxnet(family: str, name: str):
    real = REAL[family][name]
    call = array_calls.FAMILIES[family][name]
    found = json.loads(json.dumps(array_calls.answer(mx, call)))
    if "error" in found and "is not known" in found["text"] and "error" not in real:
        pytest.skip(found["text"])  # an operator that is not there yet
    if name in OTHERS:
        wanted = OTHERS[name]
        assert wanted.__name__ in found["error"] if wanted else "error" not in found, found
    elif "error" not in real:
        assert same(found, real)
    else:
        first = real["error"][0]
        kinds = NO_ASSERTION if first == "AssertionError" else (getattr(builtins, first, MXNetError),)
        assert "error" in found and any(kind.__name__ in found["error"] for kind in kinds), found


def test_what_is_not_there_is_told():
    with pytest.raises(UnsupportedError, match=r"mx\.np"):
        mx.nd.ones(1).as_np_ndarray()


