"""Layers, losses and recurrent cells of Gluon answer what MXNet 1.9.1 does (golden/gluon_layers.json and
gluon_rnn.json), hybridised and not."""
from __future__ import annotations

import importlib
import json
import math

import pytest

import mxc as mx

gluon_layers = importlib.import_module("golden.gluon_layers")
gluon_rnn = importlib.import_module("golden.gluon_rnn")
REAL = json.loads(gluon_layers.PATH.read_text())
RECURRENT = json.loads(gluon_rnn.PATH.read_text())
HALF = 4e-3  # of float16's numbers, some operations after each other
EAGER = ("sdml",)  # it asks for the batch's size, which symbols do not know


def same(ours, theirs, tolerance: float) -> bool:
    """Equal, but for rounding."""
    if isinstance(theirs, (list, dict)):
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(
            same(ours[key], theirs[key], tolerance) for key in keys)
    if isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance / 10)
    return ours == theirs


def test_every_case_is_recorded():
    assert list(REAL) == list(gluon_layers.CASES)
    assert list(RECURRENT) == list(gluon_rnn.CASES)


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybrid"])
@pytest.mark.parametrize("case", RECURRENT)
def test_recurrent_cells_answer_as_mxnet(case: str, hybrid: bool):
    ours = gluon_rnn.answer(mx, case, hybrid)
    assert same(ours, RECURRENT[case], 3e-4), (ours, RECURRENT[case])


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybrid"])
@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str, hybrid: bool):
    if hybrid and case in EAGER:
        pytest.skip("not hybridised in MXNet either")
    ours = gluon_layers.answer(mx, case, hybrid)
    theirs = dict(REAL[case])
    if case == "selu":  # MXNet's gradient is another one, see docs/differences.md
        del ours["inputs"], theirs["inputs"]
    assert same(ours, theirs, HALF if "float16" in case else 3e-4), (ours, theirs)


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybrid"])
def test_a_modulated_convolution_begins_as_a_plain_one(hybrid: bool):
    """Its offsets are 0 then and its masks 1, on both sides of the image's edges."""
    made = mx.gluon.contrib.cnn.ModulatedDeformableConvolution(4, (3, 2), (2, 1), 1, groups=2, num_deformable_group=2,
                                                               in_channels=4)
    plain = mx.gluon.nn.Conv2D(4, (3, 2), (2, 1), 1, groups=2, in_channels=4)
    x = mx.nd.array(gluon_layers.values(1, 2, 4, 5, 6))
    made.initialize()
    plain.initialize()
    plain.weight.set_data(made.deformable_conv_weight.data())
    if hybrid:
        made.hybridize()
    assert list(made.collect_params()) == [f"{made.prefix}{name}" for name in (
        "deformable_conv_weight", "deformable_conv_bias", "offset_weight", "offset_bias")]
    mx.test_utils.assert_almost_equal(made(x), plain(x), 1e-5, 1e-6)
