"""`mx.rnn`: cells, weights and buckets answer what MXNet 1.9.1 does (golden/rnn_cells.json), and what is mxc's own."""
from __future__ import annotations

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError

rnn_cells = importlib.import_module("golden.rnn_cells")
REAL = json.loads((Path(__file__).parent / "golden" / "rnn_cells.json").read_text())


def same(ours, theirs) -> bool:
    """Equal, but for rounding, and an error of mxc that is one of that class."""
    if isinstance(theirs, dict) and "error" in theirs:
        return isinstance(ours, dict) and theirs["error"][0] in ours.get("error", ())
    if isinstance(theirs, (list, dict)):
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(same(ours[k], theirs[k]) for k in keys)
    if isinstance(theirs, float):
        return isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=3e-4, abs_tol=3e-6)
    return type(ours) is type(theirs) and ours == theirs


def test_every_program_is_recorded():
    assert REAL.keys() == set(rnn_cells.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str):
    ours = rnn_cells.answer(mx, case)
    assert same(ours, REAL[case]), (ours, REAL[case])
