"""Gradients of operators that resample images."""
from __future__ import annotations

from math import prod

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.gradients.context import Gradient
from mxc.compiler.passes.resizing import longest_windows, most_readers


def adaptive_pooling(g: Gradient) -> list[Entry | None]:
    """Each mean's gradient, over the count of its elements, to all of them."""
    shape, out = g.shape(g.inputs[0]), g.shape(g.og)
    if out[2:] == (1, 1):
        return [g.broadcast_to(g.scaled(g.og, 1.0 / prod(shape[2:])), shape)]
    if all(n % o == 0 for n, o in zip(shape[2:], out[2:], strict=True)):
        kernel = longest_windows(shape[2:], out[2:])
        return [g.make("_mxc_avg_pool_grad", g.og, kernel=kernel, stride=kernel, pool_type="avg", shape=shape)]
    return [g.make("_mxc_adaptive_pool", g.og, kernel=longest_windows(out[2:], shape[2:]), shape=shape,
                   pool_type="spread")]


def bilinear_resize(g: Gradient) -> list[Entry | None]:
    """og back to the elements that were read, by the same weights; `like` gets none."""
    shape, align = g.shape(g.inputs[0]), g.params.align_corners
    if shape == g.shape(g.og):
        return [g.og, *[None] * (len(g.inputs) - 1)]
    kernel = most_readers(shape[2:], g.shape(g.og)[2:], align)
    back = g.make("_mxc_bilinear_resize_grad", g.og, kernel=kernel, shape=shape, align_corners=align)
    return [back, *[None] * (len(g.inputs) - 1)]


def bilinear_resize_grad(g: Gradient) -> list[Entry | None]:
    """A linear map; its transpose is the resizing."""
    height, width = g.shape(g.inputs[0])[2:]
    return [g.make("_contrib_BilinearResize2D", g.og, height=height, width=width,
                   align_corners=g.params.align_corners)]


def adaptive_spread(g: Gradient) -> list[Entry | None]:
    """Spreading is the transpose of taking means, and the means of og are what flows back; and the other way round."""
    shape, out = g.shape(g.inputs[0]), g.shape(g.og)
    kind = "avg" if g.params.pool_type == "spread" else "spread"
    return [g.make("_mxc_adaptive_pool", g.og, kernel=longest_windows(out[2:], shape[2:]), shape=shape,
                   pool_type=kind)]
