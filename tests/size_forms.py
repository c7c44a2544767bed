"""Programs of n steps, terms or parts, each with NumPy's answer: what tests/test_sizes.py makes large.

A form gives the symbol, its arguments' values, and what NumPy makes of these, output by output.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mxc as mx

sym = mx.sym
Case = tuple[Any, dict[str, np.ndarray], list[np.ndarray]]
FORMS: dict[str, Callable[[int], Case]] = {}
START = np.linspace(-0.5, 0.5, 20, dtype=np.float32)


def form(make: Callable[[int], Case]) -> Callable[[int], Case]:
    FORMS[make.__name__] = make
    return make


def loop(n: int, x: np.ndarray, step: Callable, numpy_step: Callable) -> Case:
    """step(z, x, i), n times from z = x."""
    data = sym.Variable("x")
    z, value = data, x
    for i in range(n):
        z, value = step(z, data, i), numpy_step(value, x, i)
    return z, {"x": x}, [value]


def variables(n: int, *shape: int) -> tuple[list[Any], dict[str, np.ndarray]]:
    values = {f"v{i}": np.full(shape, i % 7 - 3, np.float32) for i in range(n)}
    return [sym.Variable(name) for name in values], values


@form
def chain(n):
    return loop(n, START, lambda z, x, i: z * x + 0.5, lambda z, x, i: z * x + np.float32(0.5))


@form
def chain_of_other_numbers(n):
    return loop(n, START, lambda z, x, i: z * 0.5 + float(i), lambda z, x, i: z * np.float32(0.5) + np.float32(i))


@form
def chain_of_functions(n):
    return loop(n, START, lambda z, x, i: sym.tanh(z), lambda z, x, i: np.tanh(z))


@form
def means(n):
    return loop(n, START.reshape(4, 5),
                lambda z, x, i: sym.broadcast_add(z, sym.mean(z, axis=1, keepdims=True)) * 0.5,
                lambda z, x, i: (z + z.mean(axis=1, keepdims=True)) * np.float32(0.5))


@form
def choices(n):
    return loop(n, START, lambda z, x, i: sym.where(z > 0.1 * (i % 5), z * 0.5, x),
                lambda z, x, i: np.where(z > np.float32(0.1 * (i % 5)), z * np.float32(0.5), x))


@form
def dense(n):
    weight = sym.Variable("w")
    z, args, _ = loop(n, START.reshape(4, 5), lambda z, x, i: sym.FullyConnected(z, weight, num_hidden=5, no_bias=True),
                      lambda z, x, i: z)
    args["w"] = (np.eye(5) + 0.01 * np.tri(5)).astype(np.float32) / np.float32(1.01)
    return z, args, [args["x"] @ np.linalg.matrix_power(args["w"].astype("float64"), n).T]


@form
def grown(n):
    """Longer by one with each step."""
    return loop(n, START, lambda z, x, i: sym.concat(z, sym.slice_axis(z, axis=0, begin=0, end=1), dim=0),
                lambda z, x, i: np.concatenate([z, z[:1]]))


@form
def grown_and_scaled(n):
    return loop(n, START, lambda z, x, i: sym.concat(z, sym.slice_axis(z, axis=0, begin=0, end=1), dim=0) * 0.99,
                lambda z, x, i: np.concatenate([z, z[:1]]) * np.float32(0.99))


@form
def rotated(n):
    return loop(n, START, lambda z, x, i: sym.concat(sym.slice_axis(z, axis=0, begin=1, end=20),
                                                     sym.slice_axis(z, axis=0, begin=0, end=1), dim=0),
                lambda z, x, i: np.roll(z, -1))


@form
def halves_swapped(n):
    return loop(n, START, lambda z, x, i: sym.concat(sym.slice_axis(z, axis=0, begin=10, end=20),
                                                     sym.slice_axis(z, axis=0, begin=0, end=10), dim=0),
                lambda z, x, i: np.roll(z, -10))


@form
def tiled_and_cut(n):
    return loop(n, START, lambda z, x, i: sym.slice_axis(sym.tile(z, reps=(2,)), axis=0, begin=3, end=23),
                lambda z, x, i: np.roll(z, -3))


@form
def padded_and_cut(n):
    return loop(n, START.reshape(1, 1, 4, 5), lambda z, x, i: sym.slice(
        sym.Pad(z, mode="edge", pad_width=(0, 0, 0, 0, 1, 1, 1, 1)), begin=(0, 0, 0, 1), end=(1, 1, 4, 6)),
        lambda z, x, i: np.pad(z, [(0, 0)] * 2 + [(1, 1)] * 2, mode="edge")[:, :, :4, 1:6])


@form
def turned(n):
    return loop(n, START.reshape(4, 5), lambda z, x, i: sym.reverse(z, axis=i % 2), lambda z, x, i: np.flip(z, i % 2))


@form
def transposed(n):
    return loop(n, START[:16].reshape(4, 4), lambda z, x, i: sym.transpose(z) * 0.5 + z * 0.5,
                lambda z, x, i: z.T * np.float32(0.5) + z * np.float32(0.5))


@form
def sliced(n):
    return loop(n, np.arange(n + 4, dtype=np.float32), lambda z, x, i: sym.slice_axis(z, axis=0, begin=1, end=None),
                lambda z, x, i: z[1:])


@form
def stacked_and_summed(n):
    return loop(n, START, lambda z, x, i: sym.sum(sym.stack(z * 0.5, x), axis=0),
                lambda z, x, i: z * np.float32(0.5) + x)


@form
def resized(n):
    return loop(n, START.reshape(1, 1, 4, 5),
                lambda z, x, i: sym.contrib.BilinearResize2D(z, height=4, width=5 + i % 2),
                lambda z, x, i: _resized(z, 5 + i % 2))


def _resized(z: np.ndarray, width: int) -> np.ndarray:
    position = np.arange(width) * (z.shape[3] - 1) / (width - 1)
    before = np.minimum(position.astype(int), z.shape[3] - 1)
    after, part = np.minimum(before + 1, z.shape[3] - 1), position - before
    return (z[..., before] * (1 - part) + z[..., after] * part).astype(np.float32)


@form
def terms(n):
    names, values = variables(n, 3)
    return sym.add_n(*names), values, [sum(values.values())]


@form
def uses_of_one(n):
    x = sym.Variable("x")
    return sym.add_n(*[sym.tanh(x * (i % 5 + 1)) for i in range(n)]), {"x": START}, [
        sum(np.tanh(START * np.float32(i % 5 + 1)) for i in range(n))]


@form
def joined(n):
    names, values = variables(n, 2, 3)
    return sym.concat(*names, dim=1), values, [np.concatenate(list(values.values()), 1)]


@form
def stacked_multiples(n):
    x = sym.Variable("x")
    return sym.stack(*[x * float(i) for i in range(n)]), {"x": START}, [np.stack([START * np.float32(i)
                                                                                  for i in range(n)])]


@form
def outputs(n):
    x = sym.Variable("x")
    return sym.Group([x + float(i) for i in range(n)]), {"x": START}, [START + np.float32(i) for i in range(n)]


@form
def parts(n):
    x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
    return sym.SliceChannel(sym.Variable("x"), num_outputs=n, axis=0, squeeze_axis=True), {"x": x}, list(x)


@form
def parts_joined(n):
    x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
    found = sym.SliceChannel(sym.Variable("x"), num_outputs=n, axis=0)
    return sym.concat(*reversed(list(found)), dim=1), {"x": x}, [x[::-1].reshape(1, -1)]


@form
def lookups(n):
    weight = np.arange(30, dtype=np.float32).reshape(10, 3)
    names, values = variables(n, 2)
    values = {name: np.full(2, i % 10, np.float32) for i, name in enumerate(values)}
    table = sym.Variable("w")
    looked_up = [sym.Embedding(v, table, input_dim=10, output_dim=3) for v in names]
    return sym.concat(*looked_up, dim=0), {"w": weight, **values}, [np.concatenate(
        [weight[v.astype(int)] for v in values.values()])]


@form
def recurrent(n):
    """The steps of a recurrent layer, written out."""
    rng = np.random.default_rng(0)
    values = {"x": rng.standard_normal((n, 2, 3)), "W": rng.standard_normal((4, 3)) / 2,
              "U": rng.standard_normal((4, 4)) / 4, "c": rng.standard_normal((1, 4)) / 4, "h": np.zeros((2, 4))}
    values = {name: value.astype(np.float32) for name, value in values.items()}
    x, W, U, c, h = map(sym.Variable, values)
    steps, states, state = sym.SliceChannel(x, num_outputs=n, axis=0, squeeze_axis=True), [], values["h"]
    expected = []
    for t in range(n):
        both = sym.dot(steps[t], W, transpose_b=True) + sym.dot(h, U, transpose_b=True)
        h = sym.tanh(sym.broadcast_add(both, c))
        states.append(h)
        state = np.tanh(values["x"][t] @ values["W"].T + state @ values["U"].T + values["c"])
        expected.append(state)
    return sym.stack(*states), values, [np.stack(expected)]
