"""Linear algebra made of other operators, and gradients.

The gradients of factorisations are those of Iain Murray, "Differentiation of the Cholesky decomposition" (2016), and of
Seeger, Hetzel, Dai and Lawrence, "Auto-Differentiating Linear Algebra" (2017).
"""
from __future__ import annotations

from collections.abc import Callable

from mxc.compiler.graph.batch_rows import MixedRows, Rows, RowSite, same
from mxc.compiler.graph.building import as_shape, finished, own_shape
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options

# Eigenvalues that are nearer to each other count as so far apart, in the gradient of eigenvectors, as in MXNet.
LEAST_GAP = {"float32": 1e-30, "float64": 1e-100}
Make = Callable[..., Entry]


def _product(make: Make, rank: int, left: Entry, right: Entry, left_turned: bool = False,
             right_turned: bool = False) -> Entry:
    return make("dot" if rank == 2 else "batch_dot", left, right, transpose_a=left_turned, transpose_b=right_turned)


def _turned(make: Make, rank: int, data: Entry) -> Entry:
    return make("SwapAxis", data, dim1=rank - 2, dim2=rank - 1)


def _where(make: Make, shape: tuple[int, ...], comparison: str, data: Entry, offset: int = 0) -> Entry:
    """`data`, and 0 where column - offset does not compare so with the row."""
    rows, columns = (make("Reshape", make("_arange", start=start, stop=start + extent, dtype="int32"), shape=place)
                     for start, extent, place in ((offset, shape[-2], (-1, 1)), (0, shape[-1], (1, -1))))
    mask = make("broadcast_to", make(comparison, columns, rows), shape=shape[-2:])
    mask = make("broadcast_to", make("Reshape", mask, shape=((1,) * (len(shape) - 2) + shape[-2:])), shape=shape)
    return make("where", mask, data, make("zeros_like", data))


def _triangle(make: Make, shape: tuple[int, ...], data: Entry, lower: bool, strict: bool = False) -> Entry:
    comparison = "broadcast_lesser" if lower else "broadcast_greater"
    return _where(make, shape, comparison + ("" if strict else "_equal"), data)


def gemm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """alpha * op(A) op(B) + beta * C"""
    rank, params, make = len(builder.shape(inputs[0])), node.params, builder.make
    axis = params.axis % rank
    a, b, *rest = inputs if axis == rank - 2 else [make("SwapAxis", e, dim1=axis, dim2=rank - 2) for e in inputs]
    made = make("_mul_scalar", _product(make, rank, a, b, params.transpose_a, params.transpose_b), scalar=params.alpha)
    if rest:
        made = make("elemwise_add", made, make("_mul_scalar", rest[0], scalar=params.beta))
    return [made if axis == rank - 2 else make("SwapAxis", made, dim1=axis, dim2=rank - 2)]


