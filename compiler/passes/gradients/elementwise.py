"""Gradients of elementwise operators that a formula cannot say."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry
from mxc.compiler.passes.building import filled
from mxc.compiler.passes.gradients.context import Gradient, ignores


def cast(g: Gradient) -> list[Entry | None]:
    """What flows in; every gradient is cast to its input's dtype."""
    return [g.og]


@ignores("condition")
def where(g: Gradient) -> list[Entry | None]:
    """og where its side was chosen, else 0; the condition gets none."""
    condition = g.inputs[0]
    zero = filled(g.builder, g.shape(g.og), 0.0, g.dtype(g.og))
    return [None, g.make("where", condition, g.og, zero), g.make("where", condition, zero, g.og)]
