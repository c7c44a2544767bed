"""Poolings."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc.compiler.error import ArgumentError
from mxc.gluon.hybrid_block import HybridBlock

Numbers = int | Sequence[int]


class _Pooling(HybridBlock):
    """The maximum or mean over windows, or over all positions.

    pool_size, strides, padding: one number for all axes, or one for each; strides=None: as pool_size. ceil_mode: count
    a window that begins inside too. count_include_pad: the padding counts in means.
    """

    def __init__(self, pool_size: Numbers, strides: Numbers | None, padding: Numbers, ceil_mode: bool,
                 global_pool: bool, pool_type: str, layout: str, count_include_pad: bool | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        axes = len(layout) - 2
        size = _spread(pool_size, axes)
        self._kwargs: dict[str, Any] = {
            "kernel": size, "stride": size if strides is None else _spread(strides, axes),
            "pad": _spread(padding, axes), "global_pool": global_pool, "pool_type": pool_type, "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid"}
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


def _spread(value: Numbers, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def _pooling(axes: int, layouts: str, pool_type: str, is_global: bool) -> Any:
    """The class of poolings over `axes` axes."""
    size = (2,) * axes if axes > 1 else 2
    usual = layouts.split()[0]

    def check(layout: str, given: Any = 0) -> None:
        if layout not in layouts.split():
            raise _BadLayout(f"layout is {layout!r}; expected {' or '.join(layouts.split())}")
        if not isinstance(given, int) and len(given) != axes:
            raise _BadLayout(f"pool_size has {len(given)} numbers; expected one, or {axes}")

    if is_global:
        def __init__(self: Any, layout: str = usual, **kwargs: Any) -> None:
            check(layout)
            _Pooling.__init__(self, (1,) * axes, None, 0, True, True, pool_type, layout, **kwargs)
    elif pool_type == "avg" and axes == 1:
        def __init__(self: Any, pool_size: Numbers = size, strides: Numbers | None = None,  # type: ignore[misc]
                     padding: Numbers = 0, layout: str = usual, ceil_mode: bool = False, count_include_pad: bool = True,
                     **kwargs: Any) -> None:
            check(layout, pool_size)
            _Pooling.__init__(self, pool_size, strides, padding, ceil_mode, False, pool_type, layout,
                              count_include_pad, **kwargs)
    elif pool_type == "avg":
        def __init__(self: Any, pool_size: Numbers = size, strides: Numbers | None = None,  # type: ignore[misc]
                     padding: Numbers = 0, ceil_mode: bool = False, layout: str = usual, count_include_pad: bool = True,
                     **kwargs: Any) -> None:
            check(layout, pool_size)
            _Pooling.__init__(self, pool_size, strides, padding, ceil_mode, False, pool_type, layout,
                              count_include_pad, **kwargs)
    elif axes == 3:
        def __init__(self: Any, pool_size: Numbers = size, strides: Numbers | None = None,  # type: ignore[misc]
                     padding: Numbers = 0, ceil_mode: bool = False, layout: str = usual, **kwargs: Any) -> None:
            check(layout, pool_size)
            _Pooling.__init__(self, pool_size, strides, padding, ceil_mode, False, pool_type, layout, **kwargs)
    else:
        def __init__(self: Any, pool_size: Numbers = size, strides: Numbers | None = None,  # type: ignore[misc]
                     padding: Numbers = 0, layout: str = usual, ceil_mode: bool = False, **kwargs: Any) -> None:
            check(layout, pool_size)
            _Pooling.__init__(self, pool_size, strides, padding, ceil_mode, False, pool_type, layout, **kwargs)

    name = f"{'Global' if is_global else ''}{pool_type.capitalize()}Pool{axes}D"
    what = "mean" if pool_type == "avg" else "maximum"
    return type(name, (_Pooling,), {
        "__init__": __init__, "__module__": "mxc.gluon.nn.conv_layers", "__qualname__": name,
        "__doc__": f"The {what} over {'all positions' if is_global else 'windows'} of {axes} "
                   f"{'axis' if axes == 1 else 'axes'}; see `_Pooling`."})


MaxPool1D, GlobalMaxPool1D = (_pooling(1, "NCW NWC", "max", each) for each in (False, True))
MaxPool2D, GlobalMaxPool2D = (_pooling(2, "NCHW NHWC", "max", each) for each in (False, True))
MaxPool3D, GlobalMaxPool3D = (_pooling(3, "NCDHW NDHWC", "max", each) for each in (False, True))
AvgPool1D, GlobalAvgPool1D = (_pooling(1, "NCW NWC", "avg", each) for each in (False, True))
AvgPool2D, GlobalAvgPool2D = (_pooling(2, "NCHW NHWC", "avg", each) for each in (False, True))
AvgPool3D, GlobalAvgPool3D = (_pooling(3, "NCDHW NDHWC", "avg", each) for each in (False, True))


class _BadLayout(ArgumentError, AssertionError):
    """MXNet raises AssertionError."""
