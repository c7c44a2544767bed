"""A saved language model, whose begin states are `_zeros` of shape (2, 0, 200), with several batch sizes."""
from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.ops import table

FOLDER = Path(__file__).parents[2] / "shared" / "models"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs ../shared/models")
STEPS, WORDS, SIZE = 35, 10000, 200


def values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The recipe by which the recorded arguments were made."""
    rng = np.random.RandomState(zlib.crc32(name.encode()) & 0xFFFFFFFF)
    if name.endswith("bias"):
        return rng.uniform(-0.1, 0.1, shape).astype("float32")
    if name.endswith("weight"):
        return (rng.standard_normal(shape) * np.sqrt(1.6 / shape[1])).astype("float32")
    return rng.uniform(-1, 1, shape).astype("float32")


def model() -> mx.sym.Symbol:
    return mx.sym.load(str(FOLDER / "lstm_ptb-symbol.json"))


@pytest.mark.parametrize("batch", [1, 4, 32])
def test_s09_begin_states_and_parameters_get_their_shapes_from_the_layer(batch: int) -> None:
    inner = model().get_internals()
    whole = mx.sym.Group([inner[n] for n in ("softmax_output", "lstm_begin_state_0_output", "lstm_rnn_output")])
    arguments, outputs, _ = whole.infer_shape(data=(STEPS, batch), softmax_label=(STEPS, batch))
    assert dict(zip(whole.list_arguments(), arguments, strict=True))["lstm_parameters"] == (643200,)
    assert outputs == [(STEPS * batch, WORDS), (2, batch, SIZE), (STEPS, batch, SIZE)]


@pytest.mark.parametrize("batch", [1, 4, 32])
def test_the_states_of_all_steps(batch: int) -> None:
    """Against the definition in float64, with weights small enough that rounding does not grow from step to step."""
    net = model().get_internals()["lstm_rnn_output"]
    executor = net.simple_bind(mx.cpu(), grad_req="null", data=(STEPS, batch))
    rng = np.random.default_rng(0)
    given = {k: values(k, a.shape) if k != "data" else rng.integers(0, WORDS, a.shape).astype("float32")
             for k, a in executor.arg_dict.items()}
    given["lstm_parameters"] *= 0.1
    for key, array in executor.arg_dict.items():
        array[:] = given[key]
    (ours,) = executor.forward(is_train=False)
    np.testing.assert_allclose(ours.asnumpy(), hidden(given), 1e-4, 1e-5)


def hidden(given: dict[str, np.ndarray]) -> np.ndarray:
    op, zeros = table.get("RNN"), np.zeros((2, given["data"].shape[1], SIZE))
    params = op.make_params({"mode": "lstm", "num_layers": 2, "state_size": SIZE})
    rows = given["embed_weight"][given["data"].astype(int)]
    return op.reference(params, [rows, given["lstm_parameters"], zeros, zeros], ["float64"] * 4)[0]


def test_recorded_outputs_are_as_near_as_rounding_lets_them_be() -> None:
    """MXNet's own float32 answers are off from the exact ones by a growing multiple of rounding; so may ours be."""
    with np.load(FOLDER / "lstm_ptb-expected.npz") as file:
        recorded = dict(file)
    executor = model().simple_bind(mx.cpu(), grad_req="null", data=(STEPS, 4), softmax_label=(STEPS, 4))
    given = {k: recorded.get(f"in/{k}", values(k, a.shape)) for k, a in executor.arg_dict.items()}
    for key, array in executor.arg_dict.items():
        array[:] = given[key]
    (out,) = executor.forward(is_train=False)
    scores = hidden(given).reshape(-1, SIZE) @ given["pred_weight"].T.astype("float64") + given["pred_bias"]
    powers = np.exp(scores - scores.max(1, keepdims=True))
    rows, expected = recorded["out/0/rows"], recorded["out/0"]
    exact = (powers / powers.sum(1, keepdims=True))[rows]
    allowed = 1e-4 * exact.max(1) + 3 * np.abs(expected - exact).max(1)
    assert (np.abs(out.asnumpy()[rows] - exact).max(1) <= allowed).all()
    np.testing.assert_allclose(out.asnumpy()[rows[:6]], expected[:6], 1e-4, 1e-5 * np.abs(expected).max())
