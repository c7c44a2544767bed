"""Small graphs as unit tests and scripts make them, built, bound and run by mxc or MXNet.

    small_graphs.py MODULE COUNT ROUNDS    MODULE: mxc or mxnet

Prints JSON: for each round the seconds of the process's CPU time that every stage took, summed over the graphs, and of
each graph samples of its outputs and gradients in the first round. Each round makes all graphs anew, with other
automatic names.
"""
from __future__ import annotations

import importlib
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

STAGES = ("build", "bind", "forward", "backward")
SAMPLES = 8
SEED = 7
Made = tuple[Any, dict[str, tuple[int, ...]], set[str]]  # the symbol, shapes of its inputs, arguments without gradient

UNARY = ("exp", "tanh", "sigmoid", "relu", "abs", "square", "sqrt", "log", "sin", "cos", "negative", "rsqrt",
         "softsign")
BINARY = ("elemwise_add", "elemwise_sub", "elemwise_mul", "broadcast_maximum", "broadcast_minimum", "broadcast_hypot")
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "norm")


def positive(mx: Any, x: Any) -> Any:
    return mx.sym.abs(x) + 0.5


def chain(mx: Any, rng: random.Random) -> Made:
    """Elementwise operators, one after the other."""
    shape = tuple(rng.randint(1, 8) for _ in range(rng.randint(1, 4)))
    x = net = mx.sym.Variable("x")
    for _ in range(rng.randint(1, 8)):
        name = rng.choice(UNARY)
        net = getattr(mx.sym, name)(positive(mx, net) if name in ("sqrt", "log", "rsqrt") else net)
        if rng.random() < 0.4:
            net = mx.sym.tanh(net) * rng.choice((0.5, 2.0, 3.0)) + rng.choice((1.0, x))
    return net, {"x": shape}, set()


def pairs(mx: Any, rng: random.Random) -> Made:
    """Two arrays of one shape, joined in several ways."""
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    net = getattr(mx.sym, rng.choice(BINARY))(a, b)
    for _ in range(rng.randint(0, 4)):
        net = getattr(mx.sym, rng.choice(BINARY))(mx.sym.tanh(net), rng.choice((a, b)))
    shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 3)))
    return net, {"a": shape, "b": shape}, set()


def broadcasting(mx: Any, rng: random.Random) -> Made:
    """Arrays whose axes are 1 here and there."""
    full = [rng.randint(2, 6) for _ in range(rng.randint(2, 4))]
    a, b = (tuple(n if rng.random() < 0.6 else 1 for n in full) for _ in range(2))
    x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
    net = getattr(mx.sym, rng.choice(("broadcast_add", "broadcast_sub", "broadcast_mul")))(x, y)
    if rng.random() < 0.5:
        net = mx.sym.broadcast_div(net, positive(mx, y))
    return net, {"x": a, "y": b}, set()


def reduction(mx: Any, rng: random.Random) -> Made:
    """A reduction over some axes, of something simple."""
    shape = tuple(rng.randint(2, 6) for _ in range(rng.randint(1, 4)))
    axes = tuple(sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape)))))
    x = mx.sym.Variable("x")
    net = getattr(mx.sym, rng.choice(REDUCTIONS))(rng.choice((x, mx.sym.square(x), mx.sym.tanh(x))), axis=axes,
                                                  keepdims=rng.random() < 0.5)
    return (mx.sym.sqrt(positive(mx, net)) if rng.random() < 0.4 else net), {"x": shape}, set()


def dense(mx: Any, rng: random.Random) -> Made:
    """Fully connected layers, with a loss behind them."""
    net = mx.sym.Variable("data")
    for _ in range(rng.randint(1, 3)):
        net = mx.sym.FullyConnected(net, num_hidden=rng.randint(2, 24), no_bias=rng.random() < 0.3)
        net = mx.sym.Activation(net, act_type=rng.choice(("relu", "tanh", "sigmoid")))
        if rng.random() < 0.3:
            net = mx.sym.BatchNorm(net, fix_gamma=False)
    batch = rng.randint(1, 8)
    shapes = {"data": (batch, rng.randint(2, 20))}
    if rng.random() < 0.6:
        net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=rng.randint(2, 6)), mx.sym.Variable("label"))
        return net, {**shapes, "label": (batch,)}, {"data", "label"}
    net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(net, num_hidden=3), mx.sym.Variable("label"))
    return net, {**shapes, "label": (batch, 3)}, {"data", "label"}


