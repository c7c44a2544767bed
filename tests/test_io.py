"""`mx.io`: short programs answer and raise what MXNet 1.9.1 does (golden/io_calls.json), and what is mxc's own."""
from __future__ import annotations

import gc
import gzip
import importlib
import json
import os
import pickle
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError


io_calls = importlib.import_module("golden.io_calls")
REAL = json.loads((Path(__file__).parent / "golden" / "io_calls.json").read_text())
X, Y = io_calls.X, io_calls.Y
# Errors of mxc that are MXNetErrors with a class of Python's, where MXNet's is another one.
OTHER_ERRORS = {"behind the end: pad": None}


def same(ours, theirs) -> bool:
    """Equal, and an error for an error."""
    if isinstance(theirs, dict) and "error" in theirs:
        return isinstance(ours, dict) and theirs["error"][0] in ours.get("error", ())
    if isinstance(theirs, (list, dict)) and type(ours) in (type(theirs), tuple):
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        return len(ours) == len(theirs) and all(same(ours[k], theirs[k]) for k in keys)
    return type(ours) is type(theirs) and ours == theirs


def test_every_program_is_recorded():
    assert REAL.keys() == set(io_calls.CASES)


@pytest.mark.parametrize("case", REAL)
@pytest.mark.filterwarnings("ignore:LibSVMIter gives dense")
def test_answers_as_mxnet(case: str):
    ours = io_calls.answer(mx, case)
    assert same(ours, REAL[case]), (ours, REAL[case])
