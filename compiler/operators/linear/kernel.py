"""Index rules and library calls of matrix products."""
from __future__ import annotations

from mxc.compiler.kernel import calls, ir, word_calls
from mxc.compiler.kernel.call_rule import Called, CallNode, permuted
from mxc.compiler.kernel.geometry import Gemm
from mxc.compiler.kernel.index_rule import Index, IndexNode
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.kernel.word_geometry import WordProduct
from mxc.compiler.ops.operator import Params


def pack_rows(c: IndexNode, params: Params, index: Index) -> Value:
    """(G, R, K) -> (G, ceil(R / block), K, block): rows in blocks, the last block filled up with zeros."""
    group, block, depth, row = index
    source = ir.apply("add", ir.apply("mul", block, number(params.block)), row)
    inside = ir.apply("lt", source, number(c.shape(0)[1]))
    return c.load(0, (group, source, depth), inside, ir.const(0, c.out_dtype))


def _product(c: CallNode, sizes: tuple[int, int, int, int], transpose_a: bool, transpose_b: bool,
             packed_b: int = 0) -> Gemm[int] | WordProduct[int]:
    """The product of dense matrices; sizes: batch, m, n, k."""
    batch, m, n, k = sizes
    if not transpose_a and not packed_b and word_calls.by_words(c.dtype(0), sizes, c.prefers):
        half = k // 2
        of_b = (n * half, 1, half) if transpose_b else (n * k, n, 1)
        return word_calls.word_product(c.dtype(0), (batch, m, n, half), (m * half, half), of_b,
                                  word_calls.depth_of(half, c.prefers.tiles), not transpose_b)
    a_strides = (m * k, 1, m) if transpose_a else (m * k, k, 1)
    b_strides = (n * k, 1, k) if transpose_b else (n * k, n, 1)
    return calls.gemm(c.dtype(0), sizes, a_strides, b_strides, packed_b, c.prefers.products)


def packed_fully_connected_call(c: CallNode, params: Params) -> Called:
    rows, depth = c.shape(0)
    return _product(c, (1, rows, params.num_hidden, depth), False, True, params.block), (1, 2)


def fully_connected_call(c: CallNode, params: Params) -> Called:
    rows, depth = c.shape(0)
    return _product(c, (1, rows, params.num_hidden, depth), False, True), (1, 2)


def dot_call(c: CallNode, params: Params) -> Called:
    """The product of two matrices, each transposed first if asked."""
    left, right = c.shape(0), c.shape(1)
    m, depth = reversed(left) if params.transpose_a else left
    n = right[0] if params.transpose_b else right[1]
    return _product(c, (1, m, n, depth), params.transpose_a, params.transpose_b), (1, 2)


def batch_dot_call(c: CallNode, params: Params) -> Called:
    """The product of two matrices as in `dot_call`, for every matrix of the batch."""
    left, right = c.shape(0), c.shape(1)
    batch, m, depth = permuted(left, (0, 2, 1)) if params.transpose_a else left
    n = right[1] if params.transpose_b else right[2]
    return _product(c, (batch, m, n, depth), params.transpose_a, params.transpose_b), (0, 1, 2)
