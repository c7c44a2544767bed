"""jax: the case's graph in jax.lax's terms, one jitted function."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from peers import graph
from peers.graph import LEARNING_RATE, Case, Unsupported

Array = jax.Array
ACTIVATIONS = {"relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "tanh": jnp.tanh}


def convolution(x: Array, w: Array, b: Array | None = None, **attrs: Any) -> Array:
    rank = len(attrs["kernel"])
    y = lax.conv_general_dilated(x, w, graph.pair(attrs, "stride", rank, 1),
                                 [(p, p) for p in graph.pair(attrs, "pad", rank, 0)],
                                 rhs_dilation=graph.pair(attrs, "dilate", rank, 1),
                                 feature_group_count=int(attrs.get("num_group", 1)))
    return y if b is None else y + b.reshape(-1, *[1] * rank)


def fully_connected(x: Array, w: Array, b: Array | None = None, flatten: bool = True, **_: Any) -> Array:
    y = (x.reshape(x.shape[0], -1) if flatten else x) @ w.T
    return y if b is None else y + b


def pooling(x: Array, pool_type: str = "max", **attrs: Any) -> Array:
    kernel, stride, padding = graph.pooling(attrs, x.shape[2:])
    window: tuple[Any, ...] = (1, 1, *kernel), (1, 1, *stride), [(0, 0), (0, 0), *padding]
    if pool_type == "max":
        return lax.reduce_window(x, -jnp.inf, lax.max, *window)
    if any(a != b for a, b in padding) or not attrs.get("count_include_pad", True):
        raise Unsupported("this average pooling")
    return lax.reduce_window(x, 0.0, lax.add, *window) / float(np.prod(kernel))


def batch_norm(x: Array, gamma: Array, beta: Array, mean: Array, var: Array, eps: float = 1e-3,
               fix_gamma: bool = True, **_: Any) -> Array:
    """By the moving statistics."""
    scale = lax.rsqrt(var + eps) * (1 if fix_gamma else gamma)
    return x * scale[:, None, None] + (beta - mean * scale)[:, None, None]


def leaky_relu(x: Array, act_type: str = "leaky", slope: float = 0.25, **_: Any) -> Array:
    if act_type not in ("leaky", "gelu"):
        raise Unsupported(f"LeakyReLU {act_type}")
    return jax.nn.gelu(x, approximate=False) if act_type == "gelu" else jnp.where(x > 0, x, slope * x)


@jax.custom_vjp
def _softmax_loss(x: Array, label: Array) -> Array:
    return jax.nn.softmax(x)


def _softmax_loss_forward(x: Array, label: Array) -> tuple[Array, tuple[Array, Array]]:
    y = jax.nn.softmax(x)
    return y, (y, label)


def _softmax_loss_backward(kept: tuple[Array, Array], _: Array) -> tuple[Array, None]:
    y, label = kept
    return y - jax.nn.one_hot(label.astype(jnp.int32), y.shape[1]), None


_softmax_loss.defvjp(_softmax_loss_forward, _softmax_loss_backward)


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float = 1e-5, axis: int = -1) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + eps) * gamma + beta


def slice_like(x: Array, like: Array, axes: tuple[int, ...] = (), **_: Any) -> Array:
    for axis in axes or range(x.ndim):
        x = lax.slice_in_dim(x, 0, like.shape[axis], axis=axis)
    return x


OPS: dict[str, Callable] = {
    "Convolution": convolution, "FullyConnected": fully_connected, "Pooling": pooling, "BatchNorm": batch_norm,
    "LeakyReLU": leaky_relu, "LayerNorm": layer_norm, "batch_dot": graph.batch_dot, "Reshape": graph.reshape,
    "slice_like": slice_like,
    "SoftmaxOutput": lambda x, label, **_: _softmax_loss(x, label),
    "Activation": lambda x, act_type: ACTIVATIONS[act_type](x),
    "Concat": lambda *xs, dim=1, **_: jnp.concatenate(xs, dim),
    "Dropout": lambda x, **_: x,
    "Flatten": lambda x: x.reshape(x.shape[0], -1),
    "clip": lambda x, a_min, a_max: jnp.clip(x, a_min, a_max),
    "dot": jnp.dot,
    "repeat": lambda x, repeats, axis: jnp.repeat(x, repeats, axis),
    "softmax": lambda x, axis=-1, **_: jax.nn.softmax(x, axis),
    "transpose": lambda x, axes: x.transpose(axes),
    "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid, "tanh": jnp.tanh, "exp": jnp.exp, "square": jnp.square,
    "elemwise_add": jnp.add, "elemwise_sub": jnp.subtract, "elemwise_mul": jnp.multiply,
    "broadcast_add": jnp.add, "broadcast_mul": jnp.multiply,
    "_plus_scalar": lambda x, scalar, **_: x + scalar,
    "_mul_scalar": lambda x, scalar, **_: x * scalar,
}


def versions(peer: str) -> dict[str, str]:
    return {"jax": jax.__version__}


def make(peer: str, case: Case) -> tuple[Callable[[], None], Callable[[], list[np.ndarray]]]:
    ops = {n.op for n in case.nodes}
    if case.mode != "forward" and ops & {"BatchNorm", "Dropout"}:
        raise Unsupported("no BatchNorm or Dropout in training")
    run = graph.function(case, OPS, {name: f"values[{name!r}]" for name in [*case.shapes, *case.aux]}, "values")
    values = {name: jnp.asarray(array) for name, array in case.arrays().items()}
    found: list[Array] = []
    if case.mode == "forward":
        inference = jax.jit(run)

        def forward() -> None:
            found[:] = jax.block_until_ready(inference(values))

        return forward, lambda: [np.asarray(a) for a in found]
    heads = [jnp.asarray(h) for h in case.head_gradients()]

    def gradients(weights: dict[str, Array], rest: dict[str, Array]) -> dict[str, Array]:
        _, back = jax.vjp(lambda w: run({**w, **rest}), weights)
        return back(heads)[0]

    def step(weights: dict[str, Array], rest: dict[str, Array]) -> dict[str, Array]:
        return jax.tree.map(lambda w, g: w - LEARNING_RATE * g, weights, gradients(weights, rest))

    weights = {name: values[name] for name in case.wrt}
    rest = {name: array for name, array in values.items() if name not in weights}
    differentiate, train = jax.jit(gradients), jax.jit(step, donate_argnums=0)
    first = differentiate(weights, rest)
    state = [weights]

    def backward() -> None:
        state[0] = jax.block_until_ready(train(state[0], rest) if case.mode == "step" else differentiate(weights, rest))

    return backward, lambda: [np.asarray(first[name]) for name in case.wrt]
