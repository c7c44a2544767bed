"""Layers with windows: convolutions, their transposes, poolings, padding."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc import symbol
from mxc.compiler.error import ArgumentError
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.nn.activations import Activation
from mxc.gluon.nn.poolings import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
)

__all__ = ["AvgPool1D", "AvgPool2D", "AvgPool3D", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D",
           "Conv3DTranspose", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D",
           "GlobalMaxPool2D", "GlobalMaxPool3D", "MaxPool1D", "MaxPool2D", "MaxPool3D", "ReflectionPad2D"]

Numbers = int | Sequence[int]


class _Conv(HybridBlock):
    """A convolution, or its transpose, with a bias and an activation.

    channels: of the output. kernel_size, strides, padding, dilation, output_padding: one number for all axes, or one
    for each. groups: of channels that are convolved apart. layout: of the input, as "NCHW". in_channels: 0 for what the
    first input tells.
    """

    _operator = "Convolution"
    _axes = 2

    def __init__(self, channels: int, kernel_size: Numbers, strides: Numbers, padding: Numbers, dilation: Numbers,
                 groups: int, layout: str, in_channels: int = 0, activation: str | None = None, use_bias: bool = True,
                 weight_initializer: Any = None, bias_initializer: Any = "zeros", output_padding: Numbers | None = None,
                 prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        kernel = _numbers(kernel_size, self._axes, "kernel_size")
        with self.name_scope():
            self._channels, self._in_channels = channels, in_channels
            self._kwargs: dict[str, Any] = {
                "kernel": kernel, "stride": _numbers(strides, self._axes, "strides"),
                "dilate": _numbers(dilation, self._axes, "dilation"), "pad": _numbers(padding, self._axes, "padding"),
                "num_filter": channels, "num_group": groups, "no_bias": not use_bias, "layout": layout}
            if output_padding is not None:
                self._kwargs["adj"] = _numbers(output_padding, self._axes, "output_padding")
            self.weight = self.params.get("weight", shape=self._weight_shape(), init=weight_initializer,
                                          allow_deferred_init=True)
            self.bias = self.params.get("bias", shape=(channels,), init=bias_initializer,
                                        allow_deferred_init=True) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation is not None else None

    def _weight_shape(self) -> tuple[int, ...]:
        """What the operator's shape rule says; 0 for what is not known."""
        kwargs, data = self._kwargs, [0] * (self._axes + 2)
        data[kwargs["layout"].find("N")], data[kwargs["layout"].find("C")] = 1, self._in_channels
        made = getattr(symbol, self._operator)(symbol.var("data", shape=data), **kwargs)
        shape = made.infer_shape_partial()[0][1]
        if shape and any(shape):
            return tuple(shape)
        own = (self._channels, self._in_channels // kwargs["num_group"])
        return (own if self._operator == "Convolution" else own[::-1]) + kwargs["kernel"]

    def _alias(self) -> str:
        return "conv"

    def __repr__(self) -> str:
        kwargs, shape = self._kwargs, self.weight.shape
        text = f"{type(self).__name__}({shape[1] if shape[1] else None} -> {shape[0]}, kernel_size={kwargs['kernel']}"
        text += f", stride={kwargs['stride']}"
        for key, name, usual in (("pad", "padding", 0), ("dilate", "dilation", 1)):
            if kwargs[key] != (usual,) * self._axes:
                text += f", {name}={kwargs[key]}"
        text += f", groups={kwargs['num_group']}" if kwargs["num_group"] != 1 else ""
        text += ", bias=False" if self.bias is None else ""
        return text + (f", {self.act}" if self.act else "") + ")"

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """See the class."""
        given = (x, weight) if bias is None else (x, weight, bias)
        out = getattr(F, self._operator)(*given, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)


def _numbers(value: Numbers, count: int, name: str) -> tuple[int, ...]:
    """A number for each axis. Raises AssertionError for another count of numbers."""
    found = (value,) * count if isinstance(value, int) else tuple(value)
    if len(found) != count:
        raise _BadSize(f"{name} has {len(found)} numbers; expected one, or {count}")
    return found


def _convolution(axes: int, layouts: str, is_transpose: bool) -> Any:
    """The class of convolutions over `axes` axes."""
    one, zero = ((1,) * axes, (0,) * axes) if axes > 1 else (1, 0)
    usual = layouts.split()[0]

    def check(layout: str) -> None:
        if layout not in layouts.split():
            raise _BadSize(f"layout is {layout!r}; expected {' or '.join(layouts.split())}")

    if is_transpose:
        def __init__(self: Any, channels: int, kernel_size: Numbers, strides: Numbers = one, padding: Numbers = zero,
                     output_padding: Numbers = zero, dilation: Numbers = one, groups: int = 1, layout: str = usual,
                     activation: str | None = None, use_bias: bool = True, weight_initializer: Any = None,
                     bias_initializer: Any = "zeros", in_channels: int = 0, **kwargs: Any) -> None:
            check(layout)
            _Conv.__init__(self, channels, kernel_size, strides, padding, dilation, groups, layout, in_channels,
                           activation, use_bias, weight_initializer, bias_initializer, output_padding, **kwargs)
    else:
        def __init__(self: Any, channels: int, kernel_size: Numbers, strides: Numbers = one, padding: Numbers = zero,  # type: ignore[misc]
                     dilation: Numbers = one, groups: int = 1, layout: str = usual, activation: str | None = None,
                     use_bias: bool = True, weight_initializer: Any = None, bias_initializer: Any = "zeros",
                     in_channels: int = 0, **kwargs: Any) -> None:
            check(layout)
            _Conv.__init__(self, channels, kernel_size, strides, padding, dilation, groups, layout, in_channels,
                           activation, use_bias, weight_initializer, bias_initializer, **kwargs)

    name = f"Conv{axes}D{'Transpose' if is_transpose else ''}"
    what = "transpose of a convolution" if is_transpose else "convolution"
    return type(name, (_Conv,), {
        "__init__": __init__, "__module__": __name__, "__qualname__": name, "_axes": axes,
        "_operator": "Deconvolution" if is_transpose else "Convolution",
        "__doc__": f"The {what} over {axes} {'axis' if axes == 1 else 'axes'}; see `_Conv`."})


Conv1D, Conv1DTranspose = _convolution(1, "NCW NWC", False), _convolution(1, "NCW NWC", True)
Conv2D, Conv2DTranspose = _convolution(2, "NCHW NHWC", False), _convolution(2, "NCHW NHWC", True)
Conv3D, Conv3DTranspose = _convolution(3, "NCDHW NDHWC", False), _convolution(3, "NCDHW NDHWC", True)


class ReflectionPad2D(HybridBlock):
    """Pads height and width by reflection at the border. padding: one number, or eight, before and after each axis."""

    def __init__(self, padding: Numbers = 0, **kwargs: Any):
        super().__init__(**kwargs)
        if isinstance(padding, int):
            padding = (0, 0, 0, 0, padding, padding, padding, padding)
        if len(padding) != 8:
            raise _BadSize(f"padding has {len(padding)} numbers; expected one, or 8")
        self._padding = tuple(padding)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.pad(x, mode="reflect", pad_width=self._padding)


class _BadSize(ArgumentError, AssertionError):
    """MXNet raises AssertionError."""
