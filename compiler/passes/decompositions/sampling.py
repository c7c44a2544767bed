"""Grids as sums of products, spatial transformers as sampling at a grid."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder, Node
from mxc.compiler.passes.building import as_dtype, as_shape
from mxc.compiler.passes.registry import Options
from mxc.compiler.passes.sampling import affine_grid, pixel_steps


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
