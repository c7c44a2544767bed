"""The networks of Gluon's zoo are MXNet 1.9.1's (golden/gluon_zoo.json): names, shapes, graphs and outputs."""
from __future__ import annotations

import importlib
import json

import numpy as np
import pytest

import mxc as mx

zoo = importlib.import_module("golden.gluon_zoo")
REAL = json.loads(zoo.PATH.read_text())
TOLERANCE = 1e-3  # of the largest output: rounding, through a hundred and more layers
QUICK = ("resnet18_v1", "mobilenet0.25", "mobilenetv2_0.25", "alexnet")  # to compile and to run


def test_every_network_is_recorded():
    names = importlib.import_module("mxc.gluon.model_zoo.vision")
    assert list(REAL) == list(zoo.CASES)
    assert len({*names._SAME, *names._NAMES}) == len(REAL) == 34


@pytest.mark.parametrize("name", REAL)
def test_is_made_as_mxnets(name: str):
    made = zoo.structure(mx, name)
    assert (len(made["names"]), len(made["graph"])) == (REAL[name]["parameters"], REAL[name]["outputs"])
    assert {key: zoo.digest(value) for key, value in made.items()} == {key: REAL[name][key] for key in made}


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
                                  for name in REAL])
def test_computes_what_mxnets_does(name: str):
    ours, theirs = np.array(zoo.output(mx, name)), np.array(REAL[name]["output"])
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * theirs[-1])
