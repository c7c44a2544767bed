"""Golden cases of operators that resample images."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row


def cases() -> list[Case]:
    return _adaptive()


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


def rows() -> list[Row]:
    made = []
    for data in ((2, 3, 5, 7), (0, 3, 5, 7), (2, 3, 0, 7), (2, 3, 5), None):
        made.append(row("_contrib_AdaptiveAvgPooling2D", {"data": data}, {"output_size": (2, 3)}))
    return made
