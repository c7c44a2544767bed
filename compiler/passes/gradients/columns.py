"""Gradients of im2col and col2im: each is the other's."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.gradients.context import Gradient


def im2col(g: Gradient) -> list[Entry | None]:
    """What flows into the columns, added where they come from."""
    return [g.make("col2im", g.og, output_size=g.shape(g.inputs[0])[2:], **g.params)]


def col2im(g: Gradient) -> list[Entry | None]:
    """The columns of what flows in."""
    return [g.make("im2col", g.og, **{k: v for k, v in g.params.items() if k != "output_size"})]
