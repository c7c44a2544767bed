"""Arrays of bfloat16: programs answer what MXNet 1.9.1 does (golden/bfloat16.json), and networks compute, learn and are
kept in it."""
from __future__ import annotations

import importlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import BFLOAT16, narrowed, widened

bfloat16 = importlib.import_module("golden.bfloat16")
REAL = json.loads((Path(__file__).parent / "golden" / "bfloat16.json").read_text())
CUT = ("number", "sigmoid")  # MXNet drops the lower bits of these results; mxc rounds all alike


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def narrow(*shape: int, seed: int = 0) -> mx.nd.NDArray:
    return mx.nd.array(numbers(*shape, seed=seed)).astype(BFLOAT16)


def wide(array: mx.nd.NDArray) -> np.ndarray:
    return array.astype("float32").asnumpy()


def test_every_program_is_recorded() -> None:
    assert list(REAL) == bfloat16.CASES


@pytest.mark.parametrize("case", [c for c in bfloat16.CASES if c not in CUT])
def test_answers_as_mxnet(case: str) -> None:
    assert json.loads(json.dumps(bfloat16.answer(mx, case))) == REAL[case]


@pytest.mark.parametrize("case", CUT)
def test_results_are_rounded(case: str) -> None:
    ours, theirs = bfloat16.answer(mx, case), REAL[case]
    assert ours[:2] == theirs[:2]
    differences = np.abs(np.array(ours[2]) - np.array(theirs[2]))
    assert differences.max() == 1


def test_rounding() -> None:
    """To the nearest, halves to the even one; NaN stays NaN, also where its lower bits alone say so."""
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x7F7FFFFF, 0x7F800001, 0xFF800001], np.uint32)
    got = narrowed(bits.view(np.float32))["bfloat16"]
    np.testing.assert_array_equal(got[:4], [0x3F80, 0x3F82, 0x3F81, 0x7F80])
    assert np.isnan(widened(got[4:].view(BFLOAT16))).all()
    compiled = mx.nd.array(bits.view(np.float32)).astype(BFLOAT16).asnumpy()["bfloat16"]
    np.testing.assert_array_equal(compiled[:4], got[:4])
    assert np.isnan(widened(compiled[4:].view(BFLOAT16))).all()


@pytest.mark.parametrize("dtype", ["bfloat16", BFLOAT16])
def test_both_spellings(dtype: object) -> None:
    x = mx.nd.array([1.5, 2, -7], dtype=dtype)
    assert x.dtype == BFLOAT16
    assert mx.sym.Cast(mx.sym.Variable("x"), dtype=dtype).infer_type(x="float32")[1] == [BFLOAT16]
    np.testing.assert_array_equal(wide(x), [1.5, 2, -7])


def test_numbers_of_an_array() -> None:
    x = mx.nd.array([1.1, 300.7, -2], dtype="bfloat16")
    assert str(x) == "\n[  1.1015625 300.         -2.       ]\n<NDArray 3 @cpu(0)>"
    assert x[0].asscalar() == np.float32(1.1015625) and float(x[1]) == 300
    x[:] = np.array([0.5, 1, 2])
    np.testing.assert_array_equal(wide(x), [0.5, 1, 2])


def test_copies_keep_the_dtype() -> None:
    x = narrow(3, 4)
    for y in (pickle.loads(pickle.dumps(x)), x.copy(), x.as_in_context(mx.cpu(0)), x.T.T):
        assert y.dtype == BFLOAT16
        np.testing.assert_array_equal(wide(y), wide(x))


def test_a_loader_gives_batches() -> None:
    data = mx.gluon.data.ArrayDataset(narrow(6, 3), mx.nd.arange(6))
    for workers in (0, 1):
        for batch, _ in mx.gluon.data.DataLoader(data, 2, num_workers=workers):
            assert batch.dtype == BFLOAT16 and batch.shape == (2, 3)


def test_gradients_of_a_product() -> None:
    x, w = narrow(4, 50), narrow(3, 50, seed=1)
    for array in (x, w):
        array.attach_grad()
    with mx.autograd.record():
        y = (mx.nd.FullyConnected(x, w, num_hidden=3, no_bias=True) * mx.nd.ones((4, 3)).astype(BFLOAT16)).sum()
    y.backward()
    assert x.grad.dtype == w.grad.dtype == BFLOAT16
    np.testing.assert_allclose(wide(w.grad), np.broadcast_to(wide(x).sum(0), (3, 50)), rtol=8e-3, atol=1e-3)
    np.testing.assert_allclose(wide(x.grad), np.broadcast_to(wide(w).sum(0), (4, 50)), rtol=8e-3, atol=1e-3)


