"""The reference of Fourier transforms, by NumPy's."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def fft(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The transform along the last axis, real and imaginary parts in turn"""
    found = np.fft.fft(inputs[0].astype(np.float64))
    return [np.stack([found.real, found.imag], -1).reshape(*found.shape[:-1], -1)]


def ifft(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The real part of the inverse transform, times the number of elements"""
    data = inputs[0].astype(np.float64)
    found = np.fft.ifft(data[..., ::2] + 1j * data[..., 1::2])
    return [found.real * found.shape[-1]]
