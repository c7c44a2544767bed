"""mxc and MXNet: both read the same symbol and take the same calls."""
from __future__ import annotations

import importlib
import json
from collections.abc import Callable

import numpy as np
from peers.graph import LEARNING_RATE, Case


def versions(peer: str) -> dict[str, str]:
    module = importlib.import_module(peer)
    return {peer: module.__version__, "numpy": np.__version__}


def make(peer: str, case: Case, on_gpu: bool = False) -> tuple[Callable[[], None], Callable[[], list[np.ndarray]]]:
    mx = importlib.import_module(peer)
    place = mx.gpu(0) if on_gpu else mx.cpu()
    symbol = mx.sym.load_json(json.dumps(case.graph))
    requests = {n: "write" if n in case.wrt else "null" for n in case.shapes}
    executor = symbol.simple_bind(place, grad_req=requests, **case.shapes)
    arrays = case.arrays()
    for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
        array[:] = arrays[name]
    mx.nd.waitall()

    def forward() -> None:
        for output in executor.forward(is_train=False):
            output.wait_to_read()

    if case.mode == "forward":
        return forward, lambda: [output.asnumpy() for output in executor.outputs]
    heads = None if case.mode == "step" else [mx.nd.array(h, ctx=place) for h in case.head_gradients()]
    pairs = [(executor.arg_dict[n], executor.grad_dict[n]) for n in case.wrt]
    update = getattr(mx.nd, "sgd_update", None)

    def backward() -> None:
        executor.forward(is_train=True)
        executor.backward(heads)
        if case.mode == "step":
            for weight, gradient in pairs:
                if update is not None:
                    update(weight, gradient, lr=LEARNING_RATE, wd=0, out=weight)
                else:
                    weight -= LEARNING_RATE * gradient
        mx.nd.waitall()

    return backward, lambda: [gradient.asnumpy() for _, gradient in pairs]
