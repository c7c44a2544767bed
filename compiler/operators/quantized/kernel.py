"""Library calls of layers over numbers of 8 bits."""
from __future__ import annotations

from mxc.compiler.kernel import calls, word_calls
from mxc.compiler.kernel.call_rule import Called, CallNode, strides, template_axes, window_of
from mxc.compiler.operators.convolution.kernel import blocked_axes, blocked_strides, blocked_window
from mxc.compiler.operators.quantized.shape import in_fours
from mxc.compiler.ops.operator import Params


def quad_convolution_call(c: CallNode, params: Params) -> Called:
    data, out = c.shape(0), c.out_shape
    window = window_of(params, data, out, params.num_group)
    return calls.quad_convolution(window, strides(data), params.block), template_axes(out)


def blocked_quads_call(c: CallNode, params: Params) -> Called:
    rank, data = len(params.kernel), c.shape(0)
    words, is_plain = in_fours(params, data), len(data) == rank + 2
    window = blocked_window(params, words, c.out_shape, params.num_group, words[-1])
    of_data = blocked_strides(data if is_plain else words, rank)
    copied = is_plain or any(params.pad) or c.dtype(0) == "int8"
    made = calls.blocked_quads(window, of_data, words[-1], params.block, params.columns, copied,
                               data[1] if is_plain else 0)
    return made, blocked_axes(rank)


def int8_product_call(c: CallNode, params: Params) -> Called:
    (rows, depth), (columns, _) = c.shape(0), c.shape(1)
    words = depth // 4
    sizes, of_a, of_b = (1, rows, columns, words), (rows * words, words), (columns * words, 1, words)
    made = word_calls.word_product("int32", sizes, of_a, of_b, word_calls.depth_of(words, c.prefers.tiles),
                                   lifted=params.lifted)
    return made, (1, 2)
