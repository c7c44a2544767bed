"""Routines of recurrent layers.

The routines are the steps of a recurrent layer in one direction, and their gradient. For each step both multiply the
last states by a matrix, for `rows` rows of the batch at once; the matrix comes packed, so that it is read from end to
end.
"""
from __future__ import annotations

from mxc.compiler.kernel.ir import FLOATS
from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int64, max_, min_, product_, sigmoid_, tanh_
from mxc.compiler.operators.rnn.shape import GATES
from mxc.compiler.ops.operator import Params

ROWS = 16  # rows of the batch in a unit of work: with fewer, weights are read more often; with more, threads wait


def _numbers(c: RoutineNode, params: Params, state: int) -> tuple[tuple[int, ...], dict[str, object]]:
    """The integers and constants that the layer's routine and its gradient's routine both take."""
    assert c.dtype(0) in FLOATS
    mode, (batch, size) = params.mode, c.shape(state)
    constants: dict[str, object] = {
        "products": GATES[str(mode)], "lstm": mode == "lstm", "gru": mode == "gru", "relu": mode == "rnn_relu",
        "clip": None not in (params.clip_min, params.clip_max), "low": params.clip_min or 0.0,
        "high": params.clip_max or 0.0, "real": c.dtype(0)}
    rows = -(-batch // max(1, -(-batch // ROWS)))
    return (c.shape(0)[0], batch, size, rows, int(params.reverse), int(params.masked)), constants


def rnn_layer_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """pre (T, N, gates * H), weight, bias, state (N, H), cell, lengths."""
    integers, constants = _numbers(c, params, 3)
    return call("rnn_layer", (*integers, int(params.keep)), clip_nan=params.clip_nan, **constants)


def rnn_layer_grad_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """out_grad (T, N, H), gradients of the last states (N, H), what rnn_layer kept."""
    integers, constants = _numbers(c, params, 1)
    return call("rnn_layer_grad", integers, **constants)


# long: the language of routines has no functions, and every mode shares the loop over steps
@routine(inputs=("pre", "weight", "bias", "state", "cell", "lengths"),
         outputs=("out", "last_state", "last_cell", "gates", "cells"), units="(batch + rows - 1) // rows",
         scratch={"h": ("real", "rows * size"), "c": ("real", "rows * size"),
                  "total": ("real", "rows * products * size")}, over={"gates": "pre"})
def rnn_layer(first, last, pre, weight, bias, state, cell, lengths, out, last_state, last_cell, gates, cells,
              h, c, total, steps, batch, size, rows, reverse, masked, keep, *, products, lstm, gru, relu, clip, low,
              high, clip_nan, real):
    """h = step(pre[t] , h x weight + bias) for all steps t, from the end with `reverse`.

    pre: (steps, batch, products * size), the gates' sums of the input; weight: (size, products * size), packed; bias:
    (products * size,); state: (batch, size); cell: (batch, size), read with `lstm`; lengths: (batch,), read with
    `masked`: beyond it out is 0 and the states stay. out: (steps, batch, size). With `keep`, for the gradient: gates:
    (steps, batch, 4 * size), input, forget, new and output gate of lstm; reset, update, new and the recurrent product
    of the new gate of gru; cells: (steps, batch, size) of lstm. With `clip` cells stay within low and high. What is not
    said to be written holds one 0. reverse, masked and keep are 0 or 1.
    """
    width = products * size
    for unit in range(first, last):
        top = unit * rows
        count = min_(rows, batch - top)
        for i in range(count * size):
            h[i] = state[top * size + i]
        if lstm:
            for i in range(count * size):
                c[i] = cell[top * size + i]
        for step in range(steps):
            t = steps - 1 - step if reverse else step
            for row in range(count):
                o = row * width
                p = (t * batch + top + row) * width
                for j in range(2 * size if gru else width):
                    total[o + j] = bias[j] + pre[p + j]
                if gru:
                    for j in range(2 * size, width):
                        total[o + j] = bias[j]
            product_(total, 0, count, h, 0, size, weight, width)
            for row in range(count):
                o = row * width
                s = row * size
                place = t * batch + top + row
                inside = not masked or t < int64(lengths[top + row])
                if not inside:
                    for j in range(size):
                        out[place * size + j] = real(0)
                    if keep and (lstm or gru):
                        for j in range(4 * size):
                            gates[place * 4 * size + j] = real(0)
                elif lstm:
                    for j in range(2 * size):
                        total[o + j] = sigmoid_(total[o + j])
                    for j in range(2 * size, 3 * size):
                        total[o + j] = tanh_(total[o + j])
                    for j in range(3 * size, 4 * size):
                        total[o + j] = sigmoid_(total[o + j])
                    for j in range(size):
                        new = total[o + size + j] * c[s + j] + total[o + j] * total[o + 2 * size + j]
                        if clip:
                            if clip_nan and new != new:
                                new = real(low)
                            new = min_(max_(new, real(low)), real(high))
                        c[s + j] = new
                        h[s + j] = total[o + 3 * size + j] * tanh_(new)
                    if keep:
                        for j in range(4 * size):
                            gates[place * 4 * size + j] = total[o + j]
                elif gru:
                    for j in range(2 * size):
                        total[o + j] = sigmoid_(total[o + j])
                    if keep:
                        for j in range(size):
                            gates[place * 4 * size + 3 * size + j] = total[o + 2 * size + j]
                    for j in range(size):
                        total[o + 2 * size + j] = (pre[place * width + 2 * size + j]
                                                   + total[o + j] * total[o + 2 * size + j])
                    for j in range(2 * size, 3 * size):  # alone: what reads and writes one array becomes no vectors
                        total[o + j] = tanh_(total[o + j])
                    for j in range(size):
                        new = total[o + 2 * size + j]
                        h[s + j] = new + total[o + size + j] * (h[s + j] - new)
                    if keep:
                        for j in range(3 * size):
                            gates[place * 4 * size + j] = total[o + j]
                else:
                    for j in range(size):
                        h[s + j] = max_(total[o + j], real(0)) if relu else tanh_(total[o + j])
                if inside:
                    for j in range(size):
                        out[place * size + j] = h[s + j]
                if keep and lstm:
                    for j in range(size):
                        cells[place * size + j] = c[s + j]
        for i in range(count * size):
            last_state[top * size + i] = h[i]
        if lstm:
            for i in range(count * size):
                last_cell[top * size + i] = c[i]
        if unit == 0:  # at the end: `gates` may lie where `pre` did
            if not lstm:
                last_cell[0] = real(0)
            if not (keep and lstm):
                cells[0] = real(0)
            if not (keep and (lstm or gru)):
                gates[0] = real(0)


# long: the language of routines has no functions, and every mode shares the loop over steps
@routine(inputs=("out_grad", "state_grad", "cell_grad", "gates", "cells", "out", "state", "cell", "weight", "lengths"),
         outputs=("pre_grad", "first_state_grad", "first_cell_grad", "previous", "recurrent_grad"),
         units="(batch + rows - 1) // rows",
         scratch={"dh": ("real", "rows * size"), "dc": ("real", "rows * size")}, over={"pre_grad": "gates"})
def rnn_layer_grad(first, last, out_grad, state_grad, cell_grad, gates, cells, out, state, cell, weight, lengths,
                   pre_grad, first_state_grad, first_cell_grad, previous, recurrent_grad, dh, dc,
                   steps, batch, size, rows, reverse, masked, *, products, lstm, gru, relu, clip, low, high, real):
    """The gradient of rnn_layer: from out and the last states to pre, the recurrent products, and the first states.

    out_grad, out, cells, previous: (steps, batch, size); gates: (steps, batch, 4 * size); pre_grad, recurrent_grad:
    (steps, batch, products * size), the latter of gru alone: else they are equal, and it holds one 0; state and cell,
    with their gradients: (batch, size), cells of lstm alone; weight: (products * size, size), packed. previous: the
    state before each step, 0 beyond a row's length.
    """
    width = products * size
    for unit in range(first, last):
        top = unit * rows
        count = min_(rows, batch - top)
        if unit == 0:
            if not lstm:
                first_cell_grad[0] = real(0)
            if not gru:
                recurrent_grad[0] = real(0)
        for i in range(count * size):
            dh[i] = state_grad[top * size + i]
        if lstm:
            for i in range(count * size):
                dc[i] = cell_grad[top * size + i]
        for step in range(steps):
            t = step if reverse else steps - 1 - step
            before = t + 1 if reverse else t - 1
            for row in range(count):
                s = row * size
                place = t * batch + top + row
                o = place * width
                length = steps
                if masked:
                    length = min_(steps, int64(lengths[top + row]))
                begins = step == steps - 1 or (reverse and before >= length)
                source = before * batch + top + row
                if t >= length:
                    for j in range(width):
                        pre_grad[o + j] = real(0)
                    if gru:
                        for j in range(width):
                            recurrent_grad[o + j] = real(0)
                    for j in range(size):
                        previous[place * size + j] = real(0)
                else:
                    if begins:
                        for j in range(size):
                            previous[place * size + j] = state[(top + row) * size + j]
                    else:
                        for j in range(size):
                            previous[place * size + j] = out[source * size + j]
                    g = place * 4 * size
                    if not lstm:
                        for j in range(size):
                            dh[s + j] = dh[s + j] + out_grad[place * size + j]
                    if lstm:  # Everything is in one loop, for its values come from memory.
                        for j in range(size):
                            into, forget = gates[g + j], gates[g + size + j]
                            found, opened = gates[g + 2 * size + j], gates[g + 3 * size + j]
                            was = cell[(top + row) * size + j] if begins else cells[source * size + j]
                            now = cells[place * size + j]
                            new = tanh_(now)
                            flow = dh[s + j] + out_grad[place * size + j]
                            slope = dc[s + j] + flow * opened * (real(1) - new * new)
                            if clip:
                                slope = slope if now > real(low) and now < real(high) else real(0)
                            dc[s + j] = slope * forget
                            dh[s + j] = real(0)
                            pre_grad[o + j] = slope * found * into * (real(1) - into)
                            pre_grad[o + size + j] = slope * was * forget * (real(1) - forget)
                            pre_grad[o + 2 * size + j] = slope * into * (real(1) - found * found)
                            pre_grad[o + 3 * size + j] = flow * new * opened * (real(1) - opened)
                    elif gru:
                        for j in range(size):
                            reset, update, new = gates[g + j], gates[g + size + j], gates[g + 2 * size + j]
                            slope = dh[s + j] * (real(1) - update) * (real(1) - new * new)
                            to_reset = slope * gates[g + 3 * size + j] * reset * (real(1) - reset)
                            to_update = (dh[s + j] * (previous[place * size + j] - new) * update
                                         * (real(1) - update))
                            pre_grad[o + j] = to_reset
                            pre_grad[o + size + j] = to_update
                            pre_grad[o + 2 * size + j] = slope
                            recurrent_grad[o + j] = to_reset
                            recurrent_grad[o + size + j] = to_update
                            recurrent_grad[o + 2 * size + j] = slope * reset
                            dh[s + j] = dh[s + j] * update
                    else:
                        for j in range(size):
                            new = out[place * size + j]
                            if relu:
                                pre_grad[o + j] = dh[s + j] if new > real(0) else real(0)
                            else:
                                pre_grad[o + j] = dh[s + j] * (real(1) - new * new)
                            dh[s + j] = real(0)
            if gru:
                product_(dh, 0, count, recurrent_grad, (t * batch + top) * width, width, weight, size)
            else:
                product_(dh, 0, count, pre_grad, (t * batch + top) * width, width, weight, size)
        for i in range(count * size):
            first_state_grad[top * size + i] = dh[i]
        if lstm:
            for i in range(count * size):
                first_cell_grad[top * size + i] = dc[i]
