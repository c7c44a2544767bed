"""Mixed precision by `mx.contrib.amp`: programs answer what MXNet 1.9.1 does (golden/amp_calls.json)."""
from __future__ import annotations

import functools
import importlib
import json
import math
from typing import Any

import elsewhere
import pytest

import mxc as mx

calls = importlib.import_module("golden.amp_calls")
REAL = json.loads(calls.PATH.read_text())
EXACT = 2e-5
# MXNet rounds to bfloat16 at other places: its convolutions and activations are one kernel, which rounds once.
LESS_EXACT = {"block bfloat16": 0.01, "trains": 0.003}
ANSWER = """
import json, sys, mxc
from golden import amp_calls
print(json.dumps(amp_calls.answer(mxc, sys.argv[1])))
"""


@functools.cache
def answers(setting: str) -> Any:
    """What mxc says in a process of its own."""
    return json.loads(elsewhere.run(ANSWER, setting))


def differences(ours: Any, theirs: Any, share: float, place: str = "") -> list[str]:
    """Where two nested values differ; numbers may by a share of them. An error may be of a class that derives from
    MXNet's."""
    if isinstance(theirs, dict) and "error" in theirs:
        return [] if isinstance(ours, dict) and theirs["error"][0] in ours.get("error", ()) else \
            [f"{place}: {ours}, MXNet {theirs}"]
    if isinstance(theirs, dict) and isinstance(ours, dict) and {*ours} == {*theirs}:
        return [d for key in theirs for d in differences(ours[key], theirs[key], share, f"{place}/{key}")]
    if isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        return [d for i, pair in enumerate(zip(ours, theirs, strict=True)) for d in differences(*pair, share, f"{place}/{i}")]
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        return [] if math.isclose(ours, theirs, rel_tol=share, abs_tol=share) else [f"{place}: {ours}, MXNet {theirs}"]
    return [] if ours == theirs else [f"{place}: {ours!r}, MXNet {theirs!r}"]


def test_the_questions_are_those_that_mxnet_answered() -> None:
    assert {setting: list(cases) for setting, cases in REAL.items()} == \
        {setting: list(cases) for setting, cases in calls.CASES.items()}


@pytest.mark.parametrize(("setting", "case"), [(setting, case) for setting in REAL for case in REAL[setting]])
def test_it_does_as_mxnet(setting: str, case: str) -> None:
    share = next((share for name, share in LESS_EXACT.items() if case.startswith(name)), EXACT)
    assert differences(answers(setting)[case], REAL[setting][case], share) == []


def test_it_is_off_at_first() -> None:
    assert mx.contrib.amp.amp._amp_initialized is False
