"""Recurrent cells over images: their layers are convolutions."""
from __future__ import annotations

import functools
from typing import Any

from mxc import symbol
from mxc.compiler.error import ArgumentError
from mxc.rnn.rnn_cell import BaseRNNCell, GRUCell, LSTMCell, RNNParams, States, gru_step, lstm_step, plain_step
from mxc.symbol import Symbol

Pair = tuple[int, int]
_LEAKY = functools.partial(symbol.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(BaseRNNCell):
    """The base of the cells over images.

    input_shape: the shape of the input of one step, the batch included (any number there). num_hidden: channels of the
    output. i2h_kernel, i2h_stride, i2h_pad, i2h_dilate: parameters of the input's convolution. h2h_kernel, h2h_dilate:
    those of the state's convolution, which keeps the extents. The initializers are for weights and biases: an
    initializer or the name of one. activation: a name or a function of a symbol. conv_layout: a layout such as NCHW.
    prefix, params: see `BaseRNNCell`.
    Raises ValueError for an h2h_kernel of even extents.
    """

    # MXNet's signature
    def __init__(self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair, h2h_dilate: Pair,
                 i2h_kernel: Pair, i2h_stride: Pair, i2h_pad: Pair, i2h_dilate: Pair, i2h_weight_initializer: Any,
                 h2h_weight_initializer: Any, i2h_bias_initializer: Any, h2h_bias_initializer: Any, activation: Any,
                 prefix: str = "", params: RNNParams | None = None, conv_layout: str = "NCHW"):
        super().__init__(prefix, params)
        if not all(extent % 2 for extent in h2h_kernel):
            raise ArgumentError("h2h_kernel must have odd extents, so that the state keeps its shape; got "
                                f"{h2h_kernel}")
        self._num_hidden, self._conv_layout, self._activation = num_hidden, conv_layout, activation
        self._i2h = {"kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate}
        self._h2h = {"kernel": h2h_kernel, "stride": (1, 1), "dilate": h2h_dilate, "pad": tuple(
            dilate * (extent - 1) // 2 for dilate, extent in zip(h2h_dilate, h2h_kernel, strict=True))}
        # The extents of the state are those of the convolution of the input of one step.
        _, (shape,), _ = symbol.Convolution(data=symbol.Variable("data"), num_filter=num_hidden, layout=conv_layout,
                                            **self._i2h).infer_shape(data=input_shape)
        self._state_shape = (0, *shape[1:])
        self._iW = self.params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self.params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self.params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self.params.get("h2h_bias", init=h2h_bias_initializer)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [{"shape": self._state_shape, "__layout__": self._conv_layout}]

    def _layers(self, name: str, inputs: Symbol, state: Symbol) -> tuple[Symbol, Symbol]:
        """The convolutions of the input and of the state, for all gates."""
        size = {"num_filter": self._num_hidden * self._num_gates, "layout": self._conv_layout}
        return (symbol.Convolution(data=inputs, weight=self._iW, bias=self._iB, name=f"{name}i2h", **self._i2h, **size),
                symbol.Convolution(data=state, weight=self._hW, bias=self._hB, name=f"{name}h2h", **self._h2h, **size))


class ConvRNNCell(BaseConvRNNCell):
    """A simple recurrent cell over images, like `RNNCell`; the arguments are those of `BaseConvRNNCell`."""

    _gate_names = ("",)

    # MXNet's signature
    def __init__(self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair = (3, 3),
                 h2h_dilate: Pair = (1, 1), i2h_kernel: Pair = (3, 3), i2h_stride: Pair = (1, 1),
                 i2h_pad: Pair = (1, 1), i2h_dilate: Pair = (1, 1), i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", activation: Any = _LEAKY, prefix: str = "ConvRNN_",
                 params: RNNParams | None = None, conv_layout: str = "NCHW"):
        super().__init__(input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate,
                         i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer,
                         activation, prefix, params, conv_layout)

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        return plain_step(self, inputs, states, self._activation)


class ConvLSTMCell(BaseConvRNNCell):
    """Long short-term memory over images, like `LSTMCell`; the arguments are those of `BaseConvRNNCell`."""

    _gate_names = LSTMCell._gate_names

    # MXNet's signature
    def __init__(self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair = (3, 3),
                 h2h_dilate: Pair = (1, 1), i2h_kernel: Pair = (3, 3), i2h_stride: Pair = (1, 1),
                 i2h_pad: Pair = (1, 1), i2h_dilate: Pair = (1, 1), i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", activation: Any = _LEAKY, prefix: str = "ConvLSTM_",
                 params: RNNParams | None = None, conv_layout: str = "NCHW"):
        super().__init__(input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate,
                         i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer,
                         activation, prefix, params, conv_layout)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return super().state_info * 2

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        return lstm_step(self, inputs, states, self._activation, axis=self._conv_layout.find("C"))


class ConvGRUCell(BaseConvRNNCell):
    """A gated recurrent unit over images, like `GRUCell`; the arguments are those of `BaseConvRNNCell`."""

    _gate_names = GRUCell._gate_names

    # MXNet's signature
    def __init__(self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair = (3, 3),
                 h2h_dilate: Pair = (1, 1), i2h_kernel: Pair = (3, 3), i2h_stride: Pair = (1, 1),
                 i2h_pad: Pair = (1, 1), i2h_dilate: Pair = (1, 1), i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", activation: Any = _LEAKY, prefix: str = "ConvGRU_",
                 params: RNNParams | None = None, conv_layout: str = "NCHW"):
        super().__init__(input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate,
                         i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer,
                         activation, prefix, params, conv_layout)

    def __call__(self, inputs: Symbol, states: States) -> tuple[Symbol, States]:
        channels = self._conv_layout.find("C")
        axis = {} if channels == 1 else {"axis": channels}  # MXNet does not write the default to files.
        return gru_step(self, inputs, states, self._activation, "", **axis)
