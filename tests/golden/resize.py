"""Golden cases of operators that resample images."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row


def cases() -> list[Case]:
    return _adaptive() + _bilinear()


def _adaptive() -> list[Case]:
    op, made = "_contrib_AdaptiveAvgPooling2D", []
    for label, size in (("one", ()), ("even", (2,)), ("uneven", (3, 4))):
        made.append(case(op, label, {"data": (2, 2, 4, 6)}, {"output_size": size}))
    for label, size in (("larger", (5, 9)), ("global", 1), ("three", (2, 2, 2))):
        made.append(case(op, label, {"data": (1, 2, 4, 6)}, {"output_size": size}, train=False))
    made.append(case(op, "half", {"data": (1, 2, 5, 7)}, {"output_size": (2, 3)}, dtype="float16"))
    made.append(case(op, "plain", {"data": (1, 2, 5, 7)}, {"output_size": (7, 3)}, dtype="float64"))
    made.append(case(op, "rank", {"data": (2, 5, 7)}, {"output_size": (7, 3)}))
    made.append(case(op, "int", {"data": (1, 2, 5, 7)}, {"output_size": 2}, dtype="int32", integer=["data"]))
    return made


def _bilinear() -> list[Case]:
    op, made = "_contrib_BilinearResize2D", []
    for label, attrs in (("larger", {"height": 5, "width": 7}), ("smaller", {"height": 2, "width": 3}),
                         ("double", {"height": 6, "width": 8, "align_corners": False}),
                         ("half", {"height": 2, "width": 2, "align_corners": False}),
                         ("one", {"height": 1, "width": 3}),
                         ("one_edge", {"height": 1, "width": 3, "align_corners": False}),
                         ("wide", {"scale_height": 3.3, "scale_width": 0.5})):
        made.append(case(op, label, {"data": (1, 2, 3, 4)}, attrs))
    for label, attrs in (("odd", {"mode": "odd_scale", "scale_height": 2, "scale_width": 1.5}),
                         ("even_down", {"mode": "to_even_down"}), ("even_up", {"mode": "to_even_up"}),
                         ("odd_down", {"mode": "to_odd_down"}), ("odd_up", {"mode": "to_odd_up", "height": 9}),
                         ("default", {}), ("one_scale", {"scale_height": 2}), ("odd_size", {"mode": "odd_scale"}),
                         ("scaled", {"scale_height": 1.3, "scale_width": 1.3, "align_corners": False}),
                         ("none", {"height": 0, "width": 2})):
        made.append(case(op, label, {"data": (1, 2, 3, 10)}, attrs, train=False))
    made.append(case(op, "like", {"data": (1, 2, 3, 4), "like": (2, 1, 5, 3)}, {"mode": "like"}))
    made.append(case(op, "like_rank", {"data": (1, 2, 3, 4), "like": (5, 3)}, {"mode": "like"}))
    made.append(case(op, "point", {"data": (1, 2, 1, 1)}, {"height": 3, "width": 2, "align_corners": False}))
    for dtype in ("float16", "float64", "int32"):
        made.append(case(op, "types", {"data": (1, 2, 3, 4)}, {"height": 5, "width": 3}, dtype=dtype))
    return made


def rows() -> list[Row]:
    made = []
    for data in ((2, 3, 5, 7), (0, 3, 5, 7), (2, 3, 0, 7), (2, 3, 5)):
        for attrs in ({"height": 3, "width": 4}, {"mode": "to_odd_up"}, {"scale_height": 2, "scale_width": 0.5}):
            made.append(row("_contrib_BilinearResize2D", {"data": data}, attrs))
        made.append(row("_contrib_BilinearResize2D", {"data": data, "like": (1, 2, 3, 4)}, {"mode": "like"}))
    for data in ((2, 3, 5, 7), (0, 3, 5, 7), (2, 3, 0, 7), (2, 3, 5), None):
        made.append(row("_contrib_AdaptiveAvgPooling2D", {"data": data}, {"output_size": (2, 3)}))
    return made
