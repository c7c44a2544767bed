"""The templates of convolutions of plain arrays whose taps read one copy of the data; calls.py has the others."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.plane_geometry import FilterConvolution, FilterDataGrad, PlaneConvolution, PlaneDataGrad


def _baked_stride(window: Window[int]) -> int:
    return window.stride[2] if window.stride[2] <= 2 else 0


def plane_convolution(
    dtype: str, window: Window[int], data_strides: Sequence[int], block: int,
) -> PlaneConvolution[int]:
    """`calls.convolution` with packed weights, for windows that `plain.fits_planes`: all taps read one copy of the
    data.

    Baked in is the stride along rows if that is 1 or 2, else 0.
    """
    return PlaneConvolution(dtype=dtype, window=window, data_strides=tuple(data_strides), block=block,
                            stride=_baked_stride(window))


def plane_data_grad(
    dtype: str, window: Window[int], out_strides: Sequence[int], block: int,
) -> PlaneDataGrad[int]:
    """`calls.convolution_data_grad` with packed weights, whatever the stride; else as `plane_convolution`."""
    return PlaneDataGrad(dtype=dtype, window=window, out_strides=tuple(out_strides), block=block,
                         stride=_baked_stride(window))


def filter_convolution(
    dtype: str, window: Window[int], data_strides: Sequence[int], block: int,
) -> FilterConvolution[int]:
    """`plane_convolution` for windows with a `plain.filter_block`: vectors hold filters, of which `block` are one or
    two vectors."""
    return FilterConvolution(dtype=dtype, window=window, data_strides=tuple(data_strides), block=block,
                             stride=_baked_stride(window))


def filter_data_grad(
    dtype: str, window: Window[int], out_strides: Sequence[int], block: int,
) -> FilterDataGrad[int]:
    """`plane_data_grad` for windows with a `plain.filter_block`; else as `filter_convolution`."""
    return FilterDataGrad(dtype=dtype, window=window, out_strides=tuple(out_strides), block=block,
                          stride=_baked_stride(window))
