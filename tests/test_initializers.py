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
ACCIDENTS = ("AssertionError", "AttributeError", "UnboundLocalError", "KeyError", "IndexError")
REFUSALS = ("TypeError", "ValueError", "IndexError")
# Where mxc has a value.
OTHERS = {
    "mx.init.Constant([1, 2]).dumps()": '["constant", {"value": [1, 2]}]',
    "mx.init.FusedRNN('xavier', 3, 1, 'lstm').dumps()": None,  # MXNet cannot make one of text
    "mx.init.FusedRNN('[\"constant\", {\"value\": 3}]', 3, 1, 'gru').dumps()": None,
}


def same(ours, theirs) -> bool:
    """Equal, but for rounding, and an error for classes of which mxc's is one."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and any(
            name in ours["error"] for first in theirs["error"]
            for name in (first, *(REFUSALS if first in ACCIDENTS else ())))
    if isinstance(theirs, float):
        return isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-7)
    return ours == theirs


def test_every_case_is_recorded():
    assert list(REAL) == initializers.CASES


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str):
    ours, real = json.loads(json.dumps(initializers.answer(mx, case))), REAL[case]
    if case in OTHERS:
        assert isinstance(ours, str) and ours == (OTHERS[case] or ours) and not same(ours, real)
    elif case.startswith("spread"):  # mean, deviation, and edge of uniform numbers
        assert abs(ours[0]) < 0.01 * real[1] and ours[1:] == pytest.approx(real[1:], rel=0.01)
    elif case.startswith("orthogonal"):  # squared length, and the largest product of two that are orthogonal
        assert ours == pytest.approx([real[0], 0], abs=3e-6)
    else:
        assert same(ours, real), f"\n{ours}\n{real}"