def network() -> mx.gluon.nn.HybridSequential:
    nn = mx.gluon.nn
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dense(4))
    mx.random.seed(1)
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((2, 3, 8, 8)))
    return net


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_network_learns(hybrid: bool) -> None:
    """Its norm keeps float32; the optimizer's own weights are of float32 too."""
    net, loss_of = network(), mx.gluon.loss.SoftmaxCrossEntropyLoss()
    net.cast("bfloat16")
    if hybrid:
        net.hybridize()
    settings = {"learning_rate": 0.05, "momentum": 0.9, "multi_precision": True}
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", settings)
    data, label = narrow(16, 3, 8, 8), mx.nd.arange(16) % 4
    losses = []
    for _ in range(12):
        with mx.autograd.record():
            loss = loss_of(net(data).astype("float32"), label)
        loss.backward()
        trainer.step(16)
        losses.append(float(loss.mean().asscalar()))
    assert losses[0] > 1 and losses[-1] < 0.1
    dtypes = {name.partition("_")[2]: p.data().dtype for name, p in net.collect_params().items()}
    assert dtypes["conv0_weight"] == dtypes["dense0_bias"] == BFLOAT16
    assert dtypes["batchnorm0_gamma"] == dtypes["batchnorm0_running_var"] == np.float32


def test_a_network_computes_what_float32_does() -> None:
    net, data = network(), narrow(4, 3, 8, 8)
    expected = net(data.astype("float32")).asnumpy()
    net.cast("bfloat16")
    net.hybridize()
    np.testing.assert_allclose(wide(net(data)), expected, atol=0.03)


@pytest.mark.parametrize("name", ["net.params", "net.safetensors"])
def test_a_network_is_kept(name: str, tmp_path: Path) -> None:
    net = network()
    net.cast("bfloat16")
    net.save_parameters(str(tmp_path / name))
    other = network()
    other.cast("bfloat16")
    other.load_parameters(str(tmp_path / name))
    for (key, one), (_, got) in zip(net.collect_params().items(), other.collect_params().items(), strict=True):
        assert one.data().dtype == got.data().dtype, key
        np.testing.assert_array_equal(wide(one.data()), wide(got.data()))


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "nag", "lamb"])
def test_weights_of_the_optimizer_are_of_float32(optimizer: str) -> None:
    """Steps too small for a weight of bfloat16 add up."""
    made = mx.optimizer.create(optimizer, learning_rate=1e-4, multi_precision=True, wd=0)
    weight, grad = mx.nd.ones((40,), dtype="bfloat16"), mx.nd.ones((40,), dtype="bfloat16")
    state = made.create_state_multi_precision(0, weight)
    for _ in range(60):
        made.update_multi_precision(0, weight, grad, state)
    assert weight.dtype == BFLOAT16
    assert wide(weight)[0] < 1


def test_a_bound_symbol_learns() -> None:
    data, weight = mx.sym.Variable("data"), mx.sym.Variable("weight")
    symbol = mx.sym.MakeLoss(mx.sym.square(mx.sym.FullyConnected(data, weight, no_bias=True, num_hidden=3)))
    executor = symbol.simple_bind(mx.cpu(), data=(5, 9), type_dict={"data": "bfloat16"})
    assert executor.arg_dict["weight"].dtype == executor.grad_dict["weight"].dtype == BFLOAT16
    executor.arg_dict["data"][:] = narrow(5, 9)
    executor.arg_dict["weight"][:] = narrow(3, 9, seed=1)
    (out,) = executor.forward(is_train=True)
    executor.backward()
    x, w = (wide(executor.arg_dict[name]) for name in ("data", "weight"))
    np.testing.assert_allclose(wide(out), (x @ w.T) ** 2, rtol=2e-2, atol=1e-3)
    np.testing.assert_allclose(wide(executor.grad_dict["weight"]), 2 * (x @ w.T).T @ x, rtol=3e-2, atol=0.1)


def test_operators_of_ones_own() -> None:
    @mx.operator.elementwise("test_bfloat16_swish")
    def swish(x, *, beta: float = 1.0):  # type: ignore[no-untyped-def]
        return x / (1 + np.exp(-beta * x))

    def gradient(x, grad_out, grad_x):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            grad_x[i] = grad_out[i] * 2

    @mx.operator.kernel("test_bfloat16_double", shapes=lambda x: x, gradient=gradient)
    def double(x, out):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            out[i] = x[i] * 2

    x = narrow(30)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.test_bfloat16_double(mx.nd.test_bfloat16_swish(x, beta=2.0))
    y.backward()
    assert y.dtype == x.grad.dtype == BFLOAT16
    numbers, gate = wide(x), 1 / (1 + np.exp(-2 * wide(x)))
    np.testing.assert_allclose(wide(y), 2 * numbers * gate, rtol=8e-3)
    np.testing.assert_allclose(wide(x.grad), 2 * gate * (1 + 2 * numbers * (1 - gate)), rtol=2e-2, atol=1e-3)


def test_what_has_no_bfloat16_says_so() -> None:
    with pytest.raises(MXNetError, match="expected one of float16, float32, float64, got 'bfloat16'"):
        mx.nd.random.uniform(shape=(3,), dtype="bfloat16")
