"""Initializers make what MXNet 1.9.1's make, and raise what they raise (golden/initializers.json)."""
from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from golden import initializers

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "initializers.json").read_text())
# Errors of MXNet's own code by what mxc raises there.
ACCIDENTS = dict.fromkeys(("AssertionError", "AttributeError", "UnboundLocalError", "KeyError", "IndexError"), ("TypeError", "ValueError", "IndexError"))


def same(ours, theirs) -> bool:
    """Equal, but for rounding, and an error for classes of which mxc's is one."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and any(
            name in ours["error"] for first in theirs["error"] for name in (first, *ACCIDENTS.get(first, ())))
    if isinstance(theirs, float):
        return isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-7)
    return ours == theirs


def test_every_case_is_recorded():
    assert list(REAL) == initializers.CASES


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str):
    ours = json.loads(json.dumps(initializers.answer(mx, case)))
    assert same(ours, REAL[case]), f"\n{ours}\n{REAL[case]}"
