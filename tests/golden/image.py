"""Golden cases of operators on pictures. Random ones are asked with ranges of one number. Sizes are even: of odd ones
MXNet's flips leave the middle out."""
from __future__ import annotations

from golden.cases import Case, case

PICTURE = {"data": (6, 8, 3)}
COLOURS = (0, 255)


def cases() -> list[Case]:
    return [*_moving(), *_normalized(), *_coloured(), *_resized()]


def _moving() -> list[Case]:
    made = []
    for dtype in ("uint8", "float32", "float16", "float64", "int32"):
        for op in ("_image_flip_left_right", "_image_flip_top_bottom"):
            made.append(case(op, "types", PICTURE, dtype=dtype, span=COLOURS, integer=["data"],
                             train=dtype == "float32"))
        made.append(case("_image_crop", "types", PICTURE, {"x": 1, "y": 2, "width": 5, "height": 3}, dtype=dtype,
                         span=COLOURS, integer=["data"], train=dtype == "float32"))
        made.append(case("_image_to_tensor", "types", PICTURE, dtype=dtype, span=COLOURS, integer=["data"],
                         train=False))
    for label, shape in (("several", (2, 6, 8, 3)), ("grey", (6, 8, 1)), ("four", (6, 8, 4)), ("rank", (6, 8))):
        made.append(case("_image_to_tensor", label, {"data": shape}, span=COLOURS, train=False))
        made.append(case("_image_flip_left_right", label, {"data": shape}, span=COLOURS, train=False))
        made.append(case("_image_crop", label, {"data": shape}, {"x": 1, "y": 0, "width": 2, "height": 5}))
    for label, x, y, width, height in (("whole", 0, 0, 8, 6), ("wide", 0, 0, 9, 5), ("none", 1, 1, 0, 3),
                                       ("behind", 6, 4, 3, 3)):
        made.append(case("_image_crop", label, PICTURE, {"x": x, "y": y, "width": width, "height": height}))
    return made


def _normalized() -> list[Case]:
    made = []
    three = {"mean": (0.1, 0.2, 0.3), "std": (0.4, 0.5, 0.6)}
    for label, attrs in (("one", {"mean": 0.5, "std": 0.2}), ("three", three), ("mixed", {**three, "std": 2}),
                         ("two", {"mean": (0.1, 0.2), "std": 1}), ("default", {})):
        for name, shape in (("", (3, 4, 5)), ("several", (2, 3, 4, 5)), ("grey", (1, 4, 5)), ("pair", (2, 4, 5)),
                            ("rank", (4, 5))):
            made.append(case("_image_normalize", label + name, {"data": shape}, attrs))
    for dtype in ("float16", "float64"):
        made.append(case("_image_normalize", "types", {"data": (3, 4, 5)}, three, dtype=dtype))
    return made


def _coloured() -> list[Case]:
    made = []
    for kind in ("brightness", "contrast", "saturation", "hue"):
        for factor in (0.0, 0.3, 1.0, 1.6):
            for dtype in ("uint8", "float32"):
                made.append(case(f"_image_random_{kind}", f"by{factor}", PICTURE,
                                 {"min_factor": factor, "max_factor": factor}, dtype=dtype, span=COLOURS,
                                 integer=["data"], train=dtype == "float32"))
        made.append(case(f"_image_random_{kind}", "half", PICTURE, {"min_factor": 0.5, "max_factor": 0.5},
                         dtype="float16", span=COLOURS, train=False))
        made.append(case(f"_image_random_{kind}", "double", PICTURE, {"min_factor": 0.5, "max_factor": 0.5},
                         dtype="float64", span=COLOURS, train=False))
        made.append(case(f"_image_random_{kind}", "several", {"data": (2, 6, 8, 3)},
                         {"min_factor": 0.5, "max_factor": 0.5}, span=COLOURS))
        made.append(case(f"_image_random_{kind}", "below", PICTURE, {"min_factor": -0.5, "max_factor": 0.5}))
    for kind in ("brightness", "contrast", "saturation"):
        made.append(case(f"_image_random_{kind}", "grey", {"data": (6, 8, 1)}, {"min_factor": 0.5, "max_factor": 0.5},
                         span=COLOURS))
    for label, alpha in (("", (1, -0.5, 0.25)), ("four", (1, 2, 3, 4)), ("two", (1, 2)), ("zero", (0, 0, 0))):
        for dtype in ("uint8", "float32"):
            made.append(case("_image_adjust_lighting", label, PICTURE, {"alpha": alpha}, dtype=dtype, span=COLOURS,
                             integer=["data"], train=dtype == "float32"))
    made.append(case("_image_random_lighting", "none", PICTURE, {"alpha_std": 0}, span=COLOURS))
    return made


def _resized() -> list[Case]:
    made = []
    for interp in range(5):
        for dtype in ("uint8", "float32"):
            for w, h in ((4, 3), (16, 12), (7, 9), (20, 20)):
                made.append(case("_image_resize", f"{interp}-{w}-{h}", PICTURE, {"size": (w, h), "interp": interp},
                                 dtype=dtype, span=COLOURS, integer=["data"], train=False))
    for label, attrs in (("one", {"size": 4}), ("two", {"size": (4, 3)}), ("kept", {"size": 4, "keep_ratio": True}),
                         ("both", {"size": (4, 3), "keep_ratio": True}), ("none", {}), ("three", {"size": (1, 2, 3)}),
                         ("zero", {"size": 0}), ("unknown", {"size": 4, "interp": 9})):
        for shape in ((6, 8, 3), (8, 6, 1), (2, 6, 8, 3)):
            made.append(case("_image_resize", f"{label}{len(shape)}{shape[-1]}", {"data": shape}, attrs, dtype="uint8",
                             span=COLOURS, integer=["data"], train=False))
    return made
