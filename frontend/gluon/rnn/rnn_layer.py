"""Recurrent layers, which read whole sequences: one operator for all steps and layers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc import ndarray, symbol
from mxc.compiler.error import ArgumentError, AssertedError
from mxc.compiler.ops.dtypes import dtype_name
from mxc.gluon.hybrid_block import HybridBlock
from mxc.gluon.parameter import Parameter
from mxc.ndarray import NDArray

__all__ = ["GRU", "LSTM", "RNN"]


class _RNNLayer(HybridBlock):
    """One or more layers of recurrent cells. `layer(inputs)` gives the outputs, `layer(inputs, states)` those and the
    states after the last step.

    inputs: (T, N, C), or (N, T, C) in the layout "NTC". hidden_size: of the outputs. dropout: of each layer's outputs
    but the last one's. input_size: 0 for what the first input tells. use_sequence_length: each call is given the number
    of steps of each example, (N,). Raises AssertionError for another layout.
    """

    # many parameters: those that the layers below have in common.
    def __init__(self, mode: str, gates: int, hidden_size: int, num_layers: int, layout: str, dropout: float,
                 bidirectional: bool, input_size: int, initializers: dict[str, Any], dtype: Any,
                 projection_size: int | None = None, clips: tuple[Any, Any, bool] = (None, None, False),
                 use_sequence_length: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        if layout not in ("TNC", "NTC"):
            raise AssertedError(f"layout is {layout!r}; expected 'TNC' or 'NTC'")
        self._hidden_size, self._projection_size, self._num_layers = hidden_size, projection_size, num_layers
        self._mode, self._layout, self._dropout, self._dtype = mode, layout, dropout, dtype
        self._dir, self._input_size, self._gates = 2 if bidirectional else 1, input_size, gates
        self._clip_min, self._clip_max, self._clip_nan = clips
        self._use_sequence_length = use_sequence_length
        size = input_size
        for layer in range(num_layers):
            for side in "lr"[:self._dir]:
                for name, shape in self._shapes(size).items():
                    param = self.params.get(f"{side}{layer}_{name}", shape=shape, init=initializers[name],
                                            allow_deferred_init=True, dtype=dtype)
                    setattr(self, f"{side}{layer}_{name}", param)
            size = (projection_size or hidden_size) * self._dir

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """Of the parameters of one layer and direction, for inputs of `size`."""
        rows = self._gates * self._hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "i2h_weight": (rows, size), "h2h_weight": (rows, self._projection_size or self._hidden_size),
            "i2h_bias": (rows,), "h2h_bias": (rows,)}
        if self._projection_size:
            shapes["h2r_weight"] = (self._projection_size, self._hidden_size)
        return shapes

    def __repr__(self) -> str:
        shape = self.l0_i2h_weight.shape  # type: ignore[attr-defined]
        text = f"{shape[1] if shape[1] else None} -> {shape[0] // self._gates}, {self._layout}"
        text += f", num_layers={self._num_layers}" if self._num_layers != 1 else ""
        text += f", dropout={self._dropout}" if self._dropout != 0 else ""
        text += ", bidirectional" if self._dir == 2 else ""
        return f"{type(self).__name__}({text})"

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """The paths in MXNet's files are those of cells one above the other, as "_unfused.0.l_cell.i2h_weight"."""
        start, found = f"{prefix}." if prefix else "", {}
        for name, param in self._reg_params.items():
            side, layer, rest = name[0], *name[1:].split("_", 1)
            cell = f"{side}_cell." if self._dir == 2 else ""
            found[f"{start}_unfused.{layer}.{cell}{rest}"] = param
        return found

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape, layout and dtype of each state."""
        return [{"shape": (self._num_layers * self._dir, batch_size, self._projection_size or self._hidden_size),
                 "__layout__": "LNC", "dtype": self._dtype}]

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = ndarray.zeros, **kwargs: Any) -> list[Any]:
        """The states before the first step: zeros, or what `func` gives."""
        states = []
        for i, info in enumerate(self.state_info(batch_size)):
            given = {**info, **kwargs}
            given.pop("__layout__", None)
            states.append(func(name=f"{self.prefix}h0_{i}", **given) if func is not ndarray.zeros else func(**given))
        return states

    def cast(self, dtype: Any) -> None:
        """Cast the parameters, and the states that it begins with."""
        super().cast(dtype)
        self._dtype = dtype_name(dtype)

    def __call__(self, inputs: Any, states: Any = None,  # type: ignore[override]  # a call without states
                 sequence_length: Any = None, **kwargs: Any) -> Any:
        """The outputs, and the states after the last step where states are given.

        sequence_length: of each example, (N,), for a layer that was made with use_sequence_length.
        """
        skips = states is None
        if skips:
            states = self._zeros(inputs)
        if isinstance(states, (NDArray, symbol.Symbol)):
            states = [states]
        if (sequence_length is not None) != self._use_sequence_length:
            raise ArgumentError(f"{self.name}: sequence_length is given, exactly if the layer is made with "
                                "use_sequence_length=True")
        lengths = [sequence_length] if self._use_sequence_length else []
        outputs, states = super().__call__(inputs, states, *lengths)
        return outputs if skips else (outputs, states)

    def _zeros(self, inputs: Any) -> list[Any]:
        if isinstance(inputs, NDArray):
            batch_size = inputs.shape[self._layout.find("N")]
            return self.begin_state(batch_size, ctx=inputs.context, dtype=inputs.dtype)
        return self.begin_state(0, func=symbol.zeros)

    def _finish_deferred(self, args: Any) -> None:
        """The inputs' size tells all shapes."""
        size = args[0].shape[2]
        for layer in range(self._num_layers):
            for side in "lr"[:self._dir]:
                for name, shape in self._shapes(size).items():
                    getattr(self, f"{side}{layer}_{name}").shape = shape
            size = (self._projection_size or self._hidden_size) * self._dir
        for param in self.params.values():
            param._finish_deferred_init()

    def hybrid_forward(self, F: Any, inputs: Any, states: Any,  # type: ignore[override]  # it takes no more
                       sequence_length: Any = None, **kwargs: Any) -> Any:
        """See the class."""
        if F is ndarray:
            self._check(inputs, states)
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, 0, 1)
        order = [f"{side}{layer}_{name}" for kind in (("i2h_weight", "h2h_weight"), ("i2h_bias", "h2h_bias"))
                 for layer in range(self._num_layers) for side in "lr"[:self._dir]
                 for name in (*kind, *(["h2r_weight"] if self._projection_size and kind[0] == "i2h_weight" else []))]
        flat = [kwargs[name].reshape(-1) for name in order]
        params = F._internal._rnn_param_concat(*flat, dim=0)
        lengths = [] if sequence_length is None else [sequence_length]
        made = F.RNN(inputs, params, *states, *lengths, state_size=self._hidden_size, num_layers=self._num_layers,
                     bidirectional=self._dir == 2, p=self._dropout, state_outputs=True, mode=self._mode,
                     projection_size=self._projection_size, use_sequence_length=self._use_sequence_length,
                     lstm_state_clip_min=self._clip_min, lstm_state_clip_max=self._clip_max,
                     lstm_state_clip_nan=self._clip_nan)
        outputs, *new = made
        if self._layout == "NTC":
            outputs = F.swapaxes(outputs, 0, 1)
        return outputs, new

    def _check(self, inputs: Any, states: Any) -> None:
        batch_size = inputs.shape[self._layout.find("N")]
        for state, info in zip(states, self.state_info(batch_size), strict=False):
            if state.shape != info["shape"]:
                raise AssertedError(f"{self.name}: a state has the shape {state.shape}; expected {info['shape']}")


