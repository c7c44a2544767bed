"""The fused chains on large arrays, as each peer writes them.

`make(peer)` gives {case: function that computes it once and waits for the result}. The arrays are the same for all:
float32, `SIZE` elements, or ROWS x COLUMNS for the row-wise cases.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

SIZE = 1 << 24
ROWS, COLUMNS = 1 << 14, 1 << 10
NAMES = ("chain", "gelu", "softmax", "layernorm")
TEXT = {
    "chain": "relu(a*x + b) * sigmoid(c) + d",
    "gelu": "0.5*x*(1 + tanh(0.79788456*(x + 0.044715*x^3)))",
    "softmax": f"softmax over rows of {COLUMNS}",
    "layernorm": f"(x - mean)/sqrt(var + 1e-5)*g + b over rows of {COLUMNS}",
}
Cases = dict[str, Callable[[], np.ndarray]]
K0, K1 = 0.7978845608028654, 0.044715


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {name: rng.standard_normal(SIZE, dtype=np.float32) for name in "axbcd"}
    made["rows"] = made["x"].reshape(ROWS, COLUMNS)
    made["g"], made["h"] = (rng.standard_normal(COLUMNS, dtype=np.float32) for _ in range(2))
    return made


def _numpy(v: dict[str, np.ndarray]) -> Cases:
    def softmax() -> np.ndarray:
        e = np.exp(v["rows"] - v["rows"].max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def layernorm() -> np.ndarray:
        centred = v["rows"] - v["rows"].mean(1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(1, keepdims=True) + np.float32(1e-5)) * v["g"] + v["h"]

    def gelu() -> np.ndarray:
        x = v["x"]
        return np.float32(0.5) * x * (1 + np.tanh(np.float32(K0) * (x + np.float32(K1) * x * x * x)))

    return {"chain": lambda: np.maximum(v["a"] * v["x"] + v["b"], 0) / (1 + np.exp(-v["c"])) + v["d"],
            "gelu": gelu, "softmax": softmax, "layernorm": layernorm}


def _numexpr(v: dict[str, np.ndarray]) -> Cases:
    import numexpr

    one, half, zero = np.float32(1), np.float32(0.5), np.float32(0)
    names = {**v, "one": one, "half": half, "zero": zero, "k0": np.float32(K0), "k1": np.float32(K1)}
    chain = "where(a*x + b > zero, a*x + b, zero) / (one + exp(-c)) + d"
    return {"chain": lambda: numexpr.evaluate(chain, names),
            "gelu": lambda: numexpr.evaluate("half*x*(one + tanh(k0*(x + k1*x*x*x)))", names)}


def _symbolic(mx, v: dict[str, np.ndarray], ready: Callable) -> Cases:
    """MXNet and mxc: the same Symbol program."""
    s = mx.sym
    x, rows = s.Variable("x"), s.Variable("rows")
    mean = s.mean(rows, axis=1, keepdims=True)
    centred = s.broadcast_sub(rows, mean)
    deviation = s.sqrt(s.mean(s.square(centred), axis=1, keepdims=True) + 1e-5)
    scaled = s.broadcast_mul(s.broadcast_div(centred, deviation), s.Variable("g"))
    graphs = {
        "chain": s.relu(s.Variable("a") * x + s.Variable("b")) * s.sigmoid(s.Variable("c")) + s.Variable("d"),
        "gelu": 0.5 * x * (1 + s.tanh(K0 * (x + K1 * x * x * x))),
        "softmax": s.softmax(rows, axis=1),
        "layernorm": s.broadcast_add(scaled, s.Variable("h")),
    }
    cases = {}
    for name, graph in graphs.items():
        shapes = {n: (v[n].shape if v[n].ndim == 2 or n in "axbcd" else (1, COLUMNS)) for n in graph.list_arguments()}
        executor = graph.simple_bind(mx.cpu(), grad_req="null", **shapes)
        for n, array in executor.arg_dict.items():
            array[:] = v[n].reshape(array.shape)
        cases[name] = partial(ready, executor)
    return cases


def _mxc(v: dict[str, np.ndarray]) -> Cases:
    import mxc

    return _symbolic(mxc, v, lambda executor: executor.forward(is_train=False)[0])


def _mxnet(v: dict[str, np.ndarray]) -> Cases:
    import mxnet

    def ready(executor):
        output = executor.forward(is_train=False)[0]
        output.wait_to_read()
        return output

    return _symbolic(mxnet, v, ready)


def _torch_functions(torch, t: dict) -> Cases:
    return {
        "chain": lambda a, x, b, c, d: torch.relu(a * x + b) * torch.sigmoid(c) + d,
        "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "softmax": lambda rows: torch.softmax(rows, 1),
        "layernorm": lambda rows, g, h: torch.nn.functional.layer_norm(rows, (COLUMNS,), g, h, 1e-5),
    }


ARGUMENTS = {"chain": "axbcd", "gelu": "x", "softmax": ("rows",), "layernorm": ("rows", "g", "h")}


def _torch(v: dict[str, np.ndarray], compiled: bool = False) -> Cases:
    import os

    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    t = {name: torch.from_numpy(array) for name, array in v.items()}

    def run(function: Callable, names) -> object:
        with torch.inference_mode():
            return function(*[t[n] for n in names])

    functions = _torch_functions(torch, t)
    if compiled:
        functions = {name: torch.compile(f) for name, f in functions.items()}
    return {name: partial(run, f, ARGUMENTS[name]) for name, f in functions.items()}


def _jax(v: dict[str, np.ndarray]) -> Cases:
    import jax
    import jax.numpy as jnp

    t = {name: jnp.asarray(array) for name, array in v.items()}

    def layernorm(rows, g, h):
        centred = rows - rows.mean(1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(1, keepdims=True) + 1e-5) * g + h

    functions = {
        "chain": lambda a, x, b, c, d: jax.nn.relu(a * x + b) * jax.nn.sigmoid(c) + d,
        "gelu": lambda x: jax.nn.gelu(x, approximate=True),
        "softmax": lambda rows: jax.nn.softmax(rows, 1),
        "layernorm": layernorm,
    }
    jitted = {name: jax.jit(f) for name, f in functions.items()}
    return {name: partial(lambda f, names: f(*[t[n] for n in names]).block_until_ready(), f, ARGUMENTS[name])
            for name, f in jitted.items()}


PEERS: dict[str, Callable[[dict[str, np.ndarray]], Cases]] = {
    "mxc": _mxc, "numpy": _numpy, "numexpr": _numexpr, "mxnet": _mxnet, "torch": _torch,
    "torch.compile": partial(_torch, compiled=True), "jax": _jax,
}


def make(peer: str) -> Cases:
    return PEERS[peer](arrays())


def as_array(result) -> np.ndarray:
    """A peer's result as a NumPy array."""
    return result.asnumpy() if hasattr(result, "asnumpy") else np.asarray(result)
