"""torch, eager and compiled: the case's graph in torch.nn.functional's terms, weights as parameters of a module.

Inference is compiled with frozen weights, so that normalization folds into convolutions as it does elsewhere.
"""
from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch._inductor.config
import torch.nn.functional as F
from peers import graph
from peers.graph import LEARNING_RATE, Case, Unsupported

Tensor = torch.Tensor
ACTIVATIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh}


def convolution(x: Tensor, w: Tensor, b: Tensor | None = None, **attrs: Any) -> Tensor:
    rank = len(attrs["kernel"])
    if rank != 2:
        raise Unsupported(f"Convolution of rank {rank}")
    return F.conv2d(x, w, b, graph.pair(attrs, "stride", rank, 1), graph.pair(attrs, "pad", rank, 0),
                    graph.pair(attrs, "dilate", rank, 1), int(attrs.get("num_group", 1)))


def fully_connected(x: Tensor, w: Tensor, b: Tensor | None = None, flatten: bool = True, **_: Any) -> Tensor:
    return F.linear(x.flatten(1) if flatten and x.ndim > 2 else x, w, b)


def pooling(x: Tensor, pool_type: str = "max", **attrs: Any) -> Tensor:
    if attrs.get("global_pool"):
        return x.mean((2, 3), keepdim=True) if pool_type == "avg" else x.amax((2, 3), keepdim=True)
    kernel, stride, padding = graph.pooling(attrs, tuple(x.shape[2:]))
    if pool_type == "max":
        return F.max_pool2d(x, kernel, stride, [p[0] for p in padding], ceil_mode=any(a != b for a, b in padding))
    if any(a != b for a, b in padding) or not attrs.get("count_include_pad", True):
        raise Unsupported("this average pooling")
    return F.avg_pool2d(x, kernel, stride, [p[0] for p in padding])


def batch_norm(x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, var: Tensor, eps: float = 1e-3,
               momentum: float = 0.9, fix_gamma: bool = True, **_: Any) -> Tensor:
    if fix_gamma:
        gamma = torch.ones_like(gamma)
    return F.batch_norm(x, mean, var, gamma, beta, torch.is_grad_enabled(), 1 - momentum, eps)


def leaky_relu(x: Tensor, act_type: str = "leaky", slope: float = 0.25, **_: Any) -> Tensor:
    if act_type not in ("leaky", "gelu"):
        raise Unsupported(f"LeakyReLU {act_type}")
    return F.gelu(x) if act_type == "gelu" else F.leaky_relu(x, slope)


def softmax_output(x: Tensor, label: Tensor, **_: Any) -> Tensor:
    """The probabilities; when gradients are recorded, the loss whose gradient the operator gives."""
    if torch.is_grad_enabled():
        return F.cross_entropy(x, label.long(), reduction="sum")
    return torch.softmax(x, 1)


def rnn(x: Tensor, parameters: Tensor, *states: Tensor, mode: str = "", state_size: int = 0, num_layers: int = 1,
        state_outputs: bool = False, **attrs: Any) -> Tensor | tuple[Tensor, ...]:
    """The packed vector holds every layer's two matrices, then every layer's two biases; gates are ordered alike."""
    if mode != "lstm" or attrs.get("bidirectional"):
        raise Unsupported(f"RNN {mode}")
    weights, at = [], 0
    sizes = [size for layer in range(num_layers)
             for size in ((4 * state_size, x.shape[2] if layer == 0 else state_size), (4 * state_size, state_size))]
    for size in sizes + [(4 * state_size,)] * (2 * num_layers):
        weights.append(parameters[at:at + math.prod(size)].view(size))
        at += math.prod(size)
    ordered = [w for i in range(num_layers)
               for w in (*weights[2 * i:2 * i + 2], *weights[2 * (num_layers + i):2 * (num_layers + i) + 2])]
    outputs = torch.lstm(x, states, ordered, True, num_layers, 0.0, torch.is_grad_enabled(), False, False)
    return outputs if state_outputs else outputs[0]


def slice_like(x: Tensor, like: Tensor, axes: tuple[int, ...] = (), **_: Any) -> Tensor:
    for axis in axes or range(x.ndim):
        x = x.narrow(axis, 0, like.shape[axis])
    return x


