"""Recurrent layers."""
from __future__ import annotations

from mxc.compiler.kernel.ir import FLOATS
from mxc.compiler.ops.shapes.rnn import GATES
from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call

ROWS = 16  # of the batch in a unit of work: for few, the weights come from memory more often; for many, threads wait


def _numbers(c: Context, params: Params, state: int) -> tuple[tuple[int, ...], dict[str, object]]:
    """The integers and constants that both directions of the derivative have."""
    assert c.dtype(0) in FLOATS
    mode, (batch, size) = params.mode, c.shape(state)
    constants: dict[str, object] = {
        "products": GATES[str(mode)], "lstm": mode == "lstm", "gru": mode == "gru", "relu": mode == "rnn_relu",
        "clip": None not in (params.clip_min, params.clip_max), "low": params.clip_min or 0.0,
        "high": params.clip_max or 0.0, "real": c.dtype(0)}
    rows = -(-batch // max(1, -(-batch // ROWS)))
    return (c.shape(0)[0], batch, size, rows, int(params.reverse), int(params.masked)), constants


def rnn_layer(c: Context, params: Params) -> Call:
    """pre (T, N, gates * H), weight, bias, state (N, H), cell, lengths."""
    integers, constants = _numbers(c, params, 3)
    return call("rnn_layer", (*integers, int(params.keep)), clip_nan=params.clip_nan, **constants)


def rnn_layer_grad(c: Context, params: Params) -> Call:
    """out_grad (T, N, H), gradients of the last states (N, H), what rnn_layer kept."""
    integers, constants = _numbers(c, params, 1)
    return call("rnn_layer_grad", integers, **constants)
