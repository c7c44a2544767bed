"""Gradients of operators that move elements: the same elements moved back, or added where they came from."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.gradients.context import Gradient


def reshape(g: Gradient) -> list[Entry | None]:
    """Reshape, Flatten, expand_dims, squeeze, reshape_like: the input's shape again; a shape-giving input gets none."""
    return [as_shape(g.builder, g.og, g.shape(g.inputs[0])), *[None] * (len(g.inputs) - 1)]


def transpose(g: Gradient) -> list[Entry | None]:
    """The inverse permutation; without axes the order was reversed."""
    ndim = len(g.shape(g.inputs[0]))
    axes = tuple(a % ndim for a in g.params.axes) or tuple(range(ndim))[::-1]
    inverse = tuple(axes.index(i) for i in range(ndim))
    return [g.make("transpose", g.og, axes=inverse)]


def concat(g: Gradient) -> list[Entry | None]:
    """Each input's slice."""
    axis = g.params.dim % len(g.shape(g.outputs[0]))
    backs: list[Entry | None] = []
    begin = 0
    for entry, asked in zip(g.inputs, g.asked, strict=True):
        end = begin + g.shape(entry)[axis]
        backs.append(g.make("slice_axis", g.og, axis=axis, begin=begin, end=end) if asked else None)
        begin = end
    return backs


def slice_channel(g: Gradient) -> list[Entry | None]:
    """SliceChannel: the outputs' gradients joined, zeros where nothing flows."""
    shape = g.shape(g.inputs[0])
    axis = g.params.axis % len(shape)
    part = tuple(dim // g.params.num_outputs if i == axis else dim for i, dim in enumerate(shape))
    parts = [as_shape(g.builder, g.grad(i), part) for i in range(len(g.outputs))]
    return [g.make("Concat", *parts, num_args=len(parts), dim=axis)]


def broadcast(g: Gradient) -> list[Entry | None]:
    """broadcast_to, broadcast_axis, broadcast_like: the sum over what was repeated; a shape-giving input gets none."""
    return [g.sum_to(g.og, g.shape(g.inputs[0])), *[None] * (len(g.inputs) - 1)]


def slice_axis(g: Gradient) -> list[Entry | None]:
    """og where the slice lay, zeros before and after."""
    shape = g.shape(g.inputs[0])
    axis = g.params.axis % len(shape)
    begin = g.params.begin % shape[axis] if g.params.begin < 0 else g.params.begin
    after = shape[axis] - begin - g.shape(g.og)[axis]
    parts = [filled(g.builder, (*shape[:axis], count, *shape[axis + 1:]), 0.0, g.dtype(g.og)) if count else None
             for count in (begin, after)]
    joined = [e for e in (parts[0], g.og, parts[1]) if e is not None]
    return [g.make("Concat", *joined, num_args=len(joined), dim=axis) if len(joined) > 1 else g.og]