def _initializers(i2h_weight: Any, h2h_weight: Any, i2h_bias: Any, h2h_bias: Any, h2r_weight: Any = None) -> dict:
    return {"i2h_weight": i2h_weight, "h2h_weight": h2h_weight, "i2h_bias": i2h_bias, "h2h_bias": h2h_bias,
            "h2r_weight": h2r_weight}


class RNN(_RNNLayer):
    """Layers of RNNCell's kind. activation: "relu" or "tanh". See `_RNNLayer`."""

    # MXNet's signature
    def __init__(self, hidden_size: int, num_layers: int = 1, activation: str = "relu", layout: str = "TNC",
                 dropout: float = 0, bidirectional: bool = False, i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", input_size: int = 0, dtype: Any = "float32", **kwargs: Any):
        super().__init__(f"rnn_{activation}", 1, hidden_size, num_layers, layout, dropout, bidirectional, input_size,
                         _initializers(i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                                       h2h_bias_initializer), dtype, **kwargs)


class LSTM(_RNNLayer):
    """Layers of LSTMCell's kind. projection_size: the output is projected to this size (arXiv 1402.1128).
    state_clip_min, state_clip_max: bounds of the memory. See `_RNNLayer`."""

    # MXNet's signature
    def __init__(self, hidden_size: int, num_layers: int = 1, layout: str = "TNC", dropout: float = 0,
                 bidirectional: bool = False, input_size: int = 0, i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", projection_size: int | None = None,
                 h2r_weight_initializer: Any = None, state_clip_min: float | None = None,
                 state_clip_max: float | None = None, state_clip_nan: bool = False, dtype: Any = "float32",
                 **kwargs: Any):
        super().__init__("lstm", 4, hidden_size, num_layers, layout, dropout, bidirectional, input_size,
                         _initializers(i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                                       h2h_bias_initializer, h2r_weight_initializer), dtype, projection_size,
                         (state_clip_min, state_clip_max, state_clip_nan), **kwargs)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape, layout and dtype of each state."""
        (output,) = super().state_info(batch_size)
        return [output, {**output, "shape": (self._num_layers * self._dir, batch_size, self._hidden_size)}]


class GRU(_RNNLayer):
    """Layers of GRUCell's kind. See `_RNNLayer`."""

    # MXNet's signature
    def __init__(self, hidden_size: int, num_layers: int = 1, layout: str = "TNC", dropout: float = 0,
                 bidirectional: bool = False, input_size: int = 0, i2h_weight_initializer: Any = None,
                 h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
                 h2h_bias_initializer: Any = "zeros", dtype: Any = "float32", **kwargs: Any):
        super().__init__("gru", 3, hidden_size, num_layers, layout, dropout, bidirectional, input_size,
                         _initializers(i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer,
                                       h2h_bias_initializer), dtype, **kwargs)
