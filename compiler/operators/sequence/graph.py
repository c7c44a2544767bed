"""Decompositions and gradients of operators on batches of sequences.

Nothing flows into the lengths.
"""
from __future__ import annotations

from mxc.compiler.graph.batch_rows import Rows, RowSite, same, without
from mxc.compiler.graph.building import along, as_dtype, filled
from mxc.compiler.graph.gradient_rule import Gradient, ignores
from mxc.compiler.graph.graph import Entry


@ignores("sequence_length")
def sequence_mask_grad(g: Gradient) -> list[Entry | None]:
    """og up to the lengths, zeros behind them."""
    back = g.make("SequenceMask", g.og, *g.inputs[1:], use_sequence_length=g.params.use_sequence_length,
                  axis=g.params.axis)
    return [back, *[None] * (len(g.inputs) - 1)]


@ignores("sequence_length")
def sequence_reverse_grad(g: Gradient) -> list[Entry | None]:
    """og reversed in the same way: every step goes back to where it came from."""
    back = g.make("SequenceReverse", g.og, *g.inputs[1:], use_sequence_length=g.params.use_sequence_length)
    return [back, *[None] * (len(g.inputs) - 1)]


@ignores("sequence_length")
def sequence_last_grad(g: Gradient) -> list[Entry | None]:
    """og at the last steps, zeros elsewhere."""
    axis, steps, shape = g.params.axis, g.shape(g.inputs[0])[g.params.axis], g.shape(g.outputs[0])
    if g.params.use_sequence_length:
        length = g.make("_maximum_scalar", as_dtype(g.builder, g.inputs[1], "int32"), scalar=1.0)
        last = g.make("_minus_scalar", length, scalar=1.0)
        last = g.broadcast_to(along(g.builder, last, 0, len(shape)), shape)
    else:
        last = filled(g.builder, shape, steps - 1, "int32")
    back = g.make("_mxc_unpick", g.og, last, axis=axis, size=steps)
    return [back, *[None] * (len(g.inputs) - 1)]


def sequence_rows(site: RowSite) -> list[Rows | None]:
    """Every axis of the data but time; lengths have that of the batch."""
    shape, time = site.ins[0], site.params.axis
    axes = same(shape, [time]) if len(site.outs[0]) == len(shape) else without(shape, time)
    return [site.along(axes, {0: axes[1 - time]})]


def step_rows(site: RowSite) -> list[Rows | None]:
    """As of sequences; without lengths time is an axis like any other."""
    if len(site.ins) == 1 and len(site.outs[0]) == len(site.ins[0]):
        return [site.along(same(site.ins[0]))]
    return sequence_rows(site)
