"""Operators that resample images as reductions over windows."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.ops.shapes.resize import adaptive_size
from mxc.compiler.passes.registry import Options
from mxc.compiler.passes.resizing import longest_windows


def adaptive_pooling(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The mean over space where the output has one element, average pooling where all windows are of one size."""
    data = inputs[0]
    shape, out = builder.shape(data), adaptive_size(node.params)
    if out == (1, 1):
        return [builder.make("mean", data, axis=(2, 3), keepdims=True, name=node.name)]
    kernel = longest_windows(shape[2:], out)
    if all(n % o == 0 for n, o in zip(shape[2:], out, strict=True)):
        return [builder.make("Pooling", data, kernel=kernel, stride=kernel, pool_type="avg", name=node.name)]
    return [builder.make("_mxc_adaptive_pool", data, kernel=kernel, shape=(*shape[:2], *out), name=node.name)]
