"""Samplers, datasets and batches of Gluon are MXNet 1.9.1's (golden/gluon_data.json), and the same by workers."""
from __future__ import annotations

import importlib
import json

import numpy as np
import pytest

import mxc as mx
from mxc.gluon.data import ArrayDataset, DataLoader

gluon_data = importlib.import_module("golden.gluon_data")
REAL = json.loads(gluon_data.PATH.read_text())
WORKERS = [{"num_workers": 2}, {"num_workers": 2, "thread_pool": True}, {"num_workers": 0}]


def test_every_case_is_recorded():
    assert list(REAL) == list(gluon_data.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str):
    assert gluon_data.answer(mx, case) == REAL[case]


@pytest.mark.parametrize("workers", WORKERS, ids=str)
@pytest.mark.parametrize("last", ["keep", "discard", "rollover"])
def test_workers_make_the_same_batches(workers: dict, last: str):
    rows = ArrayDataset(mx.nd.arange(46).reshape((23, 2)), mx.nd.arange(23))
    found = []
    for options in (workers, {}):
        np.random.seed(3)
        loader = DataLoader(rows, 5, shuffle=True, last_batch=last, **options)
        passes = [[(data.asnumpy().tolist(), label.asnumpy().tolist()) for data, label in loader] for _ in range(3)]
        found.append(passes)
        seen = [number for part in passes[0] for number in part[1]]
        assert len({*seen}) == len(seen) == (23 if last == "keep" else 20) and seen != sorted(seen)
        assert all(data == [[2 * i, 2 * i + 1] for i in label] for one in passes for data, label in one)
    assert found[0] == found[1]
