"""Small networks, run by executors. As a program, for the MXC_CPU of its environment:

    python tests/level_networks.py inference|training FILE.npz
"""
from __future__ import annotations

import sys

import networks
import numpy as np

import mxc as mx
from mxc.symbol import Symbol

Shapes = dict[str, tuple[int, ...]]


def built() -> dict[str, tuple[Symbol, Shapes]]:
    """Networks and the shapes of their inputs, by name."""
    lstm, shape = networks.layer("lstm")
    return {"LeNet": (networks.lenet(), {"data": (2, 1, 8, 8), "softmax_label": (2,)}),
            "residual": (networks.small_resnet(), {"data": (2, 3, 14, 15)}),
            "mobile": (networks.small_mobile(), {"data": (2, 3, 21, 20)}),
            "LSTM": (lstm, {"data": shape})}


def values(symbol: Symbol, shapes: Shapes) -> dict[str, np.ndarray]:
    """Arguments and auxiliary states, by name: labels are 0, variances positive."""
    rng, found = np.random.default_rng(0), {}
    arguments, _, auxiliary = symbol.infer_shape(**shapes)
    for name, shape in (*zip(symbol.list_arguments(), arguments, strict=True),
                        *zip(symbol.list_auxiliary_states(), auxiliary, strict=True)):
        found[name] = rng.standard_normal(shape).astype("float32") * (1 if name == "data" else 0.3)
        if name.endswith(("gamma", "var")):
            found[name] = np.abs(found[name]) + np.float32(0.5)
        elif name.endswith("label"):
            found[name][...] = 0
    return found


def results(train: bool) -> dict[str, np.ndarray]:
    """What each network gives, and in training its gradients."""
    rng, found = np.random.default_rng(1), {}
    for name, (symbol, shapes) in built().items():
        executor = symbol.simple_bind(mx.cpu(), grad_req="write" if train else "null", **shapes)
        given = values(symbol, shapes)
        executor.copy_params_from({n: mx.nd.array(a) for n, a in given.items() if n in executor.arg_dict},
                                  {n: mx.nd.array(a) for n, a in given.items() if n in executor.aux_dict})
        output = executor.forward(is_train=train)[0]
        found[name] = output.asnumpy()
        if train:  # equal head gradients would vanish behind BatchNorm
            executor.backward(mx.nd.array(rng.standard_normal(output.shape)))
            found |= {f"{name}, gradient of {n}": a.asnumpy() for n, a in executor.grad_dict.items() if a is not None}
    return found


if __name__ == "__main__":
    np.savez(sys.argv[2], **results(sys.argv[1] == "training"))