def trmm(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """alpha * op(A) B, or alpha * B op(A), of A's triangle"""
    params, shape = node.params, builder.shape(inputs[0])
    a = _triangle(builder.make, shape, inputs[0], params.lower)
    if params.rightside:
        made = _product(builder.make, len(shape), inputs[1], a, right_turned=params.transpose)
    else:
        made = _product(builder.make, len(shape), a, inputs[1], left_turned=params.transpose)
    return [builder.make("_mul_scalar", made, scalar=params.alpha)]


def syrk(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """alpha * A A^T, or alpha * A^T A"""
    rank, turned = len(builder.shape(inputs[0])), node.params.transpose
    made = _product(builder.make, rank, inputs[0], inputs[0], turned, not turned)
    return [builder.make("_mul_scalar", made, scalar=node.params.alpha)]


def extractdiag(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The diagonal over the last two axes."""
    rank = len(builder.shape(inputs[0]))
    return [builder.make("diag", inputs[0], k=node.params.offset, axis1=rank - 2, axis2=rank - 1)]


def makediag(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The data, filled up with zeros, in every row or column, and from there the diagonal."""
    make, shape, offset = builder.make, own_shape(builder, node), node.params.offset
    data, length = inputs[0], builder.shape(inputs[0])[-1]
    if offset:
        rest = make("_zeros", shape=(*shape[:-2], abs(offset)), dtype=builder.dtype(data))
        data = make("Concat", data, rest, num_args=2, dim=len(shape) - 2)
    extent = length + abs(offset)
    data = as_shape(builder, data, (*shape[:-2], extent, 1) if offset >= 0 else (*shape[:-2], 1, extent))
    return [_where(make, shape, "broadcast_equal", make("broadcast_to", data, shape=shape), offset)]


def sumlogdiag(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """The sum of the diagonal's logarithms."""
    diagonal = builder.make("_linalg_extractdiag", inputs[0])
    return finished(builder, node, [builder.make("sum", builder.make("log", diagonal), axis=(-1,))])


def extracttrian_grad(g: Gradient) -> list[Entry | None]:
    """What flows in, at the triangle's places."""
    return [g.make("_linalg_maketrian", g.og, offset=g.params.offset, lower=g.params.lower)]


def maketrian_grad(g: Gradient) -> list[Entry | None]:
    """What flows into the triangle's places."""
    return [g.make("_linalg_extracttrian", g.og, offset=g.params.offset, lower=g.params.lower)]


def trsm_grad(g: Gradient) -> list[Entry | None]:
    """B: what flows in, solved with A turned, times alpha. A: minus the triangle of the product with X."""
    params, shape, x = g.params, g.shape(g.inputs[0]), g.outputs[0]
    solved = g.make("_linalg_trsm", g.inputs[0], g.og, transpose=not params.transpose, rightside=params.rightside,
                    lower=params.lower)
    left, right = (x, solved) if params.rightside != params.transpose else (solved, x)
    made = _product(g.make, len(shape), left, right, params.rightside, not params.rightside)
    return [_triangle(g.make, shape, g.make("negative", made), params.lower),
            g.make("_mul_scalar", solved, scalar=params.alpha)]


def potrf_grad(g: Gradient) -> list[Entry | None]:
    """L^-T (P + P^T) L^-1 / 2, where P is the lower triangle of L^T times what flows in, its diagonal halved."""
    lower, shape = g.outputs[0], g.shape(g.outputs[0])
    made = _product(g.make, len(shape), lower, g.og, left_turned=True)
    below = _triangle(g.make, shape, made, True, strict=True)
    both = g.make("elemwise_add", _triangle(g.make, shape, made, True), _turned(g.make, len(shape), below))
    half = g.make("_linalg_trsm", lower, both, transpose=True, alpha=0.5)
    return [g.make("_linalg_trsm", lower, half, rightside=True)]


def potri_grad(g: Gradient) -> list[Entry | None]:
    """Minus the lower triangle of B (G + G^T) A^-T, where G flows into B."""
    shape = g.shape(g.outputs[0])
    both = g.make("elemwise_add", g.og, _turned(g.make, len(shape), g.og))
    made = _product(g.make, len(shape), g.outputs[0], both)
    solved = g.make("_linalg_trsm", g.inputs[0], made, rightside=True, transpose=True, alpha=-1.0)
    return [_triangle(g.make, shape, solved, True)]


def gelqf_grad(g: Gradient) -> list[Entry | None]:
    """L^-T (Q' + S Q), where S is the symmetric matrix with the lower triangle of L^T L' - Q' Q^T."""
    q, lower, into_q, into_lower = *g.outputs, g.grad(0), g.grad(1)
    shape = g.shape(lower)
    rank = len(shape)
    made = g.make("elemwise_sub", _product(g.make, rank, lower, into_lower, left_turned=True),
                  _product(g.make, rank, into_q, q, right_turned=True))
    below = _triangle(g.make, shape, made, True, strict=True)
    both = g.make("elemwise_add", _triangle(g.make, shape, made, True), _turned(g.make, rank, below))
    total = g.make("elemwise_add", into_q, _product(g.make, rank, both, q))
    return [g.make("_linalg_trsm", lower, total, transpose=True)]


def syevd_grad(g: Gradient) -> list[Entry | None]:
    """U^T (Y + diag(L')) U, where Y_ij is the half of (X_ij - X_ji) / (L_i - L_j), and X is U' U^T."""
    vectors, values, into_vectors, into_values = *g.outputs, g.grad(0), g.grad(1)
    shape, least = g.shape(vectors), LEAST_GAP[g.dtype(vectors)]
    rank = len(shape)
    x = _product(g.make, rank, into_vectors, vectors, right_turned=True)
    gaps = g.make("broadcast_sub", g.make("expand_dims", values, axis=rank - 1),
                  g.make("expand_dims", values, axis=rank - 2))
    size = g.make("_maximum_scalar", g.make("abs", gaps), scalar=least)
    gaps = _triangle(g.make, shape, g.make("where", g.make("_greater_equal_scalar", gaps, scalar=0.0), size,
                                           g.make("negative", size)), True, strict=True)
    half = g.make("_mul_scalar", g.make("elemwise_sub", x, _turned(g.make, rank, x)), scalar=0.5)
    ones = g.make("ones_like", gaps)
    apart = g.make("elemwise_div", half, g.make("elemwise_add", gaps, g.make("elemwise_sub", ones, _triangle(
        g.make, shape, ones, True, strict=True))))
    below = _triangle(g.make, shape, apart, True, strict=True)
    both = g.make("elemwise_add", below, _turned(g.make, rank, below))
    total = g.make("elemwise_add", both, g.make("_linalg_makediag", into_values))
    return [_product(g.make, rank, _product(g.make, rank, vectors, total, left_turned=True), vectors)]


def inverse_grad(g: Gradient) -> list[Entry | None]:
    """-B^T G B^T, where G flows into the inverse B."""
    rank = len(g.shape(g.og))
    made = _product(g.make, rank, _product(g.make, rank, g.outputs[0], g.og, left_turned=True), g.outputs[0],
                    right_turned=True)
    return [g.make("negative", made)]


def turned_inverse_grad(g: Gradient) -> list[Entry | None]:
    """-T G^T T, where G flows into T, the inverse transposed."""
    rank = len(g.shape(g.og))
    made = _product(g.make, rank, _product(g.make, rank, g.outputs[0], g.og, right_turned=True), g.outputs[0])
    return [g.make("negative", made)]


def _times_turned_inverse(g: Gradient, numbers: Entry) -> list[Entry | None]:
    data = g.inputs[0]
    shape = g.shape(data)
    spread = g.make("Reshape", numbers, shape=(*shape[:-2], 1, 1))
    return [g.make("broadcast_mul", g.make("_mxc_turned_inverse", data), spread)]


def det_grad(g: Gradient) -> list[Entry | None]:
    """The determinant times the inverse, transposed; zeros for a singular matrix, as in MXNet."""
    return _times_turned_inverse(g, g.make("elemwise_mul", g.og, g.outputs[0]))


def slogdet_grad(g: Gradient) -> list[Entry | None]:
    """The inverse, transposed, times what flows into the logarithm; nothing flows through the sign."""
    return _times_turned_inverse(g, g.grad(1))


def product_rows(site: RowSite) -> list[Rows | None]:
    """The axes before the matrices, which are the last two."""
    if site.params.axis != -2:
        raise MixedRows(f"with axis={site.params.axis} its matrices are not in the last two axes")
    return site.everywhere(*(same(shape[:-2]) for shape in site.ins))
