"""Golden cases of sampling images at a grid."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row

AFFINE = {"transform_type": "affine", "target_shape": (3, 4)}
TRANSFORMER = {**AFFINE, "sampler_type": "bilinear"}


def cases() -> list[Case]:
    made = [case("GridGenerator", "affine", {"data": (2, 6)}, AFFINE),
            case("GridGenerator", "warp", {"data": (2, 2, 3, 4)}, {"transform_type": "warp"}),
            case("GridGenerator", "no_target", {"data": (2, 6)}, {"transform_type": "affine"}),
            case("GridGenerator", "five", {"data": (2, 5)}, AFFINE),
            case("GridGenerator", "three", {"data": (2, 3, 3, 4)}, {"transform_type": "warp"}),
            case("SpatialTransformer", "affine", {"data": (2, 2, 4, 5), "loc": (2, 6)}, TRANSFORMER),
            case("SpatialTransformer", "small", {"data": (1, 1, 2, 2), "loc": (1, 6)}, TRANSFORMER, train=False),
            case("SpatialTransformer", "rank", {"data": (2, 4, 5), "loc": (2, 6)}, TRANSFORMER),
            case("SpatialTransformer", "no_target", {"data": (2, 2, 4, 5), "loc": (2, 6)},
                 {"transform_type": "affine", "sampler_type": "bilinear"})]
    for dtype in ("float32", "float64", "float16"):
        made.append(case("BilinearSampler", "outside", {"data": (2, 3, 4, 5), "grid": (2, 2, 3, 4)}, dtype=dtype,
                         span=(-1.3, 1.3), train=dtype != "float16"))
    made += [case("BilinearSampler", "edge", {"data": (1, 2, 3, 3), "grid": (1, 2, 5, 6)}, spans={"grid": (-3, 4)},
                  integer=["grid"]),
             case("BilinearSampler", "far", {"data": (1, 1, 4, 5), "grid": (1, 2, 3, 4)}, span=(-9, 9), train=False),
             case("BilinearSampler", "batch", {"data": (2, 3, 4, 5), "grid": (1, 2, 3, 4)}),
             case("BilinearSampler", "three", {"data": (2, 3, 4, 5), "grid": (2, 3, 3, 4)}),
             case("BilinearSampler", "rank", {"data": (2, 4, 5), "grid": (2, 2, 3, 4)})]
    return made


def rows() -> list[Row]:
    return [row("GridGenerator", {"data": (2, 6)}, AFFINE), row("GridGenerator", {"data": (2, 2, 3, 4)},
                                                                {"transform_type": "warp"}),
            row("BilinearSampler", {"data": (2, 3, 4, 5), "grid": (2, 2, 3, 4)}),
            row("SpatialTransformer", {"data": (2, 3, 4, 5), "loc": None}, TRANSFORMER),
            row("SpatialTransformer", {"data": (2, 3, 4, 5), "loc": (2, 6)}, TRANSFORMER)]
