"""Graphs with loops for tests, the same graphs unrolled, and how they are run."""
from __future__ import annotations

import numpy as np
from golden.make_control_flow import Graphs

import mxc as mx

G = Graphs(mx)


def numbers(seed, *shape):
    """Drawn numbers between -1 and 1."""
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype("float32")


def run(symbol, values, grad_req="write", train=True, seed=7):
    """Outputs and gradients by name, where what flows into the outputs is drawn."""
    mx.random.seed(seed)
    args = {name: mx.nd.array(values[name], dtype=np.asarray(values[name]).dtype) for name in symbol.list_arguments()}
    modes = {name: grad_req if isinstance(grad_req, str) else grad_req.get(name, "null") for name in args}
    grads = {name: mx.nd.ones(array.shape) for name, array in args.items() if modes[name] != "null"}
    bound = symbol.bind(mx.cpu(), args, grads, modes)
    outputs = bound.forward(is_train=train)
    if grads:
        bound.backward([mx.nd.array(numbers(50 + i, *o.shape)) for i, o in enumerate(outputs)])
    return [o.asnumpy() for o in outputs], {name: grads[name].asnumpy() for name in sorted(grads)}


def same(one, other, rtol=2e-5):
    """Two results of `run` are the same but for rounding."""
    for left, right in ((one[0], other[0]), (list(one[1].values()), list(other[1].values()))):
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1, abs(b).max(initial=0)))


def cell(kind):
    """A step of a recurrent layer: plain, with more operators, or with normalisations."""
    w, b, u = (mx.sym.Variable(name) for name in "wbu")

    def step(x, h):
        made = mx.sym.FullyConnected(x, weight=w, bias=b, num_hidden=4) + mx.sym.FullyConnected(
            h, weight=u, num_hidden=4, no_bias=True)
        if kind == "deep":
            made = mx.sym.Activation(made, act_type="sigmoid") * mx.sym.exp(-made) + mx.sym.broadcast_mul(
                mx.sym.mean(h, axis=1, keepdims=True), made)
        elif kind == "norm":
            made = mx.sym.LayerNorm(made, gamma=b, beta=b) * mx.sym.softmax(h)
        else:
            made = mx.sym.tanh(made)
        return made

    return step


CELL_VALUES = {"x": numbers(0, 5, 2, 3), "h": numbers(1, 2, 4), "w": numbers(2, 4, 3), "b": numbers(3, 4),
               "u": numbers(4, 4, 4)}


def unrolled(step, length=5):
    """The graph of `looped`, step by step."""
    steps = mx.sym.split(mx.sym.Variable("x"), num_outputs=length, axis=0, squeeze_axis=1)
    state, outputs = mx.sym.Variable("h"), []
    for i in range(length):
        state = step(steps[i], state)
        outputs.append(state * 2)
    return mx.sym.Group([mx.sym.stack(*outputs, axis=0), state])


def looped(step):
    """A loop over the slices of x."""
    return G.foreach(lambda x, h: (lambda made: (made * 2, made))(step(x, h)), G.x, G.h)


def power(limit):
    """A loop that ends by its condition, or after `limit` steps."""
    w = G.w
    return G.while_loop(lambda i, s: mx.sym.sum(s) < 20, lambda i, s: (s * w, [i + 1, s * w + i]), [G.i, G.s], limit)


def unrolled_once(symbol):
    """The symbol, with one variable in the place of several of one name."""
    return symbol(**{name: mx.sym.Variable(name) for name in dict.fromkeys(symbol.list_arguments())})
