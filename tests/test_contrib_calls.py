"""Operators of mx.nd.contrib and mx.nd._internal answer and raise what MXNet 1.9.1 does (golden/contrib_calls.json).
What MXNet has but cannot run is what its parts compute."""
from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.operators.rnn.shape import length_of, pieces
from mxc.compiler.ops import table

contrib_calls = importlib.import_module("golden.contrib_calls")
REAL = json.loads((Path(__file__).parent / "golden" / "contrib_calls.json").read_text())


def same(ours: object, theirs: object) -> bool:
    """Equal, but for rounding of floats."""
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, float) and isinstance(ours, float):
        return abs(ours - theirs) <= 3e-6 * max(1.0, abs(theirs))
    return ours == theirs


def test_every_call_is_recorded() -> None:
    assert list(REAL) == contrib_calls.CASES


@pytest.mark.parametrize("case", contrib_calls.CASES)
def test_answers_as_mxnet(case: str) -> None:
    assert same(json.loads(json.dumps(contrib_calls.answer(mx, case))), REAL[case])


def test_turned_regions_have_no_gradient() -> None:
    data, rois = mx.nd.ones((1, 2, 4, 4)), mx.nd.array([[0, 1, 1, 2, 2, 0]])
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.contrib.RROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1.0)
    with pytest.raises(MXNetError, match="_contrib_RROIAlign"):
        out.backward()


def test_a_turned_region_of_an_image_that_there_is_not_is_0() -> None:
    """MXNet reads other memory."""
    rois = mx.nd.array([[-1, 1, 1, 2, 2, 0], [5, 1, 1, 2, 2, 0], [np.nan, 1, 1, 2, 2, 0]])
    made = mx.nd.contrib.RROIAlign(mx.nd.ones((1, 2, 4, 4)), rois, pooled_size=(2, 2), spatial_scale=1.0)
    assert not made.asnumpy().any()


@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (2, True)])
def test_a_quantized_lstm_is_an_lstm_of_what_its_numbers_stand_for(layers: int, bidirectional: bool) -> None:
    """Its weights here are ones that 8 bits hold, so that nothing is rounded but the data."""
    settings = {"state_size": 6, "num_layers": layers, "mode": "lstm", "bidirectional": bidirectional}
    params = table.get("RNN").make_params(settings)
    random = np.random.RandomState(layers)
    vector = random.uniform(-1, 1, length_of(params, 4)).astype("float32")
    for piece in pieces(params, 4):
        if "bias" not in piece.name:
            rows = random.randint(-127, 128, piece.shape)
            rows[:, 0] = 127  # the largest of each row
            vector[piece.start:piece.stop] = (rows * np.float32(0.5 / 127)).ravel()
    shape = (layers * (1 + bidirectional), 3, 6)
    state, cell = (mx.nd.array(random.uniform(-1, 1, shape)) for _ in range(2))
    small, scale, shift = mx.nd.contrib.quantize_asym(mx.nd.array(random.uniform(-2, 3, (5, 3, 4))))
    assert small.dtype == np.uint8
    data = (small.astype("float32") - shift.asscalar()) / scale.asscalar()
    found = mx.nd.contrib.quantized_rnn(small, mx.nd.array(vector), state, cell, scale, shift, state_outputs=True,
                                        **settings)
    wanted = mx.nd.RNN(data, mx.nd.array(vector), state, cell, state_outputs=True, **settings)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.asnumpy(), theirs.asnumpy(), atol=2e-6)


def test_a_quantized_lstm_rounds_its_weights() -> None:
    """Each gate's numbers are whole multiples of a 127th part of their largest."""
    settings = {"state_size": 1, "num_layers": 1, "mode": "lstm"}
    weights = [1.0, 0.3] * 4  # of data, then of the state, for each gate
    zeros = [mx.nd.zeros((1, 1, 1)) for _ in range(2)]
    rest = (mx.nd.array([1.0]), mx.nd.array([0.0]))
    data = mx.nd.ones((2, 1, 1), dtype="uint8")
    vector = mx.nd.array(weights[::2] + weights[1::2] + [0.0] * 8)
    rounded = mx.nd.array([1.0] * 4 + [round(0.3 * 127) / 127] * 4 + [0.0] * 8)
    found = mx.nd.contrib.quantized_rnn(data, vector, *zeros, *rest, **settings).asnumpy()
    np.testing.assert_allclose(found, mx.nd.RNN(data.astype("float32"), rounded, *zeros, **settings).asnumpy(),
                               rtol=1e-6)


@pytest.mark.parametrize(("more", "text"), [
    ({"mode": "gru"}, "expected mode=lstm, got mode=gru"), ({"projection_size": 2}, "expected no projection_size"),
    ({"use_sequence_length": True}, "expected no use_sequence_length")])
def test_a_quantized_layer_that_there_is_not_is_refused(more: dict, text: str) -> None:
    symbol = mx.sym.contrib.quantized_rnn(*map(mx.sym.var, "abcdef"), **{
        "state_size": 3, "num_layers": 1, "mode": "lstm", **more})
    with pytest.raises(MXNetError, match=text):
        symbol.simple_bind(mx.cpu(), a=(5, 2, 4), type_dict={"a": "uint8"})
