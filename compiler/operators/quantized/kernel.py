"""Library calls of layers over numbers of 8 bits."""
from __future__ import annotations

from mxc.compiler.kernel import calls
from mxc.compiler.kernel.call_rule import Called, CallNode, strides, template_axes, window_of
from mxc.compiler.operators.convolution.kernel import blocked_axes, blocked_strides, blocked_window
from mxc.compiler.ops.operator import Params


def quad_convolution_call(c: CallNode, params: Params) -> Called:
    data, out = c.shape(0), c.out_shape
    window = window_of(params, data, out, params.num_group)
    return calls.quad_convolution(window, strides(data), params.block), template_axes(out)


def blocked_quads_call(c: CallNode, params: Params) -> Called:
    *outer, channels = c.shape(0)
    data, rank = (*outer, channels // 4), len(params.kernel)
    window = blocked_window(params, data, c.out_shape, params.num_group, data[-1])
    copied = any(params.pad) or c.dtype(0) == "int8"
    made = calls.blocked_quads(window, blocked_strides(data, rank), data[-1], params.block, params.columns, copied)
    return made, blocked_axes(rank)
