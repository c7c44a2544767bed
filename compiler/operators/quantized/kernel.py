"""Library calls of layers over numbers of 8 bits."""
from __future__ import annotations

from mxc.compiler.kernel import calls
from mxc.compiler.kernel.call_rule import Called, CallNode, strides, template_axes, window_of
from mxc.compiler.ops.operator import Params


def quad_convolution_call(c: CallNode, params: Params) -> Called:
    data, out = c.shape(0), c.out_shape
    window = window_of(params, data, out, params.num_group)
    return calls.quad_convolution(window, strides(data), params.block), template_axes(out)
