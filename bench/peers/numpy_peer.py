"""NumPy (with its OpenBLAS) and numexpr: matrix products and the fused chains as one writes them there."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from peers.graph import Case, Unsupported

F = np.float32


def _softmax(rows: np.ndarray) -> np.ndarray:
    e = np.exp(rows - rows.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    return e


def _layernorm(rows: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(1, keepdims=True) + F(1e-5)) * gamma + beta


def _gelu(x: np.ndarray) -> np.ndarray:
    return F(0.5) * x * (1 + np.tanh(F(0.7978845608028654) * (x + F(0.044715) * x * x * x)))


NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "chain": lambda a, x, b, c, d: np.maximum(a * x + b, 0) / (1 + np.exp(-c)) + d,
    "gelu tanh": _gelu, "softmax": _softmax, "layernorm": _layernorm,
}
NUMEXPR = {"chain": "where(a*x + b > zero, a*x + b, zero) / (one + exp(-c)) + d",
           "gelu tanh": "half*x*(one + tanh(k0*(x + k1*x*x*x)))"}
CONSTANTS = {"one": F(1), "half": F(0.5), "zero": F(0), "k0": F(0.7978845608028654), "k1": F(0.044715)}


def versions(peer: str) -> dict[str, str]:
    if peer == "numexpr":
        import numexpr

        return {"numexpr": numexpr.__version__}
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index, call-overload]
    return {"numpy": np.__version__, blas["name"]: blas["version"]}


def make(peer: str, case: Case) -> tuple[Callable[[], None], Callable[[], list[np.ndarray]]]:
    arrays = case.arrays()
    call: Callable[[], np.ndarray]
    if peer == "numexpr":
        import numexpr

        if case.name not in NUMEXPR:
            raise Unsupported("no such expression")
        call = partial(numexpr.evaluate, NUMEXPR[case.name], {**arrays, **CONSTANTS})
    elif case.name in NUMPY:
        call = partial(NUMPY[case.name], *[arrays[name] for name in case.shapes])
    elif case.name.startswith("sgemm"):
        out = np.empty(case.heads[0], F)
        call = partial(np.dot, *[arrays[name] for name in case.shapes], out=out)
    else:
        raise Unsupported("not written in NumPy")
    found: list[np.ndarray] = []

    def run() -> None:
        found[:] = [call()]

    return run, lambda: found
