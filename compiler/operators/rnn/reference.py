"""The reference of recurrent layers, computed one step after the other in float64.
"""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.linear.reference import unpacked
from mxc.compiler.operators.rnn.shape import directions, dropped, output_size, pieces
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

NONE = np.zeros(1)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _clipped(c: np.ndarray, low: float | None, high: float | None, nan: bool) -> np.ndarray:
    """The cell state between low and high, where both are given; NaN, which `nan` does not let pass, is low."""
    if low is None or high is None:
        return c
    return np.clip(np.where(np.isnan(c) & nan, low, c), low, high)


def _cell(params: Params, x: np.ndarray, r: np.ndarray, h: np.ndarray, c: np.ndarray | None,
          ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """One step from the gates' sums of the input (x) and of the recurrent part (r): new h, new c, what is kept."""
    if params.mode == "lstm":
        i, f, g, o = np.split(x + r, 4, axis=1)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        new = _clipped(f * c + i * g, params.clip_min, params.clip_max, bool(params.clip_nan))
        return o * np.tanh(new), new, np.concatenate([i, f, g, o], 1)
    if params.mode == "gru":
        (xr, xz, xn), (rr, rz, rn) = np.split(x, 3, axis=1), np.split(r, 3, axis=1)
        reset, update = _sigmoid(xr + rr), _sigmoid(xz + rz)
        n = np.tanh(xn + reset * rn)
        return (1 - update) * n + update * h, None, np.concatenate([reset, update, n, rn], 1)
    y = np.maximum(x + r, 0) if params.mode == "rnn_relu" else np.tanh(x + r)
    return y, None, y


def _order(params: Params, steps: int) -> list[int]:
    return list(range(steps))[::-1 if params.reverse else 1]


def rnn_layer(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """All steps of one direction of one layer. Beyond a row's length the output is 0 and its states stay."""
    pre, weight, bias, h, c, lengths = (a.astype(np.float64) for a in inputs)
    weight, lstm = unpacked(weight, len(bias))[0].T, params.mode == "lstm"
    out, gates, cells = [NONE] * len(pre), [NONE] * len(pre), [NONE] * len(pre)
    for t in _order(params, len(pre)):
        new_h, new_c, kept = _cell(params, pre[t], h @ weight + bias, h, c if lstm else None)
        inside = (t < np.trunc(lengths))[:, None] if params.masked else np.ones((len(h), 1), bool)
        out[t], h = np.where(inside, new_h, 0), np.where(inside, new_h, h)
        gates[t] = np.where(inside, kept, 0)
        if lstm:
            assert new_c is not None
            cells[t] = c = np.where(inside, new_c, c)
    keep = params.keep
    return [np.stack(out), h, c if lstm else NONE, np.stack(gates) if keep and params.mode in ("lstm", "gru") else NONE,
            np.stack(cells) if keep and lstm else NONE]


def rnn_layer_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                   ) -> list[np.ndarray]:
    """The chain rule, from the last step that was done to the first."""
    og, dh, dc, gates, cells, out, h0, c0, weight, lengths = (a.astype(np.float64) for a in inputs)
    weight, order = unpacked(weight, og.shape[2])[0].T, _order(params, len(og))
    pre_grad, rec_grad, previous = [NONE] * len(og), [NONE] * len(og), [NONE] * len(og)
    lstm, gru = params.mode == "lstm", params.mode == "gru"
    for place in range(len(order) - 1, -1, -1):
        t, before = order[place], order[place - 1]
        inside = (t < np.trunc(lengths))[:, None] if params.masked else np.ones((len(dh), 1), bool)
        begins = np.full(inside.shape, place == 0)
        if params.masked and params.reverse:
            begins |= (t + 1 >= np.trunc(lengths))[:, None]
        h = np.where(begins, h0, out[before])
        total, direct = dh + og[t], np.zeros(())
        if lstm:
            i, f, g, o = np.split(gates[t], 4, axis=1)
            tanh = np.tanh(cells[t])
            to_c = dc + total * o * (1 - tanh * tanh)
            if params.clip_min is not None and params.clip_max is not None:
                to_c = np.where((cells[t] > params.clip_min) & (cells[t] < params.clip_max), to_c, 0)
            c = np.where(begins, c0, cells[before])
            to_pre = np.concatenate([to_c * g * i * (1 - i), to_c * c * f * (1 - f), to_c * i * (1 - g * g),
                                     total * tanh * o * (1 - o)], 1)
            dc, to_rec = np.where(inside, to_c * f, dc), to_pre
        elif gru:
            r, z, n, rn = np.split(gates[t], 4, axis=1)
            to_n = total * (1 - z) * (1 - n * n)
            to_r, to_z = to_n * rn * r * (1 - r), total * (h - n) * z * (1 - z)
            to_pre, to_rec = np.concatenate([to_r, to_z, to_n], 1), np.concatenate([to_r, to_z, to_n * r], 1)
            direct = total * z
        else:
            slope = out[t] > 0 if params.mode == "rnn_relu" else 1 - out[t] * out[t]
            to_pre = to_rec = total * slope
        pre_grad[t], rec_grad[t] = np.where(inside, to_pre, 0), np.where(inside, to_rec, 0)
        previous[t] = np.where(inside, h, 0)
        dh = np.where(inside, rec_grad[t] @ weight + direct, dh)
    return [np.stack(pre_grad), dh, dc if lstm else NONE, np.stack(previous), np.stack(rec_grad) if gru else NONE]


def rnn(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Layers of cells, each over the outputs of the one below; the second direction goes from the end."""
    data, vector, state, *rest = (a.astype(np.float64) for a in inputs)
    steps, batch, width = data.shape
    cell = rest[0] if params.mode == "lstm" else state
    lengths = rest[-1] if params.use_sequence_length else np.full(batch, steps)
    parts = {(p.layer, p.direction, p.name): vector[p.start:p.stop].reshape(p.shape) for p in pieces(params, width)}
    both, outputs = directions(params), output_size(params)
    mask = np.ones((params.num_layers - 1, steps, batch, both * outputs) if dropped(params) else 1)
    if is_train and dropped(params):
        keep = 1 - params.p
        mask = (rng.random(mask.shape) < keep) / keep if keep else np.zeros(mask.shape)
    last_h, last_c, x = [], [], data
    for layer in range(params.num_layers):
        if layer and dropped(params):
            x = x * mask[layer - 1]
        sides = []
        for side in range(both):
            part = {name: array for (a, b, name), array in parts.items() if (a, b) == (layer, side)}
            h, c = state[layer * both + side], cell[layer * both + side]
            out = np.zeros((steps, batch, outputs))
            for t in range(steps)[::-1 if side else 1]:
                new_h, new_c = _step(params, part, x[t], h, c)
                inside = (t < np.trunc(lengths))[:, None]
                out[t], h, c = np.where(inside, new_h, 0), np.where(inside, new_h, h), np.where(inside, new_c, c)
            sides.append(out)
            last_h.append(h)
            last_c.append(c)
        x = np.concatenate(sides, axis=2)
    cells = np.stack(last_c) if params.mode == "lstm" else np.zeros((*state.shape[:2], params.state_size))
    return [x, np.stack(last_h), cells, mask]


def _step(params: Params, part: dict[str, np.ndarray], x: np.ndarray, h: np.ndarray, c: np.ndarray,
          ) -> tuple[np.ndarray, np.ndarray]:
    own = Params({"mode": params.mode, "clip_min": params.lstm_state_clip_min, "clip_max": params.lstm_state_clip_max,
                  "clip_nan": params.lstm_state_clip_nan})
    sums = x @ part["input"].T + part["input_bias"], h @ part["recurrent"].T + part["recurrent_bias"]
    new_h, new_c, _ = _cell(own, *sums, h, c)
    if "projection" in part:
        new_h = new_h @ part["projection"].T
    return new_h, c if new_c is None else new_c