def convolutional(mx: Any, rng: random.Random) -> Made:
    """Convolutions and what follows them."""
    net, channels = mx.sym.Variable("data"), rng.randint(1, 4)
    for _ in range(rng.randint(1, 2)):
        kernel = rng.choice((1, 3))
        net = mx.sym.Convolution(net, kernel=(kernel, kernel), pad=(kernel // 2, kernel // 2),
                                 num_filter=rng.randint(1, 8), stride=rng.choice(((1, 1), (2, 2))))
        if rng.random() < 0.4:
            net = mx.sym.BatchNorm(net, fix_gamma=rng.random() < 0.5)
        net = mx.sym.Activation(net, act_type="relu")
    if rng.random() < 0.6:
        net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type=rng.choice(("max", "avg")))
    if rng.random() < 0.6:
        net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=rng.randint(2, 5))
    size = rng.randint(8, 12)
    return net, {"data": (rng.randint(1, 3), channels, size, size)}, {"data"}


def slicing(mx: Any, rng: random.Random) -> Made:
    """Parts of an array, moved about."""
    shape = tuple(rng.randint(3, 7) for _ in range(rng.randint(2, 3)))
    x = mx.sym.Variable("x")
    axis = rng.randrange(len(shape))
    part = mx.sym.slice_axis(x, axis=axis, begin=1, end=shape[axis] - rng.randint(0, 1))
    net = rng.choice((lambda: part, lambda: mx.sym.transpose(part), lambda: mx.sym.reverse(part, axis=axis),
                      lambda: mx.sym.Reshape(part, shape=(-1,)), lambda: mx.sym.expand_dims(part, axis=0),
                      lambda: mx.sym.tile(part, reps=(2,)), lambda: mx.sym.repeat(part, repeats=2, axis=axis)))()
    return (net * 2 if rng.random() < 0.5 else mx.sym.tanh(net)), {"x": shape}, set()


def joining(mx: Any, rng: random.Random) -> Made:
    """Several arrays joined, or one split."""
    names = [f"x{i}" for i in range(rng.randint(2, 4))]
    shape, inputs = tuple(rng.randint(1, 6) for _ in range(2)), [mx.sym.Variable(name) for name in names]
    kind = rng.randrange(3)
    if kind == 0:
        net = mx.sym.Concat(*inputs, dim=rng.randint(0, 1))
    elif kind == 1:
        net = mx.sym.stack(*inputs, axis=rng.randint(0, 2))
    else:
        net = mx.sym.add_n(*inputs)
    return mx.sym.sigmoid(net), dict.fromkeys(names, shape), set()


def looking_up(mx: Any, rng: random.Random) -> Made:
    """Rows of a table at indices."""
    rows, width, count = rng.randint(3, 9), rng.randint(2, 6), rng.randint(1, 6)
    index, table = mx.sym.Variable("index"), mx.sym.Variable("table")
    if rng.random() < 0.5:
        net = mx.sym.Embedding(index, table, input_dim=rows, output_dim=width)
    else:
        net = mx.sym.take(table, index)
    return mx.sym.sum(net, axis=-1), {"index": (count,), "table": (rows, width)}, {"index"}


def products(mx: Any, rng: random.Random) -> Made:
    """A matrix product, or one for each of a batch."""
    m, k, n, batch = (rng.randint(1, 7) for _ in range(4))
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    if rng.random() < 0.5:
        return mx.sym.tanh(mx.sym.dot(a, b)), {"a": (m, k), "b": (k, n)}, set()
    return mx.sym.batch_dot(a, b) + 1, {"a": (batch, m, k), "b": (batch, k, n)}, set()


