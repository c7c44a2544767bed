"""Programs with Gluon give what MXNet 1.9.1 gives (golden/gluon_programs.json), and what is mxc's own."""
from __future__ import annotations

import importlib
import json
import math

import pytest

import mxc as mx

programs = importlib.import_module("golden.gluon_programs")
REAL = json.loads(programs.PATH.read_text())
CLOSE = 2e-4  # of what 20 steps of training make of rounding


def differences(ours, theirs, place: str = "") -> list[str]:
    """Where two nested values differ; numbers may by CLOSE."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and list(ours) == list(theirs):
        return [d for key in theirs for d in differences(ours[key], theirs[key], f"{place}/{key}")]
    if isinstance(theirs, list) and isinstance(ours, (list, tuple)) and len(ours) == len(theirs):
        return [d for i, pair in enumerate(zip(ours, theirs, strict=True)) for d in differences(*pair, f"{place}/{i}")]
    same = math.isclose(ours, theirs, rel_tol=CLOSE, abs_tol=CLOSE) if isinstance(theirs, float) else ours == theirs
    return [] if same else [f"{place}: {ours!r}, MXNet {theirs!r}"]


def test_the_questions_are_those_that_mxnet_answered():
    assert list(REAL) == list(programs.CASES)


@pytest.mark.parametrize("name", [name for name in programs.CASES if name != "refusals"])
def test_it_does_as_mxnet(name: str):
    assert differences(programs.answer(mx, name), REAL[name]) == []


def test_errors_are_of_mxnets_classes():
    ours = programs.answer(mx, "refusals")
    assert {name: theirs for name, theirs in REAL["refusals"].items() if theirs[0] not in ours[name]} == {}


def test_a_gradient_penalty_through_a_hybridised_block():
    """The same as operator by operator, whose gradients of gradients have tests of their own."""
    eager, hybrid = programs.penalty(False)(mx), programs.penalty(True)(mx)
    assert differences(hybrid, eager) == []
    assert any(abs(value) > 0.01 for value in eager["critic_dense0_weight"])
