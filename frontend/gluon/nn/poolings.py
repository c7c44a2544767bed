"""Poolings. Their parameters are MXNet's, in its order, which is not the same for all."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import AssertedError
from mxc.gluon.hybrid_block import HybridBlock

Numbers = int | Sequence[int]


class _Pooling(HybridBlock):
    """The maximum or mean over windows, or over all positions.

    pool_size, strides, padding: one number for all axes, or one for each; strides=None: as pool_size. ceil_mode: count
    a window that begins inside too. count_include_pad: the padding counts in means. Of this class itself pool_size has
    all numbers.
    """

    # many parameters: those that the layers below have in common.
    def __init__(self, pool_size: Sequence[int], strides: Numbers | None, padding: Numbers, ceil_mode: bool,
                 global_pool: bool, pool_type: str, layout: str, count_include_pad: bool | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        size = tuple(pool_size)
        self._kwargs: dict[str, Any] = {
            "kernel": size, "stride": size if strides is None else numbers(strides, len(size), "strides"),
            "pad": numbers(padding, len(size), "padding"), "global_pool": global_pool, "pool_type": pool_type,
            "layout": layout, "pooling_convention": "full" if ceil_mode else "valid"}
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def __repr__(self) -> str:
        kwargs = self._kwargs
        return (f"{type(self).__name__}(size={kwargs['kernel']}, stride={kwargs['stride']}, padding={kwargs['pad']}, "
                f"ceil_mode={kwargs['pooling_convention'] == 'full'}, global_pool={kwargs['global_pool']}, "
                f"pool_type={kwargs['pool_type']}, layout={kwargs['layout']})")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.Pooling(x, name="fwd", **self._kwargs)


class MaxPool1D(_Pooling):
    """The maximum over windows of one axis, of arrays NCW or NWC; see `_Pooling`. Raises AssertionError for
    another layout, or another count of numbers."""

    def __init__(self, pool_size: Numbers = 2, strides: Numbers | None = None, padding: Numbers = 0,
                 layout: str = "NCW", ceil_mode: bool = False, **kwargs: Any):
        require_layout(layout, "NCW", "NWC")
        super().__init__(numbers(pool_size, 1, "pool_size"), strides, padding, ceil_mode, False, "max", layout,
                         **kwargs)


class MaxPool2D(_Pooling):
    """The maximum over windows of two axes, of arrays NCHW or NHWC; see `_Pooling`. Raises AssertionError for
    another layout, or another count of numbers."""

    def __init__(self, pool_size: Numbers = (2, 2), strides: Numbers | None = None, padding: Numbers = 0,
                 layout: str = "NCHW", ceil_mode: bool = False, **kwargs: Any):
        require_layout(layout, "NCHW", "NHWC")
        super().__init__(numbers(pool_size, 2, "pool_size"), strides, padding, ceil_mode, False, "max", layout,
                         **kwargs)


class MaxPool3D(_Pooling):
    """The maximum over windows of three axes, of arrays NCDHW or NDHWC; see `_Pooling`. Raises AssertionError for
    another layout, or another count of numbers."""

    def __init__(self, pool_size: Numbers = (2, 2, 2), strides: Numbers | None = None, padding: Numbers = 0,
                 ceil_mode: bool = False, layout: str = "NCDHW", **kwargs: Any):
        require_layout(layout, "NCDHW", "NDHWC")
        super().__init__(numbers(pool_size, 3, "pool_size"), strides, padding, ceil_mode, False, "max", layout,
                         **kwargs)


class AvgPool1D(_Pooling):
    """The mean over windows of one axis, of arrays NCW or NWC; see `_Pooling`. Raises AssertionError for
    another layout, or another count of numbers."""

    def __init__(self, pool_size: Numbers = 2, strides: Numbers | None = None, padding: Numbers = 0,
                 layout: str = "NCW", ceil_mode: bool = False, count_include_pad: bool = True, **kwargs: Any):
        require_layout(layout, "NCW", "NWC")
        super().__init__(numbers(pool_size, 1, "pool_size"), strides, padding, ceil_mode, False, "avg", layout,
                         count_include_pad, **kwargs)


class AvgPool2D(_Pooling):
    """The mean over windows of two axes, of arrays NCHW or NHWC; see `_Pooling`. Raises AssertionError for
    another layout, or another count of numbers."""

    def __init__(self, pool_size: Numbers = (2, 2), strides: Numbers | None = None, padding: Numbers = 0,
                 ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True, **kwargs: Any):
        require_layout(layout, "NCHW", "NHWC")
        super().__init__(numbers(pool_size, 2, "pool_size"), strides, padding, ceil_mode, False, "avg", layout,
                         count_include_pad, **kwargs)


class AvgPool3D(_Pooling):
    """The mean over windows of three axes, of arrays NCDHW or NDHWC; see `_Pooling`. Raises AssertionError for
    another layout, or another count of numbers."""

    def __init__(self, pool_size: Numbers = (2, 2, 2), strides: Numbers | None = None, padding: Numbers = 0,
                 ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True, **kwargs: Any):
        require_layout(layout, "NCDHW", "NDHWC")
        super().__init__(numbers(pool_size, 3, "pool_size"), strides, padding, ceil_mode, False, "avg", layout,
                         count_include_pad, **kwargs)


class GlobalMaxPool1D(_Pooling):
    """The maximum over all of one axis, of arrays NCW or NWC. Raises AssertionError for another layout."""

    def __init__(self, layout: str = "NCW", **kwargs: Any):
        require_layout(layout, "NCW", "NWC")
        super().__init__((1,), None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool2D(_Pooling):
    """The maximum over all of two axes, of arrays NCHW or NHWC. Raises AssertionError for another layout."""

    def __init__(self, layout: str = "NCHW", **kwargs: Any):
        require_layout(layout, "NCHW", "NHWC")
        super().__init__((1, 1), None, 0, True, True, "max", layout, **kwargs)


class GlobalMaxPool3D(_Pooling):
    """The maximum over all of three axes, of arrays NCDHW or NDHWC. Raises AssertionError for another layout."""

    def __init__(self, layout: str = "NCDHW", **kwargs: Any):
        require_layout(layout, "NCDHW", "NDHWC")
        super().__init__((1, 1, 1), None, 0, True, True, "max", layout, **kwargs)


class GlobalAvgPool1D(_Pooling):
    """The mean over all of one axis, of arrays NCW or NWC. Raises AssertionError for another layout."""

    def __init__(self, layout: str = "NCW", **kwargs: Any):
        require_layout(layout, "NCW", "NWC")
        super().__init__((1,), None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool2D(_Pooling):
    """The mean over all of two axes, of arrays NCHW or NHWC. Raises AssertionError for another layout."""

    def __init__(self, layout: str = "NCHW", **kwargs: Any):
        require_layout(layout, "NCHW", "NHWC")
        super().__init__((1, 1), None, 0, True, True, "avg", layout, **kwargs)


class GlobalAvgPool3D(_Pooling):
    """The mean over all of three axes, of arrays NCDHW or NDHWC. Raises AssertionError for another layout."""

    def __init__(self, layout: str = "NCDHW", **kwargs: Any):
        require_layout(layout, "NCDHW", "NDHWC")
        super().__init__((1, 1, 1), None, 0, True, True, "avg", layout, **kwargs)


def numbers(value: Numbers, count: int, name: str) -> tuple[int, ...]:
    """A number for each of `count` axes. Raises AssertionError for another count of numbers."""
    found = (int(value),) * count if isinstance(value, (int, np.integer)) else tuple(value)
    if len(found) != count:
        raise AssertedError(f"{name} has {len(found)} numbers; expected one, or {count}")
    return found


def require_layout(layout: str, *known: str) -> None:
    """Raises AssertionError for a layout that is not among these."""
    if layout not in known:
        raise AssertedError(f"layout is {layout!r}; expected {' or '.join(known)}")
