"""Gradients of grids and of sampling images at them."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops import table
from mxc.compiler.passes.building import as_shape, filled
from mxc.compiler.passes.gradients.context import Gradient
from mxc.compiler.passes.sampling import affine_grid, affine_terms, pixel_steps


def grid_generator(g: Gradient) -> list[Entry | None]:
    """affine: to each column of the matrix the sum of og times its term. warp: og over half the size."""
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


def bilinear_sampler(g: Gradient) -> list[Entry | None]:
    """To the four elements around each place by their weights, to the grid by how the weights change."""
    return list(_sampled(g, *g.inputs))


def spatial_transformer(g: Gradient) -> list[Entry | None]:
    """Through the sampling to the data, and through the grid to the matrix."""
    data, theta = g.inputs
    to_data, to_grid = _sampled(g, data, affine_grid(g.builder, theta, g.params.target_shape))
    return [to_data, _to_matrix(g, to_grid)]
