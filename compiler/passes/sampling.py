"""Grids for sampling images, for decompositions and gradients."""
from __future__ import annotations

from mxc.compiler.graph.graph import Entry, GraphBuilder
from mxc.compiler.passes.building import as_dtype, as_shape


def pixel_steps(size: int) -> float:
    """What one of `size` elements is in -1..1."""
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
