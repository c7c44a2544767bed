"""Shapes of Fourier transforms. Complex numbers are two neighbours along the last axis, the real part first."""
from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def fft(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(..., n) real numbers -> (..., 2 * n)"""
    data = ins[0]
    return ins, outs if not data else [merge((*data[:-1], 2 * data[-1]), outs[0])]


def ifft(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(..., 2 * n) -> (..., n) real numbers"""
    data = ins[0]
    if not data:
        return ins, outs
    if data[-1] % 2:
        raise MXNetError(f"expected complex numbers, pairs along the last axis, got {data}")
    return ins, [merge((*data[:-1], data[-1] // 2), outs[0])]


def fourier_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """5 n log2(n) for each row of n numbers, as transforms are counted whatever the factors of n."""
    n = min(ins[0][-1], outs[0][-1])
    return int(5 * prod(outs[0][:-1]) * n * log2(max(n, 2)))
