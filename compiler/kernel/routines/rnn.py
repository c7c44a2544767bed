"""The steps of a recurrent layer in one direction, and their gradient.

Both do for each step the product of the last states with a matrix, for `rows` rows of the batch at once: 256 columns at
a time, four rows of the matrix for four rows of the batch, so that what is read is used from the nearest cache. The
four are those of equal place in four parts of the rows: LLVM then sees that what it stores to does not overlap.
"""
from __future__ import annotations

from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int64, max_, min_, sigmoid_, tanh_


@routine(inputs=("pre", "weight", "bias", "state", "cell", "lengths"),
         outputs=("out", "last_state", "last_cell", "gates", "cells"), units="(batch + rows - 1) // rows",
         scratch={"h": ("real", "rows * size"), "c": ("real", "rows * size"),
                  "total": ("real", "rows * products * size")})
def rnn_layer(first, last, pre, weight, bias, state, cell, lengths, out, last_state, last_cell, gates, cells,
              h, c, total, steps, batch, size, rows, reverse, masked, keep, *, products, lstm, gru, relu, clip, low,
              high, clip_nan, real):
    """h = step(pre[t] , h x weight + bias) for all steps t, from the end with `reverse`.

    pre: (steps, batch, products * size), the gates' sums of the input; weight: (size, products * size); bias: (products
    * size,); state: (batch, size); cell: (batch, size), read with `lstm`; lengths: (batch,), read with `masked`: beyond
    it out is 0 and the states stay. out: (steps, batch, size). With `keep`, for the gradient: gates: (steps, batch, 4 *
    size), input, forget, new and output gate of lstm; reset, update, new and the recurrent product of the new gate of
    gru; cells: (steps, batch, size) of lstm. With `clip` cells stay within low and high. What is not said to be written
    holds one 0. rows: a multiple of 4. reverse, masked and keep are 0 or 1.
    """
    width = products * size
    for unit in range(first, last):
        top = unit * rows
        count = min_(rows, batch - top)
        quads = (count + 3) // 4
        if unit == 0:
            if not lstm:
                last_cell[0] = real(0)
            if not (keep and lstm):
                cells[0] = real(0)
            if not (keep and (lstm or gru)):
                gates[0] = real(0)
        for i in range(count * size, quads * 4 * size):
            h[i] = real(0)
        for i in range(count * size):
            h[i] = state[top * size + i]
        if lstm:
            for i in range(count * size):
                c[i] = cell[top * size + i]
        for step in range(steps):
            t = steps - 1 - step if reverse else step
            for row in range(quads * 4):
                for j in range(width):
                    total[row * width + j] = bias[j]
            for begin in range(0, width, 256):
                end = min_(begin + 256, width)
                for k in range(0, size // 4 * 4, 4):
                    w = k * width
                    for quad in range(quads):
                        a = quad * size + k
                        o = quad * width
                        o1 = o + quads * width
                        o2 = o1 + quads * width
                        o3 = o2 + quads * width
                        a00, a01, a02, a03 = h[a], h[a + 1], h[a + 2], h[a + 3]
                        a = a + quads * size
                        a10, a11, a12, a13 = h[a], h[a + 1], h[a + 2], h[a + 3]
                        a = a + quads * size
                        a20, a21, a22, a23 = h[a], h[a + 1], h[a + 2], h[a + 3]
                        a = a + quads * size
                        a30, a31, a32, a33 = h[a], h[a + 1], h[a + 2], h[a + 3]
                        for j in range(begin, end):
                            w0 = weight[w + j]
                            w1 = weight[w + width + j]
                            w2 = weight[w + 2 * width + j]
                            w3 = weight[w + 3 * width + j]
                            total[o + j] = total[o + j] + a00 * w0 + a01 * w1 + a02 * w2 + a03 * w3
                            total[o1 + j] = total[o1 + j] + a10 * w0 + a11 * w1 + a12 * w2 + a13 * w3
                            total[o2 + j] = total[o2 + j] + a20 * w0 + a21 * w1 + a22 * w2 + a23 * w3
                            total[o3 + j] = total[o3 + j] + a30 * w0 + a31 * w1 + a32 * w2 + a33 * w3
            for k in range(size // 4 * 4, size):
                for row in range(count):
                    a00 = h[row * size + k]
                    for j in range(width):
                        total[row * width + j] = total[row * width + j] + a00 * weight[k * width + j]
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
                        total[o + j] = sigmoid_(total[o + j] + pre[place * width + j])
                    for j in range(2 * size, 3 * size):
                        total[o + j] = tanh_(total[o + j] + pre[place * width + j])
                    for j in range(3 * size, 4 * size):
                        total[o + j] = sigmoid_(total[o + j] + pre[place * width + j])
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
                        total[o + j] = sigmoid_(total[o + j] + pre[place * width + j])
                    if keep:
                        for j in range(size):
                            gates[place * 4 * size + 3 * size + j] = total[o + 2 * size + j]
                    for j in range(size):
                        new = tanh_(pre[place * width + 2 * size + j] + total[o + j] * total[o + 2 * size + j])
                        total[o + 2 * size + j] = new
                        h[s + j] = new + total[o + size + j] * (h[s + j] - new)
                    if keep:
                        for j in range(3 * size):
                            gates[place * 4 * size + j] = total[o + j]
                else:
                    for j in range(size):
                        new = total[o + j] + pre[place * width + j]
                        h[s + j] = max_(new, real(0)) if relu else tanh_(new)
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


@routine(inputs=("out_grad", "state_grad", "cell_grad", "gates", "cells", "out", "state", "cell", "weight", "lengths"),
         outputs=("pre_grad", "first_state_grad", "first_cell_grad", "previous", "recurrent_grad"),
         units="(batch + rows - 1) // rows",
         scratch={"dh": ("real", "rows * size"), "dc": ("real", "rows * size"),
                  "total": ("real", "rows * products * size")})
def rnn_layer_grad(first, last, out_grad, state_grad, cell_grad, gates, cells, out, state, cell, weight, lengths,
                   pre_grad, first_state_grad, first_cell_grad, previous, recurrent_grad, dh, dc, total,
                   steps, batch, size, rows, reverse, masked, *, products, lstm, gru, relu, clip, low, high, real):
    """The gradient of rnn_layer: from out and the last states to pre, the recurrent products, and the first states.

    out_grad, out, cells, previous: (steps, batch, size); gates: (steps, batch, 4 * size); pre_grad, recurrent_grad:
    (steps, batch, products * size), the latter of gru alone: else they are equal, and it holds one 0; state and cell,
    with their gradients: (batch, size), cells of lstm alone; weight: (products * size, size). previous: the state
    before each step, 0 beyond a row's length.
    """
    width = products * size
    for unit in range(first, last):
        top = unit * rows
        count = min_(rows, batch - top)
        quads = (count + 3) // 4
        if unit == 0:
            if not lstm:
                first_cell_grad[0] = real(0)
            if not gru:
                recurrent_grad[0] = real(0)
        for i in range(count * width, quads * 4 * width):
            total[i] = real(0)
        for i in range(count * size, quads * 4 * size):
            dh[i] = real(0)
        for i in range(count * size):
            dh[i] = state_grad[top * size + i]
        if lstm:
            for i in range(count * size):
                dc[i] = cell_grad[top * size + i]
        for step in range(steps):
            t = step if reverse else steps - 1 - step
            before = t + 1 if reverse else t - 1
            for row in range(count):
                o = row * width
                s = row * size
                place = t * batch + top + row
                length = steps
                if masked:
                    length = min_(steps, int64(lengths[top + row]))
                begins = step == steps - 1 or (reverse and before >= length)
                source = before * batch + top + row
                if t >= length:
                    for j in range(width):
                        total[o + j] = real(0)
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
                    for j in range(size):
                        dh[s + j] = dh[s + j] + out_grad[place * size + j]
                    if lstm:
                        for j in range(size):
                            new = tanh_(cells[place * size + j])
                            opened = gates[g + 3 * size + j]
                            slope = dc[s + j] + dh[s + j] * opened * (real(1) - new * new)
                            if clip:
                                now = cells[place * size + j]
                                slope = slope if now > real(low) and now < real(high) else real(0)
                            dc[s + j] = slope
                            total[o + 3 * size + j] = dh[s + j] * new * opened * (real(1) - opened)
                        for j in range(size):
                            opened, new = gates[g + j], gates[g + 2 * size + j]
                            total[o + j] = dc[s + j] * new * opened * (real(1) - opened)
                            total[o + 2 * size + j] = dc[s + j] * opened * (real(1) - new * new)
                        for j in range(size):
                            opened = gates[g + size + j]
                            was = cell[(top + row) * size + j] if begins else cells[source * size + j]
                            total[o + size + j] = dc[s + j] * was * opened * (real(1) - opened)
                            dc[s + j] = dc[s + j] * opened
                        for j in range(size):
                            dh[s + j] = real(0)
                    elif gru:
                        for j in range(size):
                            reset, update, new = gates[g + j], gates[g + size + j], gates[g + 2 * size + j]
                            slope = dh[s + j] * (real(1) - update) * (real(1) - new * new)
                            total[o + j] = slope * gates[g + 3 * size + j] * reset * (real(1) - reset)
                            total[o + size + j] = (dh[s + j] * (previous[place * size + j] - new) * update
                                                   * (real(1) - update))
                            total[o + 2 * size + j] = slope
                            dh[s + j] = dh[s + j] * update
                    else:
                        for j in range(size):
                            new = out[place * size + j]
                            if relu:
                                total[o + j] = dh[s + j] if new > real(0) else real(0)
                            else:
                                total[o + j] = dh[s + j] * (real(1) - new * new)
                            dh[s + j] = real(0)
                for j in range(width):
                    pre_grad[place * width + j] = total[o + j]
                if gru:
                    if t < length:
                        for j in range(size):
                            total[o + 2 * size + j] = total[o + 2 * size + j] * gates[place * 4 * size + j]
                    for j in range(width):
                        recurrent_grad[place * width + j] = total[o + j]
            for begin in range(0, size, 256):
                end = min_(begin + 256, size)
                for k in range(0, width // 4 * 4, 4):
                    w = k * size
                    for quad in range(quads):
                        a = quad * width + k
                        o = quad * size
                        o1 = o + quads * size
                        o2 = o1 + quads * size
                        o3 = o2 + quads * size
                        a00, a01, a02, a03 = total[a], total[a + 1], total[a + 2], total[a + 3]
                        a = a + quads * width
                        a10, a11, a12, a13 = total[a], total[a + 1], total[a + 2], total[a + 3]
                        a = a + quads * width
                        a20, a21, a22, a23 = total[a], total[a + 1], total[a + 2], total[a + 3]
                        a = a + quads * width
                        a30, a31, a32, a33 = total[a], total[a + 1], total[a + 2], total[a + 3]
                        for j in range(begin, end):
                            w0 = weight[w + j]
                            w1 = weight[w + size + j]
                            w2 = weight[w + 2 * size + j]
                            w3 = weight[w + 3 * size + j]
                            dh[o + j] = dh[o + j] + a00 * w0 + a01 * w1 + a02 * w2 + a03 * w3
                            dh[o1 + j] = dh[o1 + j] + a10 * w0 + a11 * w1 + a12 * w2 + a13 * w3
                            dh[o2 + j] = dh[o2 + j] + a20 * w0 + a21 * w1 + a22 * w2 + a23 * w3
                            dh[o3 + j] = dh[o3 + j] + a30 * w0 + a31 * w1 + a32 * w2 + a33 * w3
            for k in range(width // 4 * 4, width):
                for row in range(count):
                    a00 = total[row * width + k]
                    for j in range(size):
                        dh[row * size + j] = dh[row * size + j] + a00 * weight[k * size + j]
        for i in range(count * size):
            first_state_grad[top * size + i] = dh[i]
        if lstm:
            for i in range(count * size):
                first_cell_grad[top * size + i] = dc[i]
