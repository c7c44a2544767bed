"""Recurrent cells whose products are convolutions: their states are images."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mxc.compiler.error import AssertedError
from mxc.gluon.nn.poolings import Numbers, numbers
from mxc.gluon.rnn.rnn_cell import HybridRecurrentCell, State

__all__ = ["Conv1DGRUCell", "Conv1DLSTMCell", "Conv1DRNNCell", "Conv2DGRUCell", "Conv2DLSTMCell", "Conv2DRNNCell",
           "Conv3DGRUCell", "Conv3DLSTMCell", "Conv3DRNNCell"]


class _ConvCell(HybridRecurrentCell):
    """A cell whose gates are sums of a convolution of the inputs and one of the last output.

    input_shape: of one example, in `conv_layout` without its N. hidden_channels: of the output and of each state, whose
    other axes are what the first convolution makes of the input's. i2h_kernel, h2h_kernel: of the input and of the last
    output, the latter odd; i2h_pad, i2h_dilate, h2h_dilate: as of a convolution. Each is one number for all axes, or
    one for each. activation: of the output, its name, a layer or a function. Raises AssertionError for another count
    of numbers and for an even h2h_kernel.
    """

    _gates = 1
    _axes = 1

    # MXNet's signature
    def __init__(self, input_shape: Sequence[int], hidden_channels: int, i2h_kernel: Numbers, h2h_kernel: Numbers,
                 i2h_pad: Numbers, i2h_dilate: Numbers, h2h_dilate: Numbers, i2h_weight_initializer: Any,
                 h2h_weight_initializer: Any, i2h_bias_initializer: Any, h2h_bias_initializer: Any, conv_layout: str,
                 activation: Any, prefix: str | None, params: Any):
        super().__init__(prefix=prefix, params=params)
        self._hidden_channels, self._conv_layout, self._activation = hidden_channels, conv_layout, activation
        self._input_shape = tuple(input_shape)
        sizes = {name: numbers(given, self._axes, name) for name, given in (
            ("i2h_kernel", i2h_kernel), ("h2h_kernel", h2h_kernel), ("i2h_pad", i2h_pad), ("i2h_dilate", i2h_dilate),
            ("h2h_dilate", h2h_dilate))}
        kernel, dilate = sizes["h2h_kernel"], sizes["h2h_dilate"]
        if any(extent % 2 == 0 for extent in kernel):
            raise AssertedError(f"h2h_kernel is {h2h_kernel}; expected odd numbers, so that states keep their size")
        channel = conv_layout.find("C") - 1
        self._in_channels = self._input_shape[channel]
        self._i2h = {"kernel": sizes["i2h_kernel"], "pad": sizes["i2h_pad"], "dilate": sizes["i2h_dilate"]}
        self._h2h = {"kernel": kernel, "dilate": dilate,
                     "pad": tuple(d * (k - 1) // 2 for d, k in zip(dilate, kernel, strict=True))}
        self._state_shape = self._made_shape(channel)
        rows = self._gates * hidden_channels
        self._make_parameters(
            i2h_weight=(self._weight_shape(rows, self._in_channels, self._i2h["kernel"]), i2h_weight_initializer),
            h2h_weight=(self._weight_shape(rows, hidden_channels, kernel), h2h_weight_initializer),
            i2h_bias=((rows,), i2h_bias_initializer), h2h_bias=((rows,), h2h_bias_initializer))

    def _made_shape(self, channel: int) -> tuple[int, ...]:
        """The shape of one example's state."""
        places = list(self._input_shape)
        places.pop(channel)
        made = [extent + 2 * pad - dilate * (kernel - 1) for extent, pad, dilate, kernel in zip(
            places, self._i2h["pad"], self._i2h["dilate"], self._i2h["kernel"], strict=True)]
        made.insert(channel, self._hidden_channels)
        return tuple(made)

    def _weight_shape(self, rows: int, channels: int, kernel: Sequence[int]) -> tuple[int, ...]:
        """The layout of a weight is the data's, with rows in place of the batch."""
        shape = list(kernel)
        shape.insert(self._conv_layout.find("C") - 1, channels)
        return (rows, *shape)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return [{"shape": (batch_size, *self._state_shape), "__layout__": self._conv_layout}]

    def __repr__(self) -> str:
        rows = self.i2h_weight.shape[0]  # type: ignore[attr-defined]
        return f"{type(self).__name__}({self._in_channels} -> {rows}, {self._activation}, {self._conv_layout})"

    def _convolved(self, F: Any, inputs: Any, state: Any, weights: Sequence[Any]) -> tuple[Any, Any, str]:
        """Both convolutions, and what the names of the step's symbols begin with."""
        prefix, rows = f"t{self._counter}_", self._gates * self._hidden_channels
        i2h_weight, h2h_weight, i2h_bias, h2h_bias = weights
        shared = {"num_filter": rows, "layout": self._conv_layout}
        i2h = F.Convolution(data=inputs, weight=i2h_weight, bias=i2h_bias, name=f"{prefix}i2h", **self._i2h, **shared)
        h2h = F.Convolution(data=state, weight=h2h_weight, bias=h2h_bias, name=f"{prefix}h2h", **self._h2h, **shared)
        return i2h, h2h, prefix


