"""Training with arrays that are kept in parts: programs answer what MXNet 1.9.1 does (golden/sparse_training.json)."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import sparse_training
from test_sparse_arrays import same

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "sparse_training.json").read_text())
DIFFERENT = {"runs simply": "MXNet leaves the gradient of a csr array in a dot product at zero; it is computed here"}


def test_every_program_is_recorded():
    assert REAL.keys() == sparse_training.CASES.keys() and DIFFERENT.keys() < REAL.keys()


@pytest.mark.parametrize("case", REAL)
@pytest.mark.filterwarnings("ignore::mxc.runtime.sparse_invoke.StorageFallbackWarning")
def test_it_answers_as_mxnet(case: str):
    ours = sparse_training.answer(mx, case)
    assert same(ours, REAL[case]) != (case in DIFFERENT), (ours, REAL[case])
