"""Shape rules of updates."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shapes, same_shape
from mxc.compiler.ops.table import Params


def lamb_step(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """All have one shape, but the norms, the third and fourth input, which have one element."""
    for name, shape in zip(("r1", "r2"), ins[2:4], strict=True):
        if shape is not None and any(n > 1 for n in shape):
            raise MXNetError(f"expected {name} of one element, got {shape}")
    rest, outs = same_shape(params, [*ins[:2], *ins[4:]], outs)
    return [*rest[:2], *ins[2:4], *rest[2:]], outs
