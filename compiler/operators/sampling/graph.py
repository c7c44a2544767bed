"""Decompositions and gradients of grids and sampling images at them.

Grids are sums of products, and spatial transformers sample at a grid.
"""
from __future__ import annotations

from mxc.compiler.graph.building import as_dtype, as_shape, filled
from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.graph.options import Options
from mxc.compiler.ops import table


def pixel_steps(size: int) -> float:
    """The distance of two neighbours of `size` elements that lie evenly from -1 to 1."""
    return 2.0 / (size - 1)


def affine_terms(builder: GraphBuilder, target: tuple[int, ...], dtype: str) -> list[Entry]:
    """x (1, 1, 1, width) and y (1, 1, height, 1), evenly from -1 to 1."""
    terms = []
    for axis in (3, 2):
        size = target[axis - 2]
        place = builder.make("_mul_scalar", builder.make("_arange", start=0.0, stop=float(size), dtype="float64"),
                             scalar=pixel_steps(size))
        place = as_dtype(builder, builder.make("_minus_scalar", place, scalar=1.0), dtype)
        terms.append(as_shape(builder, place, [size if i == axis else 1 for i in range(4)]))
    return terms


def affine_grid(builder: GraphBuilder, theta: Entry, target: tuple[int, ...]) -> Entry:
    """(batch, 6) as 2 by 3 matrices times (x, y, 1): (batch, 2, height, width)."""
    batch = builder.shape(theta)[0]
    matrix = as_shape(builder, theta, (batch, 2, 3))
    a, b, shift = (as_shape(builder, builder.make("slice_axis", matrix, axis=2, begin=i, end=i + 1), (batch, 2, 1, 1))
                   for i in range(3))
    x, y = affine_terms(builder, target, builder.dtype(theta))
    products = builder.make("broadcast_add", builder.make("broadcast_mul", a, x), builder.make("broadcast_mul", b, y))
    return builder.make("broadcast_add", products, shift)


def grid_generator(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """affine: the matrix times (x, y, 1). warp: flow and place over half the size, less 1."""
    data = inputs[0]
    if node.params.transform_type == "affine":
        return [affine_grid(builder, data, node.params.target_shape)]
    shape, dtype = builder.shape(data), builder.dtype(data)
    parts = []
    for which, axis in ((0, 3), (1, 2)):
        flow = builder.make("slice_axis", data, axis=1, begin=which, end=which + 1)
        size = shape[axis]
        place = builder.make("_arange", start=0.0, stop=float(size), dtype="float64")
        steps = as_shape(builder, as_dtype(builder, place, dtype), [size if i == axis else 1 for i in range(4)])
        scaled = builder.make("_mul_scalar", builder.make("broadcast_add", flow, steps), scalar=pixel_steps(size))
        parts.append(builder.make("_minus_scalar", scaled, scalar=1.0))
    return [builder.make("Concat", *parts, num_args=2, dim=1, name=node.name)]


def spatial_transformer(builder: GraphBuilder, node: Node, inputs: list[Entry], options: Options) -> list[Entry]:
    """Sampling at the affine grid that `loc` gives."""
    grid = affine_grid(builder, inputs[1], node.params.target_shape)
    return [builder.make("BilinearSampler", inputs[0], grid, name=node.name)]


def grid_generator_grad(g: Gradient) -> list[Entry | None]:
    """affine: each column of the matrix gets the sum of og times its term. warp: the flow gets og over half the size.
    """
    if g.params.transform_type == "affine":
        return [_to_matrix(g, g.og)]
    parts = []
    for which, axis in ((0, 3), (1, 2)):
        part = g.make("slice_axis", g.og, axis=1, begin=which, end=which + 1)
        parts.append(g.scaled(part, pixel_steps(g.shape(g.og)[axis])))
    return [g.make("Concat", *parts, num_args=2, dim=1)]


def _to_matrix(g: Gradient, og: Entry) -> Entry:
    shape = g.shape(og)
    terms = [*affine_terms(g.builder, shape[2:], g.dtype(og)), filled(g.builder, (1, 1, 1, 1), 1.0, g.dtype(og))]
    columns = []
    for term in terms:
        column = g.make("sum", g.make("broadcast_mul", og, term), axis=(2, 3))
        columns.append(as_shape(g.builder, column, (shape[0], 2, 1)))
    return as_shape(g.builder, g.make("Concat", *columns, num_args=3, dim=2), (shape[0], 6))


def _sampled(g: Gradient, data: Entry, grid: Entry) -> list[Entry]:
    """The gradients to data and grid."""
    op = table.get("_mxc_bilinear_sampler_grad")
    node = Node(op, f"{g.node.name}_{g.label}_sampler", None, op.make_params({}), [data, grid, g.og])
    return g.builder.add(node)


def bilinear_sampler_grad(g: Gradient) -> list[Entry | None]:
    """The four elements around each place get og by their weights, the grid gets it by how the weights change."""
    return list(_sampled(g, *g.inputs))


def spatial_transformer_grad(g: Gradient) -> list[Entry | None]:
    """Through the sampling to the data, and through the grid to the matrix."""
    data, theta = g.inputs
    to_data, to_grid = _sampled(g, data, affine_grid(g.builder, theta, g.params.target_shape))
    return [to_data, _to_matrix(g, to_grid)]