OPS: dict[str, Callable] = {
    "Convolution": convolution, "FullyConnected": fully_connected, "Pooling": pooling, "BatchNorm": batch_norm,
    "LeakyReLU": leaky_relu, "SoftmaxOutput": softmax_output, "RNN": rnn,
    "batch_dot": graph.batch_dot, "Reshape": graph.reshape, "slice_like": slice_like,
    "Activation": lambda x, act_type: ACTIVATIONS[act_type](x),
    "LayerNorm": lambda x, g, b, eps=1e-5, axis=-1: F.layer_norm(x, x.shape[-1:], g, b, eps),
    "Concat": lambda *xs, dim=1, **_: torch.cat(xs, dim),
    "Dropout": lambda x, **_: x,
    "Flatten": lambda x: x.flatten(1),
    "clip": lambda x, a_min, a_max: x.clamp(a_min, a_max),
    "dot": torch.matmul,
    "repeat": lambda x, repeats, axis: x.repeat_interleave(repeats, axis),
    "softmax": lambda x, axis=-1, **_: torch.softmax(x, axis),
    "transpose": lambda x, axes: x.permute(axes),
    "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "exp": torch.exp, "square": torch.square,
    "elemwise_add": torch.add, "elemwise_sub": torch.sub, "elemwise_mul": torch.mul,
    "broadcast_add": torch.add, "broadcast_mul": torch.mul,
    "_plus_scalar": lambda x, scalar, **_: x + scalar,
    "_mul_scalar": lambda x, scalar, **_: x * scalar,
}


class Network(torch.nn.Module):
    """The graph as a module: its parameters and states are the module's, `forward` takes the case's inputs."""

    def __init__(self, case: Case, device: str):
        super().__init__()
        expressions = {name: f"inputs[{i}]" for i, name in enumerate(case.inputs)}
        arrays = case.arrays()
        for i, name in enumerate([*case.shapes, *case.aux]):
            if name in expressions:
                continue
            expressions[name] = f"self.p{i}"
            tensor = torch.from_numpy(arrays[name]).to(device)
            if name in case.wrt:
                self.register_parameter(f"p{i}", torch.nn.Parameter(tensor))
            else:
                self.register_buffer(f"p{i}", tensor)
        self.run = graph.function(case, OPS, expressions, "self, inputs")
        self.inputs = [torch.from_numpy(arrays[name]).to(device).requires_grad_(name in case.wrt)
                       for name in case.inputs]
        places = {name: i for i, name in enumerate([*case.shapes, *case.aux])}
        self.sources = [self.inputs[case.inputs.index(name)] if name in case.inputs
                        else getattr(self, f"p{places[name]}") for name in case.wrt]

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        return self.run(self, inputs)


def versions(peer: str) -> dict[str, str]:
    return {"torch": torch.__version__}


def make(peer: str, case: Case, device: str = "cpu") -> tuple[Callable[[], None], Callable[[], list[np.ndarray]]]:
    """device: where it runs. On a GPU a run ends when all is computed, and the compiled form is launched as a CUDA
    graph, which is torch's quickest."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch._dynamo.reset()
    torch._inductor.config.freezing = case.mode == "forward"
    network, is_gpu = Network(case, device), device != "cpu"
    call = network
    if peer == "torch.compile":
        call = torch.compile(network, mode="reduce-overhead" if is_gpu else "default")
    wait = torch.cuda.synchronize if is_gpu else lambda: None
    found: list[Tensor] = []

    def fetch() -> list[np.ndarray]:
        return [t.detach().cpu().numpy() for t in found]

    def forward() -> None:
        with torch.no_grad():
            found[:] = call(*network.inputs)
        wait()

    if case.mode == "forward":
        network.eval()
        return forward, fetch
    heads = None if case.mode == "step" else [torch.from_numpy(h).to(device) for h in case.head_gradients()]

    def backward() -> None:
        outputs = call(*network.inputs)[:len(heads) if heads else 1]
        found[:] = torch.autograd.grad(outputs, network.sources, heads)
        if case.mode == "step":
            with torch.no_grad():
                torch._foreach_add_(network.sources, found, alpha=-LEARNING_RATE)
        wait()

    return backward, fetch
