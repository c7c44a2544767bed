"""Training: the losses that MXNet records for the same start and batches, and networks that learn."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from repository import load

LOSSES = json.loads((Path(__file__).parent / "golden" / "losses.json").read_text())  # by golden/make_losses.py
EPOCHS = {"lenet": 12, "perceptron": 20}


@pytest.mark.parametrize("name", EPOCHS)
def test_losses_and_accuracy(name):
    lenet = load("examples/lenet.py")
    symbol = getattr(lenet, name)()
    images, labels, test_images, test_labels = lenet.digits()
    executor, losses = lenet.train(symbol, images, labels, EPOCHS[name])
    first = len(LOSSES[name])
    assert first == 50
    np.testing.assert_allclose(losses[:first], LOSSES[name], rtol=0, atol=1e-3)
    assert np.mean(losses[-20:]) < 0.1 * np.mean(losses[:20])
    parameters = {n: a for n, a in executor.arg_dict.items() if n not in ("data", "softmax_label")}
    assert lenet.accuracy(symbol, parameters, test_images, test_labels) >= 0.97
