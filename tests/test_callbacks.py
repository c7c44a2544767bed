"""Callbacks and monitors log the lines that MXNet 1.9.1's log (golden/callbacks.json)."""
from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from golden import callbacks

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "callbacks.json").read_text())
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
ACCIDENTS = {"AssertionError": ("TypeError", "ValueError")}  # errors of MXNet's own code by what mxc raises there


def same(ours, theirs) -> bool:
    """Equal, but for rounding of the numbers in lines, and an error for classes of which mxc's is one."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and any(
            name in ours["error"] for first in theirs["error"] for name in (first, *ACCIDENTS.get(first, ())))
    if isinstance(theirs, str):
        if abs(len(ours) - len(theirs)) > 2 * len(NUMBER.findall(theirs)):  # of a few digits, as float32 is written
            return False
        return isinstance(ours, str) and NUMBER.sub("#", ours) == NUMBER.sub("#", theirs) and all(
            math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-6)
            for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True))
    return ours == theirs


def without_backward(told):
    """What a monitor is told, less the values of a backward run: mxc's monitors see forward runs."""
    if not isinstance(told, list):
        return told
    return [without_backward(part) for part in told
            if "_backward_" not in (part if isinstance(part, str) else str(part[1:2]) if is_told(part) else "")]


def is_told(part) -> bool:
    """Whether it is the number of a batch, a name and a text."""
    return isinstance(part, list) and len(part) == 3 and isinstance(part[1], str)


def test_every_case_is_recorded():
    assert list(REAL) == callbacks.CASES


@pytest.mark.parametrize("case", REAL)
def test_logs_what_mxnet_logs(case: str):
    ours = json.loads(json.dumps(callbacks.answer(mx, case)))
    real = without_backward(REAL[case]) if "monitor" in case else REAL[case]
    assert same(ours, real), f"\n{ours}\n{real}"
