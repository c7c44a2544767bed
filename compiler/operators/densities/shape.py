"""Shapes of densities."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge, merge_all


def density(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """sample (*s, *more), each parameter of shape s -> as sample."""
    known = merge_all(ins[1:])
    data = merge(ins[0], outs[0])
    if known is not None and data is not None:
        if len(data) < len(known):
            raise MXNetError(f"expected a sample with the parameters' axes {known} first, got {data}")
        known = merge(known, data[:len(known)])
        assert known is not None
        data = (*known, *data[len(known):])
    return [data, *[known] * (len(ins) - 1)], [data]


def dirichlet(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """sample (*s, *more, classes), alpha (*s, classes) -> (*s, *more); (1,) for one number."""
    data, alpha = ins
    if data is None or alpha is None:
        return ins, outs
    if not alpha or len(data) < len(alpha):
        raise MXNetError(f"expected a sample with the axes of alpha {alpha}, more of them before the last, got {data}")
    lead = merge(data[:len(alpha) - 1], alpha[:-1])
    last = merge(data[-1:], alpha[-1:])
    assert lead is not None and last is not None
    data, alpha = (*lead, *data[len(lead):-1], *last), (*lead, *last)
    return [data, alpha], [merge(data[:-1] or (1,), outs[0])]