def normalising(mx: Any, rng: random.Random) -> Made:
    """Softmax and its like."""
    shape = tuple(rng.randint(2, 7) for _ in range(rng.randint(2, 3)))
    x = mx.sym.Variable("x")
    kind = rng.randrange(4)
    if kind == 3:
        return mx.sym.LayerNorm(x), {"x": shape}, set()
    net = (lambda: mx.sym.softmax(x), lambda: mx.sym.log_softmax(x), lambda: mx.sym.L2Normalization(x))[kind]()
    return net * mx.sym.Variable("y"), {"x": shape, "y": shape}, set()


def unrolled(mx: Any, rng: random.Random) -> Made:
    """A simple recurrent network, unrolled over a few steps."""
    steps, batch, width, hidden = rng.randint(2, 4), rng.randint(1, 4), rng.randint(2, 6), rng.randint(2, 6)
    data = mx.sym.SliceChannel(mx.sym.Variable("data"), num_outputs=steps, axis=1, squeeze_axis=True)
    state = mx.sym.Variable("state")
    names = ("i_weight", "i_bias", "h_weight", "h_bias")
    weights = dict(zip(names, map(mx.sym.Variable, names), strict=True))
    for step in range(steps):
        state = mx.sym.tanh(
            mx.sym.FullyConnected(data[step], weights["i_weight"], weights["i_bias"], num_hidden=hidden)
            + mx.sym.FullyConnected(state, weights["h_weight"], weights["h_bias"], num_hidden=hidden))
    return state, {"data": (batch, steps, width), "state": (batch, hidden)}, set()


KINDS: tuple[Callable[[Any, random.Random], Made], ...] = (
    chain, pairs, broadcasting, reduction, dense, convolutional, slicing, joining, looking_up, products, normalising,
    unrolled)


def samples(array: np.ndarray) -> list[Any]:
    """The shape, the largest absolute value, and values spread over the array."""
    flat = array.ravel().astype(float)
    spread = flat[np.linspace(0, flat.size - 1, min(SAMPLES, flat.size)).astype(int)]
    return [list(array.shape), float(np.abs(flat).max()), [float(value) for value in spread]]


def fill(executor: Any, number: int) -> None:
    """The same values for everybody: whole numbers for indices and labels."""
    rng = np.random.RandomState(number)
    for name, array in sorted(executor.arg_dict.items()):
        is_index = name in ("index", "label") and len(array.shape) == 1
        array[:] = rng.randint(0, 2, array.shape) if is_index else rng.uniform(-1, 1, array.shape)


def run(mx: Any, number: int, times: dict[str, float], found: list[Any] | None) -> None:
    """Make, bind and run graph `number`, adding the stages' seconds to `times`."""
    rng = random.Random(SEED * 1000 + number)
    marks = [time.process_time()]
    net, shapes, frozen = KINDS[number % len(KINDS)](mx, rng)
    marks.append(time.process_time())
    requests = {name: "null" if name in frozen else "write" for name in net.list_arguments()}
    executor = net.simple_bind(mx.cpu(), grad_req=requests, **shapes)
    marks.append(time.process_time())
    fill(executor, number)
    before = time.process_time()
    outputs = executor.forward(is_train=True)
    for output in outputs:
        output.wait_to_read()
    forward = time.process_time()
    executor.backward([mx.nd.ones(output.shape) for output in outputs])
    mx.nd.waitall()
    seconds = (marks[1] - marks[0], marks[2] - marks[1], forward - before, time.process_time() - forward)
    for stage, each in zip(STAGES, seconds, strict=True):
        times[stage] += each
    if found is not None:
        grads = executor.grad_dict
        found.append([samples(output.asnumpy()) for output in outputs]
                     + [samples(grads[name].asnumpy()) for name, request in requests.items() if request != "null"])


def main(module: str, count: int, rounds: int) -> None:
    """Run all graphs in each round and print the report."""
    mx = importlib.import_module(module)
    mx.nd.ones((1,)).wait_to_read()
    found: list[Any] = []
    made = []
    for turn in range(rounds):
        times = dict.fromkeys(STAGES, 0.0)
        for number in range(count):
            run(mx, number, times, None if turn else found)
        made.append(times)
    print(json.dumps({"rounds": made, "found": found}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
