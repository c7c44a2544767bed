"""Short programs with gradients and executors, written once for MXNet and mxc: what they answer or raise.

With MXNet's Python, `training_calls.py` writes what MXNet 1.9.1 answers to training_calls.json, a line for each program;
tests/test_training_calls.py compares mxc's.
"""
import math
from pathlib import Path

import numpy as np

DTYPES = ("float32", "float64", "float16")
EDGES = (math.nan, -1, 0, 1, math.inf, -math.inf)


def _listed(values):
    """Numbers as JSON has them, which knows no NaN: text for what is not finite, the rest with the digits of float16
    less two."""
    return [[float(f"{v:.3g}") if math.isfinite(v) else str(v) for v in np.asarray(value, "float64").ravel().tolist()]
            for value in values]


def _raised(call):
    """What a call gives, or the names of the class of what it raises and of that class's bases."""
    try:
        return call()
    except Exception as error:
        names = [c.__name__ for c in type(error).__mro__]
        return names[:names.index("Exception")]


# ---- what functions and their gradients are where an argument is not finite

def _at_edges(function):
    def call(mx):
        found = {}
        for dtype in DTYPES:
            x = mx.nd.array(EDGES, dtype=dtype)
            x.attach_grad()
            with mx.autograd.record():
                y = function(mx.nd, x)
            y.backward()
            found[dtype] = _listed([y.asnumpy(), x.grad.asnumpy()])
        return found

    return call


def _of_two(name):
    def call(mx):
        x, y = (mx.nd.array(v) for v in ([math.nan, 1, math.nan, 0], [1, math.nan, math.nan, 0]))
        x.attach_grad()
        y.attach_grad()
        with mx.autograd.record():
            z = getattr(mx.nd, name)(x, y)
        z.backward()
        return _listed([z.asnumpy(), x.grad.asnumpy(), y.grad.asnumpy()])

    return call


def _leaky(kind):
    return lambda nd, x: nd.LeakyReLU(x.reshape((1, -1)), act_type=kind).reshape((-1,))


NOT_FINITE = {name: _at_edges(lambda nd, x, name=name: getattr(nd, name)(x)) for name in (
    "relu", "abs", "sign", "hard_sigmoid", "softsign", "sigmoid", "floor", "round", "sqrt", "rsqrt", "square", "cbrt",
    "log1p", "arctanh", "erf", "reciprocal", "max", "min")}
NOT_FINITE |= {f"Activation {kind}": _at_edges(lambda nd, x, kind=kind: nd.Activation(x, act_type=kind))
               for kind in ("relu", "sigmoid", "softrelu", "softsign", "tanh")}
NOT_FINITE |= {f"LeakyReLU {kind}": _at_edges(_leaky(kind)) for kind in ("leaky", "elu", "gelu")}
NOT_FINITE |= {name: _of_two(name) for name in (
    "broadcast_maximum", "broadcast_minimum", "broadcast_hypot", "broadcast_mod", "broadcast_power")}
NOT_FINITE |= {
    "clip": _at_edges(lambda nd, x: nd.clip(x, -0.5, 0.5)),
    "maximum of 0": _at_edges(lambda nd, x: nd.maximum(x, 0.0)),
    "minimum of 0": _at_edges(lambda nd, x: nd.minimum(x, 0.0)),
    "maximum of zeros": _at_edges(lambda nd, x: nd.maximum(nd.zeros_like(x), x)),
    "minimum of zeros": _at_edges(lambda nd, x: nd.minimum(nd.zeros_like(x), x)),
    "prelu": _at_edges(lambda nd, x: nd.LeakyReLU(x.reshape((1, -1)), nd.array([0.3] * 6, dtype=x.dtype),
                                                 act_type="prelu").reshape((-1,))),
    "smooth_l1": _at_edges(lambda nd, x: nd.smooth_l1(x, scalar=1.0)), "x % 2": _at_edges(lambda nd, x: x % 2.0),
    "2 % x": _at_edges(lambda nd, x: 2.0 % x), "x ** 0": _at_edges(lambda nd, x: x ** 0.0),
    "x ** 1": _at_edges(lambda nd, x: x ** 1.0), "x ** 2": _at_edges(lambda nd, x: x ** 2.0),
    "2 ** x": _at_edges(lambda nd, x: 2.0 ** x), "where": _at_edges(lambda nd, x: nd.where(x, x, x * 2)),
    "norm of ord 1": _at_edges(lambda nd, x: nd.norm(x, ord=1)), "x if x > 0": _at_edges(lambda nd, x: (x > 0.0) * x)}

FAMILIES = {"not finite": NOT_FINITE}


def answer(mx, case):
    """What MXNet, or mxc, says of a program: `FAMILY: NAME`."""
    family, name = case.split(": ", 1)
    return _raised(lambda: FAMILIES[family][name](mx))


CASES = [f"{family}: {name}" for family, programs in FAMILIES.items() for name in programs]

if __name__ == "__main__":
    import answers

    answers.run(__file__, Path(__file__).with_suffix(".json"), CASES, answer)
