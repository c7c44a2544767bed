"""Convolutions whose taps are moved by what a convolution of the same input tells."""
from __future__ import annotations

from math import prod
from typing import Any

from mxc.compiler.error import AssertedError
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.nn.activations import Activation
from mxc.gluon.nn.conv_layers import Numbers, numbers
from mxc.gluon.parameter import Parameter

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class DeformableConvolution(HybridBlock):
    """A convolution over two axes, each tap of each window moved by an offset, with a bias and an activation.

    The offsets are what a plain convolution of the same kernel gives, with the parameters `offset_weight` and
    `offset_bias`. kernel_size, strides, padding, dilation: one number for both axes, or two. groups: of channels that
    are convolved apart; num_deformable_group: of channels that have offsets of their own. in_channels: 0 for what the
    first input tells. op_name: the operator. Raises AssertionError for a layout other than NCHW.
    """

    _numbers_per_place = 2  # what the convolution of offsets gives for each tap and group
    deformable_conv_weight: Parameter
    deformable_conv_bias: Parameter | None
    _offsets_first = True  # the order of the parameters is MXNet's, by which trainers and files number them

    # MXNet's signature
    def __init__(self, channels: int, kernel_size: Numbers = (1, 1), strides: Numbers = (1, 1),
                 padding: Numbers = (0, 0), dilation: Numbers = (1, 1), groups: int = 1, num_deformable_group: int = 1,
                 layout: str = "NCHW", use_bias: bool = True, in_channels: int = 0, activation: str | None = None,
                 weight_initializer: Any = None, bias_initializer: Any = "zeros",
                 offset_weight_initializer: Any = "zeros", offset_bias_initializer: Any = "zeros",
                 offset_use_bias: bool = True, op_name: str = "DeformableConvolution", adj: Any = None,
                 prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)
        if layout != "NCHW":
            raise AssertedError(f"the layout of a {type(self).__name__} is NCHW, got {layout!r}")
        self._channels, self._in_channels, self._op_name = channels, in_channels, op_name
        shape: dict[str, Any] = {
            "kernel": numbers(kernel_size, 2, "kernel_size"), "stride": numbers(strides, 2, "strides"),
            "dilate": numbers(dilation, 2, "dilation"), "pad": numbers(padding, 2, "padding"), "layout": layout}
        count = self._numbers_per_place * prod(shape["kernel"]) * num_deformable_group
        self._kwargs_offset = {**shape, "num_filter": count, "num_group": groups, "no_bias": not offset_use_bias}
        self._kwargs = {**shape, "num_filter": channels, "num_group": groups, "no_bias": not use_bias,
                        "num_deformable_group": num_deformable_group}
        with self.name_scope():
            made = [("offset", count, offset_weight_initializer, offset_bias_initializer, offset_use_bias),
                    ("deformable_conv", channels, weight_initializer, bias_initializer, use_bias)]
            for each in made if self._offsets_first else made[::-1]:
                self._parameters_of(*each)
            self.act = Activation(activation, prefix=f"{activation}_") if activation else None

    def _parameters_of(self, name: str, filters: int, weight_init: Any, bias_init: Any, with_bias: bool) -> None:
        """Make the weight and the bias of one of the two convolutions."""
        shape = (filters, self._in_channels // self._kwargs["num_group"], *self._kwargs["kernel"])
        setattr(self, f"{name}_weight", self.params.get(f"{name}_weight", shape=shape, init=weight_init,
                                                        allow_deferred_init=True))
        setattr(self, f"{name}_bias", self.params.get(f"{name}_bias", shape=(filters,), init=bias_init,
                                                      allow_deferred_init=True) if with_bias else None)

    def _alias(self) -> str:
        return "deformable_conv"

    def __repr__(self) -> str:
        shape, kwargs = self.deformable_conv_weight.shape, self._kwargs
        assert shape is not None
        text = f"{type(self).__name__}({shape[1] or None} -> {shape[0]}, kernel_size={kwargs['kernel']}"
        text += f", stride={kwargs['stride']}"
        for key, name, usual in (("pad", "padding", 0), ("dilate", "dilation", 1)):
            if kwargs[key] != (usual, usual):
                text += f", {name}={kwargs[key]}"
        text += f", groups={kwargs['num_group']}" if kwargs["num_group"] != 1 else ""
        text += ", bias=False" if self.deformable_conv_bias is None else ""
        return text + (f", {self.act}" if self.act else "") + ")"

    def hybrid_forward(self, F: Any, x: Any, offset_weight: Any, deformable_conv_weight: Any, offset_bias: Any = None,
                       deformable_conv_bias: Any = None) -> Any:
        """See the class."""
        places = F.Convolution(*_given(x, offset_weight, offset_bias), cudnn_off=True, **self._kwargs_offset)
        given = _given(x, *self._moved(F, places), deformable_conv_weight, deformable_conv_bias)
        out = getattr(F.contrib, self._op_name)(*given, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)

    def _moved(self, F: Any, places: Any) -> tuple[Any, ...]:
        """What the operator takes between data and weight, of what the convolution of offsets gives."""
        return (places,)


class ModulatedDeformableConvolution(DeformableConvolution):
    """A DeformableConvolution that also multiplies what each tap reads, by a number in 0..2 that the convolution of
    offsets gives, behind the offsets."""

    _numbers_per_place = 3
    _offsets_first = False

    # MXNet's signature
    def __init__(self, channels: int, kernel_size: Numbers = (1, 1), strides: Numbers = (1, 1),
                 padding: Numbers = (0, 0), dilation: Numbers = (1, 1), groups: int = 1, num_deformable_group: int = 1,
                 layout: str = "NCHW", use_bias: bool = True, in_channels: int = 0, activation: str | None = None,
                 weight_initializer: Any = None, bias_initializer: Any = "zeros",
                 offset_weight_initializer: Any = "zeros", offset_bias_initializer: Any = "zeros",
                 offset_use_bias: bool = True, op_name: str = "ModulatedDeformableConvolution", adj: Any = None,
                 prefix: str | None = None, params: Any = None):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, num_deformable_group, layout,
                         use_bias, in_channels, activation, weight_initializer, bias_initializer,
                         offset_weight_initializer, offset_bias_initializer, offset_use_bias, op_name, adj, prefix,
                         params)

    def _alias(self) -> str:
        return "modulated_deformable_conv"

    def _moved(self, F: Any, places: Any) -> tuple[Any, ...]:
        offsets = self._kwargs_offset["num_filter"] // 3 * 2
        moved = F.slice_axis(places, axis=1, begin=0, end=offsets)
        return moved, F.sigmoid(F.slice_axis(places, axis=1, begin=offsets, end=None)) * 2


def _given(*inputs: Any) -> list[Any]:
    """The inputs that there are."""
    return [each for each in inputs if each is not None]