class _ConvRNNCell(_ConvCell):
    """out = activation(conv(inputs) + conv(out))."""

    def _alias(self) -> str:
        return "conv_rnn"

    def hybrid_forward(self, F: Any, inputs: Any, states: State, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See the class."""
        i2h, h2h, prefix = self._convolved(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        output = self._activated(F, i2h + h2h, self._activation, name=f"{prefix}out")
        return output, [output]


class _ConvLSTMCell(_ConvCell):
    """An LSTMCell with convolutions (arXiv 1506.04214). States: the output and the memory."""

    _gates = 4

    def _alias(self) -> str:
        return "conv_lstm"

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return super().state_info(batch_size) * 2

    def hybrid_forward(self, F: Any, inputs: Any, states: State, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See the class."""
        i2h, h2h, prefix = self._convolved(F, inputs, states[0], (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, axis=self._conv_layout.find("C"), name=f"{prefix}slice")
        takes, keeps, shows = (F.Activation(gates[i], act_type="sigmoid", name=f"{prefix}{gate}")
                               for i, gate in ((0, "i"), (1, "f"), (3, "o")))
        candidate = self._activated(F, gates[2], self._activation, name=f"{prefix}c")
        memory = F.elemwise_add(keeps * states[1], takes * candidate, name=f"{prefix}state")
        output = F.elemwise_mul(shows, self._activated(F, memory, self._activation), name=f"{prefix}out")
        return output, [output, memory]


class _ConvGRUCell(_ConvCell):
    """A GRUCell with convolutions."""

    _gates = 3

    def _alias(self) -> str:
        return "conv_gru"

    def hybrid_forward(self, F: Any, inputs: Any, states: State, i2h_weight: Any, h2h_weight: Any, i2h_bias: Any,
                       h2h_bias: Any) -> Any:
        """See the class."""
        before, axis = states[0], self._conv_layout.find("C")
        i2h, h2h, prefix = self._convolved(F, inputs, before, (i2h_weight, h2h_weight, i2h_bias, h2h_bias))
        i2h_r, i2h_z, i2h_c = F.SliceChannel(i2h, num_outputs=3, axis=axis, name=f"{prefix}i2h_slice")
        h2h_r, h2h_z, h2h_c = F.SliceChannel(h2h, num_outputs=3, axis=axis, name=f"{prefix}h2h_slice")
        reset = F.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{prefix}r_act")
        update = F.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{prefix}z_act")
        candidate = self._activated(F, i2h_c + reset * h2h_c, self._activation, name=f"{prefix}h_act")
        output = F.elemwise_add((1. - update) * candidate, update * before, name=f"{prefix}out")
        return output, [output]


class _Conv1DCell(_ConvCell):
    """What the cells with convolutions over 1 axis have in common."""

    _axes = 1

    # MXNet's signature
    def __init__(self, input_shape: Sequence[int], hidden_channels: int, i2h_kernel: Numbers, h2h_kernel: Numbers,
                 i2h_pad: Numbers = (0,), i2h_dilate: Numbers = (1,), h2h_dilate: Numbers = (1,),
                 i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
                 i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", conv_layout: str = "NCW",
                 activation: Any = "tanh", prefix: str | None = None, params: Any = None):
        super().__init__(input_shape, hidden_channels, i2h_kernel, h2h_kernel, i2h_pad, i2h_dilate, h2h_dilate,
                         i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer,
                         conv_layout, activation, prefix, params)


class _Conv2DCell(_ConvCell):
    """What the cells with convolutions over 2 axes have in common."""

    _axes = 2

    # MXNet's signature
    def __init__(self, input_shape: Sequence[int], hidden_channels: int, i2h_kernel: Numbers, h2h_kernel: Numbers,
                 i2h_pad: Numbers = (0, 0), i2h_dilate: Numbers = (1, 1), h2h_dilate: Numbers = (1, 1),
                 i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
                 i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", conv_layout: str = "NCHW",
                 activation: Any = "tanh", prefix: str | None = None, params: Any = None):
        super().__init__(input_shape, hidden_channels, i2h_kernel, h2h_kernel, i2h_pad, i2h_dilate, h2h_dilate,
                         i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer,
                         conv_layout, activation, prefix, params)


class _Conv3DCell(_ConvCell):
    """What the cells with convolutions over 3 axes have in common."""

    _axes = 3

    # MXNet's signature
    def __init__(self, input_shape: Sequence[int], hidden_channels: int, i2h_kernel: Numbers, h2h_kernel: Numbers,
                 i2h_pad: Numbers = (0, 0, 0), i2h_dilate: Numbers = (1, 1, 1), h2h_dilate: Numbers = (1, 1, 1),
                 i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
                 i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", conv_layout: str = "NCDHW",
                 activation: Any = "tanh", prefix: str | None = None, params: Any = None):
        super().__init__(input_shape, hidden_channels, i2h_kernel, h2h_kernel, i2h_pad, i2h_dilate, h2h_dilate,
                         i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer,
                         conv_layout, activation, prefix, params)


class Conv1DRNNCell(_Conv1DCell, _ConvRNNCell):
    """A cell with convolutions over 1 axis; see _ConvRNNCell and _ConvCell."""


class Conv2DRNNCell(_Conv2DCell, _ConvRNNCell):
    """A cell with convolutions over 2 axes; see _ConvRNNCell and _ConvCell."""


class Conv3DRNNCell(_Conv3DCell, _ConvRNNCell):
    """A cell with convolutions over 3 axes; see _ConvRNNCell and _ConvCell."""


class Conv1DLSTMCell(_Conv1DCell, _ConvLSTMCell):
    """A cell with convolutions over 1 axis; see _ConvLSTMCell and _ConvCell."""


class Conv2DLSTMCell(_Conv2DCell, _ConvLSTMCell):
    """A cell with convolutions over 2 axes; see _ConvLSTMCell and _ConvCell."""


class Conv3DLSTMCell(_Conv3DCell, _ConvLSTMCell):
    """A cell with convolutions over 3 axes; see _ConvLSTMCell and _ConvCell."""


class Conv1DGRUCell(_Conv1DCell, _ConvGRUCell):
    """A cell with convolutions over 1 axis; see _ConvGRUCell and _ConvCell."""


class Conv2DGRUCell(_Conv2DCell, _ConvGRUCell):
    """A cell with convolutions over 2 axes; see _ConvGRUCell and _ConvCell."""


class Conv3DGRUCell(_Conv3DCell, _ConvGRUCell):
    """A cell with convolutions over 3 axes; see _ConvGRUCell and _ConvCell."""
