"""Random small graphs: every pass keeps what they compute."""
from __future__ import annotations

import numpy as np
import pytest
from pass_checks import assert_same_numbers, options

from mxc.compiler.graph.graph import Entry, Graph, GraphBuilder, Sink
from mxc.compiler.passes.cse import cse
from mxc.compiler.passes.decompose import decompose
from mxc.compiler.passes.layout import layout
from mxc.compiler.passes.recompute import recompute
from mxc.compiler.passes.simplify import simplify

SAME_SHAPE = ("elemwise_add", "elemwise_sub", "elemwise_mul", "_maximum", "_minimum")
BROADCAST = ("broadcast_add", "broadcast_sub", "broadcast_mul", "broadcast_maximum")
UNARY = ("relu", "tanh", "sigmoid", "negative", "square", "abs", "_copy", "BlockGrad", "floor")
SCALAR = ("_plus_scalar", "_minus_scalar", "_mul_scalar", "_div_scalar", "_rminus_scalar")
REDUCTION = ("sum", "mean", "max")


def random_graph(seed: int) -> Graph:
    """Some twenty operators over two arguments and constants, in float32 or int32."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    dtype = "int32" if seed % 5 == 4 else "float32"
    entries = [builder.variable("x", (2, 3, 4), dtype), builder.variable("w", (1, 3, 1), dtype),
               builder.make("_full", shape=(2, 3, 4), value=float(rng.integers(0, 3)), dtype=dtype),
               builder.make("_zeros", shape=(3, 4), dtype=dtype)]
    for _ in range(20):
        entries.append(_random_node(rng, builder, entries, dtype))
    outputs = [entries[i] for i in (-1, -2, -3)]
    return builder.finish(outputs, [Sink("output", e.node.name) for e in outputs])


def _random_node(rng: np.random.Generator, builder: GraphBuilder, entries: list[Entry], dtype: str) -> Entry:
    x = entries[rng.integers(len(entries))]
    shape = builder.shape(x)
    kind = rng.integers(8)
    if kind == 0:
        alike = [e for e in entries if builder.shape(e) == shape]
        return builder.make(str(rng.choice(SAME_SHAPE)), x, alike[rng.integers(len(alike))])
    if kind == 1:
        fitting = [e for e in entries if _broadcasts(shape, builder.shape(e))]
        return builder.make(str(rng.choice(BROADCAST)), x, fitting[rng.integers(len(fitting))])
    if kind == 2:
        return builder.make(str(rng.choice(UNARY)), x)
    if kind == 3:
        return builder.make(str(rng.choice(SCALAR)), x, scalar=float(rng.choice([0, 1, 2, 0.5, 3])))
    if kind == 4:
        return builder.make(str(rng.choice(REDUCTION)), x, axis=(int(rng.integers(len(shape))),), keepdims=True)
    if kind == 5:
        new = [shape[::-1], (shape[0], -1), (-1, *shape[1:])][rng.integers(3)]
        return builder.make("Reshape", x, shape=tuple(new))
    if kind == 6:
        return builder.make("transpose", x, axes=tuple(int(a) for a in rng.permutation(len(shape))))
    return builder.make("Activation", x, act_type="softsign") if dtype == "float32" else builder.make("ones_like", x)


def _broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


@pytest.mark.parametrize("seed", range(24))
def test_random_graph(seed):
    graph = random_graph(seed)
    for each in (decompose, simplify, cse, layout, recompute):
        after = each(graph, options())
        assert_same_numbers(graph, after, rtol=1e-4, atol=1e-5)
        graph = after
    assert len(graph.nodes) <= len(recompute(decompose(random_graph(seed), options()), options()).nodes)
