"""Golden cases of what MXNet computes of sparse arrays where these have elements, on dense ones."""
from __future__ import annotations

from golden.cases import Case, case


def cases() -> list[Case]:
    made = []
    for dtype in ("float16", "float32", "float64"):
        made.append(case("_scatter_elemwise_div", "plain", {"lhs": (3, 4), "rhs": (3, 4)}, dtype=dtype,
                         spans={"rhs": (0.5, 2)}))
        for op in ("_scatter_plus_scalar", "_scatter_minus_scalar"):
            made.append(case(op, "plain", {"data": (3, 4)}, {"scalar": 1.7}, dtype=dtype))
    for op in ("_scatter_plus_scalar", "_scatter_minus_scalar"):
        for is_int in (True, False):
            made.append(case(op, f"fraction_{is_int:d}", {"data": (9,)}, {"scalar": 1.7, "is_int": is_int}, span=(1, 9),
                             dtype="int32", integer=["data"], train=False))
    made.append(case("_scatter_elemwise_div", "integers", {"lhs": (9,), "rhs": (9,)}, span=(-9, 9), dtype="int32",
                     spans={"rhs": (1, 4)}, integer=["lhs", "rhs"], train=False))
    made.append(case("_scatter_elemwise_div", "refused", {"lhs": (3, 4), "rhs": (1, 4)}))
    return made
