"""Fourier transforms and sketches, which MXNet computes on GPUs alone, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.error import MXNetError

SIZES = (1, 2, 3, 4, 5, 8, 12, 30, 49, 64, 101, 360)
ROUNDING = {"float16": 4e-3, "float32": 2e-6, "float64": 1e-12}


def pairs(values: np.ndarray) -> np.ndarray:
    """Real and imaginary parts in turn along the last axis."""
    return np.stack([values.real, values.imag], -1).reshape(*values.shape[:-1], -1)


def close(ours: mx.nd.NDArray, real: np.ndarray) -> None:
    np.testing.assert_allclose(ours.asnumpy(), real, 0, ROUNDING[np.dtype(ours.dtype).name] * abs(real).max())


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("size", SIZES)
def test_transforms_are_numpys(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    data = rng.uniform(-1, 1, (3, size)).astype(dtype)
    close(mx.nd.contrib.fft(mx.nd.array(data, dtype=dtype)), pairs(np.fft.fft(data.astype("float64"))))
    data = rng.uniform(-1, 1, (3, 2 * size)).astype(dtype)
    wide = data.astype("float64")
    real = np.fft.ifft(wide[:, ::2] + 1j * wide[:, 1::2]).real * size
    close(mx.nd.contrib.ifft(mx.nd.array(data, dtype=dtype)), real)


@pytest.mark.parametrize("shape", [(6,), (2, 3, 4, 6)])
def test_gradients_are_transforms_back(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    data = mx.nd.array(rng.uniform(-1, 1, shape), dtype="float64")
    data.attach_grad()
    with mx.autograd.record():
        found = mx.nd.contrib.fft(data)
        back = mx.nd.contrib.ifft(found)
    head = rng.uniform(-1, 1, shape)
    back.backward(mx.nd.array(head, dtype="float64"), retain_graph=True)
    np.testing.assert_allclose(back.asnumpy(), data.asnumpy() * 6, 1e-12)
    np.testing.assert_allclose(data.grad.asnumpy(), head * 6, 1e-12)
    head = rng.uniform(-1, 1, found.shape)
    found.backward(mx.nd.array(head, dtype="float64"))
    real = np.fft.ifft(head[..., ::2] + 1j * head[..., 1::2]).real * 6
    np.testing.assert_allclose(data.grad.asnumpy(), real, 1e-10)


def test_complex_numbers_are_pairs() -> None:
    with pytest.raises(MXNetError, match=r"pairs along the last axis, got \(2, 5\)"):
        mx.nd.contrib.ifft(mx.nd.ones((2, 5)))


@pytest.mark.parametrize("shape", [(4, 7), (2, 3, 2, 7)])
def test_a_sketch_adds_up_what_has_the_same_place(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    values, places = rng.uniform(-1, 1, shape).astype("float32"), rng.integers(0, 5, (1, 7))
    signs = rng.choice([-1, 1], (1, 7))
    data = mx.nd.array(values)
    data.attach_grad()
    with mx.autograd.record():
        found = mx.nd.contrib.count_sketch(data, mx.nd.array(places), mx.nd.array(signs), out_dim=5)
    matrix = (np.arange(5) == places.T) * signs.T  # (7, 5)
    np.testing.assert_allclose(found.asnumpy(), values @ matrix, 1e-5, 1e-6)
    head = rng.uniform(-1, 1, found.shape).astype("float32")
    found.backward(mx.nd.array(head))
    np.testing.assert_allclose(data.grad.asnumpy(), head @ matrix.T, 1e-5, 1e-6)


def test_a_place_beyond_the_sketch_is_left_out() -> None:
    found = mx.nd.contrib.count_sketch(mx.nd.ones((1, 3)), mx.nd.array([[-1, 1, 9]]), mx.nd.ones((1, 3)), out_dim=2)
    assert found.asnumpy().tolist() == [[0, 1]]
    with pytest.raises(MXNetError):
        mx.nd.contrib.count_sketch(mx.nd.ones((1, 3)), mx.nd.ones((1, 2)), mx.nd.ones((1, 2)), out_dim=2)
