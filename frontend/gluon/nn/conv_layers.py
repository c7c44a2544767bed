"""Layers with windows: convolutions, their transposes, poolings, padding. Their parameters are MXNet's, in its
order."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc import symbol
from mxc.compiler.error import AssertedError
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
    Numbers,
    numbers,
    require_layout,
)

__all__ = ["AvgPool1D", "AvgPool2D", "AvgPool3D", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D",
           "Conv3DTranspose", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D",
           "GlobalMaxPool2D", "GlobalMaxPool3D", "MaxPool1D", "MaxPool2D", "MaxPool3D", "ReflectionPad2D"]

class _Conv(HybridBlock):
    """A convolution, or its transpose, with a bias and an activation.

    channels: of the output. kernel_size, strides, padding, dilation, output_padding: one number for all axes, or one
    for each. groups: of channels that are convolved apart. layout: of the input, as "NCHW". in_channels: 0 for what the
    first input tells. Of this class itself kernel_size has all numbers; op_name is the operator, and adj its
    output_padding. Raises AssertionError for another count of numbers.
    """

    # many parameters: those that the layers below have in common.
    def __init__(self, channels: int, kernel_size: Sequence[int], strides: Numbers, padding: Numbers, dilation: Numbers,
                 groups: int, layout: str, in_channels: int = 0, activation: str | None = None, use_bias: bool = True,
                 weight_initializer: Any = None, bias_initializer: Any = "zeros", op_name: str = "Convolution",
                 adj: Numbers | None = None, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        axes = len(kernel_size)
        with self.name_scope():
            self._channels, self._in_channels, self._op_name = channels, in_channels, op_name
            self._kwargs: dict[str, Any] = {
                "kernel": tuple(kernel_size), "stride": numbers(strides, axes, "strides"),
                "dilate": numbers(dilation, axes, "dilation"), "pad": numbers(padding, axes, "padding"),
                "num_filter": channels, "num_group": groups, "no_bias": not use_bias, "layout": layout}
            if adj is not None:
                self._kwargs["adj"] = numbers(adj, axes, "output_padding")
            self.weight = self.params.get("weight", shape=self._weight_shape(), init=weight_initializer,
                                          allow_deferred_init=True)
            self.bias = self.params.get("bias", shape=(channels,), init=bias_initializer,
                                        allow_deferred_init=True) if use_bias else None
            self.act = Activation(activation, prefix=f"{activation}_") if activation is not None else None

    def _weight_shape(self) -> tuple[int, ...]:
        """What the operator's shape rule says; 0 for what is not known."""
        kwargs, data = self._kwargs, [0] * (len(self._kwargs["kernel"]) + 2)
        data[kwargs["layout"].find("N")], data[kwargs["layout"].find("C")] = 1, self._in_channels
        made = getattr(symbol, self._op_name)(symbol.var("data", shape=data), **kwargs)
        shape = made.infer_shape_partial()[0][1]
        if shape and any(shape):
            return tuple(shape)
        own = (self._channels, self._in_channels // kwargs["num_group"])
        return (own if self._op_name == "Convolution" else own[::-1]) + kwargs["kernel"]

    def _alias(self) -> str:
        return "conv"

    def __repr__(self) -> str:
        kwargs, shape = self._kwargs, self.weight.shape
        assert shape is not None
        text = f"{type(self).__name__}({shape[1] if shape[1] else None} -> {shape[0]}, kernel_size={kwargs['kernel']}"
        text += f", stride={kwargs['stride']}"
        for key, name, usual in (("pad", "padding", 0), ("dilate", "dilation", 1)):
            if kwargs[key] != (usual,) * len(kwargs["kernel"]):
                text += f", {name}={kwargs[key]}"
        text += f", groups={kwargs['num_group']}" if kwargs["num_group"] != 1 else ""
        text += ", bias=False" if self.bias is None else ""
        return text + (f", {self.act}" if self.act else "") + ")"

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """See the class."""
        given = (x, weight) if bias is None else (x, weight, bias)
        out = getattr(F, self._op_name)(*given, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)


class Conv1D(_Conv):
    """A convolution over one axis, of arrays NCW or NWC; see `_Conv`. Raises AssertionError for another layout."""

    # MXNet's signature
    def __init__(self, channels: int, kernel_size: Numbers, strides: Numbers = 1, padding: Numbers = 0,
                 dilation: Numbers = 1, groups: int = 1, layout: str = "NCW", activation: str | None = None,
                 use_bias: bool = True, weight_initializer: Any = None, bias_initializer: Any = "zeros",
                 in_channels: int = 0, **kwargs: Any):
        require_layout(layout, "NCW", "NWC")
        super().__init__(channels, numbers(kernel_size, 1, "kernel_size"), strides, padding, dilation, groups, layout,
                         in_channels, activation, use_bias, weight_initializer, bias_initializer, **kwargs)


class Conv2D(_Conv):
    """A convolution over two axes, of arrays NCHW or NHWC; see `_Conv`. Raises AssertionError for another layout."""

    # MXNet's signature
    def __init__(self, channels: int, kernel_size: Numbers, strides: Numbers = (1, 1), padding: Numbers = (0, 0),
                 dilation: Numbers = (1, 1), groups: int = 1, layout: str = "NCHW", activation: str | None = None,
                 use_bias: bool = True, weight_initializer: Any = None, bias_initializer: Any = "zeros",
                 in_channels: int = 0, **kwargs: Any):
        require_layout(layout, "NCHW", "NHWC")
        super().__init__(channels, numbers(kernel_size, 2, "kernel_size"), strides, padding, dilation, groups, layout,
                         in_channels, activation, use_bias, weight_initializer, bias_initializer, **kwargs)


class Conv3D(_Conv):
    """A convolution over three axes, of arrays NCDHW or NDHWC; see `_Conv`. Raises AssertionError for another
    layout."""

    # MXNet's signature
    def __init__(self, channels: int, kernel_size: Numbers, strides: Numbers = (1, 1, 1), padding: Numbers = (0, 0, 0),
                 dilation: Numbers = (1, 1, 1), groups: int = 1, layout: str = "NCDHW", activation: str | None = None,
                 use_bias: bool = True, weight_initializer: Any = None, bias_initializer: Any = "zeros",
                 in_channels: int = 0, **kwargs: Any):
        require_layout(layout, "NCDHW", "NDHWC")
        super().__init__(channels, numbers(kernel_size, 3, "kernel_size"), strides, padding, dilation, groups, layout,
                         in_channels, activation, use_bias, weight_initializer, bias_initializer, **kwargs)


class Conv1DTranspose(_Conv):
    """The transpose of a convolution over one axis, of arrays NCW or NWC; see `_Conv`. The output has the shape
    of the input of that convolution, and output_padding more. Raises AssertionError for another layout."""

    # MXNet's signature
    def __init__(self, channels: int, kernel_size: Numbers, strides: Numbers = 1, padding: Numbers = 0,
                 output_padding: Numbers = 0, dilation: Numbers = 1, groups: int = 1,
                 layout: str = "NCW", activation: str | None = None, use_bias: bool = True,
                 weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: int = 0, **kwargs: Any):
        require_layout(layout, "NCW", "NWC")
        super().__init__(channels, numbers(kernel_size, 1, "kernel_size"), strides, padding, dilation, groups, layout,
                         in_channels, activation, use_bias, weight_initializer, bias_initializer, "Deconvolution",
                         output_padding, **kwargs)


class Conv2DTranspose(_Conv):
    """The transpose of a convolution over two axes, of arrays NCHW or NHWC; see `_Conv`. The output has the shape
    of the input of that convolution, and output_padding more. Raises AssertionError for another layout."""

    # MXNet's signature
    def __init__(self, channels: int, kernel_size: Numbers, strides: Numbers = (1, 1), padding: Numbers = (0, 0),
                 output_padding: Numbers = (0, 0), dilation: Numbers = (1, 1), groups: int = 1,
                 layout: str = "NCHW", activation: str | None = None, use_bias: bool = True,
                 weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: int = 0, **kwargs: Any):
        require_layout(layout, "NCHW", "NHWC")
        super().__init__(channels, numbers(kernel_size, 2, "kernel_size"), strides, padding, dilation, groups, layout,
                         in_channels, activation, use_bias, weight_initializer, bias_initializer, "Deconvolution",
                         output_padding, **kwargs)


class Conv3DTranspose(_Conv):
    """The transpose of a convolution over three axes, of arrays NCDHW or NDHWC; see `_Conv`. The output has the shape
    of the input of that convolution, and output_padding more. Raises AssertionError for another layout."""

    # MXNet's signature
    def __init__(self, channels: int, kernel_size: Numbers, strides: Numbers = (1, 1, 1), padding: Numbers = (0, 0, 0),
                 output_padding: Numbers = (0, 0, 0), dilation: Numbers = (1, 1, 1), groups: int = 1,
                 layout: str = "NCDHW", activation: str | None = None, use_bias: bool = True,
                 weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: int = 0, **kwargs: Any):
        require_layout(layout, "NCDHW", "NDHWC")
        super().__init__(channels, numbers(kernel_size, 3, "kernel_size"), strides, padding, dilation, groups, layout,
                         in_channels, activation, use_bias, weight_initializer, bias_initializer, "Deconvolution",
                         output_padding, **kwargs)


class ReflectionPad2D(HybridBlock):
    """Pads height and width by reflection at the border. padding: one number, or eight, before and after each axis."""

    def __init__(self, padding: Numbers = 0, **kwargs: Any):
        super().__init__(**kwargs)
        if isinstance(padding, int):
            padding = (0, 0, 0, 0, padding, padding, padding, padding)
        if len(padding) != 8:
            raise AssertedError(f"padding has {len(padding)} numbers; expected one, or 8")
        self._padding = tuple(padding)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """See the class."""
        return F.pad(x, mode="reflect", pad_width=self._padding)
