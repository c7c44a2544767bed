"""Golden cases of correlation. Data of -1 and 0 has equal elements, where absolute differences have no derivative."""
from __future__ import annotations

from golden.cases import Case, case


def cases() -> list[Case]:
    made = []
    shapes = {"data1": (2, 2, 5, 6), "data2": (2, 2, 5, 6)}
    settings = {"plain": {}, "padded": {"pad_size": 2}, "wide_kernel": {"kernel_size": 3, "pad_size": 1},
                "far": {"max_displacement": 2, "pad_size": 2}, "steps": {"max_displacement": 4, "stride2": 2,
                                                                         "pad_size": 4},
                "strides": {"stride1": 2, "kernel_size": 3, "pad_size": 2}, "still": {"max_displacement": 0},
                "long_step": {"stride2": 3, "stride1": 3},
                "uneven": {"max_displacement": 3, "stride2": 2, "pad_size": 3}}
    for label, attrs in settings.items():
        made.append(case("Correlation", label, shapes, attrs))
        made.append(case("Correlation", f"{label}_difference", shapes, {**attrs, "is_multiply": False}))
    for dtype in ("float16", "float64"):
        made.append(case("Correlation", "plain", shapes, {"pad_size": 1}, dtype=dtype))
    made.append(case("Correlation", "equal_elements", shapes, {"pad_size": 1, "is_multiply": False}, integer=shapes))
    for number, (more, attrs) in enumerate((
            (shapes, {"kernel_size": 2}), (shapes, {"max_displacement": 4}),
            ({"data1": (3, 5, 6), "data2": (3, 5, 6)}, {}))):
        made.append(case("Correlation", f"refused{number}", more, attrs))
    return made
