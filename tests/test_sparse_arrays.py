"""Arrays that are kept in parts: programs answer and raise what MXNet 1.9.1 does (golden/sparse_arrays.json)."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from golden import sparse_arrays

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "sparse_arrays.json").read_text())
# What MXNet raises an error for, and mxc computes, or has another error for.
SCIPY, UNSUPPORTED = "MXNet needs SciPy for it", "MXNet has no kernel for these storage types"
DIFFERENT = {
    "make csr of coordinates": SCIPY, "make csr of two parts": "MXNet raises what Python makes of it",
    **dict.fromkeys(("clip(row_sparse)", "clip(csr)", "cast_storage csr(row_sparse)", "cast_storage row_sparse(csr)",
                     "broadcast_div(csr, default)", "dot(csr, row_sparse, True, False{'forward_stype': 'default'})",
                     "Embedding(csr, False)", "Embedding(csr, True)", "FullyConnected"), UNSUPPORTED)}


def same(ours: object, theirs: object) -> bool:
    """Equal up to rounding, NaN equal to NaN; an error for an error, of MXNet's class or one below."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return bool(theirs["error"]) and theirs["error"][0] in ours["error"]
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        return bool(np.isclose(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True))
    return type(ours) is type(theirs) and ours == theirs


def test_every_program_is_recorded():
    assert REAL.keys() == sparse_arrays.CASES.keys() and DIFFERENT.keys() < REAL.keys()


@pytest.mark.parametrize("case", REAL)
@pytest.mark.filterwarnings("ignore::mxc.runtime.sparse_invoke.StorageFallbackWarning")
def test_it_answers_as_mxnet(case: str):
    ours = sparse_arrays.answer(mx, case)
    assert same(ours, REAL[case]) != (case in DIFFERENT), (ours, REAL[case])


@pytest.mark.parametrize("case", [case for case, why in DIFFERENT.items() if why in (SCIPY, UNSUPPORTED)])
@pytest.mark.filterwarnings("ignore::mxc.runtime.sparse_invoke.StorageFallbackWarning")
def test_what_mxnet_has_no_kernel_for_is_there(case: str):
    assert "error" not in sparse_arrays.answer(mx, case)
