"""The records of convolutions of plain arrays whose taps read one copy of the data: see plane_calls.py."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mxc.compiler.kernel.geometry import N, OfData, OfOut


@dataclass(frozen=True, kw_only=True)
class PlaneConvolution(OfData[N]):
    """See `plane_calls.plane_convolution`."""

    template: ClassVar[str] = "plane_convolution"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "stride", "flat")

    block: int
    stride: int


@dataclass(frozen=True, kw_only=True)
class PlaneDataGrad(OfOut[N]):
    """See `plane_calls.plane_data_grad`."""

    template: ClassVar[str] = "plane_data_grad"
    baked: ClassVar[tuple[str, ...]] = ("dtype", "block", "stride", "flat")

    block: int
    stride: int


@dataclass(frozen=True, kw_only=True)
class FilterConvolution(PlaneConvolution[N]):
    """See `plane_calls.filter_convolution`."""

    template: ClassVar[str] = "filter_convolution"


@dataclass(frozen=True, kw_only=True)
class FilterDataGrad(PlaneDataGrad[N]):
    """See `plane_calls.filter_data_grad`."""

    template: ClassVar[str] = "filter_data_grad"
