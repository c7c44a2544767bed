"""Golden cases of linear algebra. Where a matrix is factorised or inverted, its diagonal is large (`dominant`)."""
from __future__ import annotations

from dataclasses import replace

from golden.cases import Case, case

DTYPES = "float32", "float64"


def _dominant(made: Case, *names: str) -> Case:
    return replace(made, inputs=tuple(replace(i, dominant=i.name in names) for i in made.inputs))


# long: one table.
def cases() -> list[Case]:
    made = []
    for dtype in DTYPES:
        for ta in (False, True):
            for tb in (False, True):
                a, b = (3, 2) if ta else (2, 3), (4, 3) if tb else (3, 4)
                attrs = {"transpose_a": ta, "transpose_b": tb, "alpha": 1.5}
                label = f"{ta:d}{tb:d}"
                made.append(case("_linalg_gemm2", label, {"A": a, "B": b}, attrs, dtype=dtype))
                made.append(case("_linalg_gemm", label, {"A": (2, *a), "B": (2, *b), "C": (2, 2, 4)},
                                 {**attrs, "beta": -0.5}, dtype=dtype))
        for axis in (1, -3, -2):
            shapes = {"A": (2, 3, 4, 5), "B": (2, 5, 4, 6), "C": (2, 3, 4, 6)}
            if axis == -2:
                shapes = {"A": (2, 3, 4, 5), "B": (2, 3, 5, 6), "C": (2, 3, 4, 6)}
            made.append(case("_linalg_gemm", f"axis{axis}", shapes, {"axis": axis}, dtype=dtype))
        for op in ("_linalg_trmm", "_linalg_trsm"):
            for transpose in (False, True):
                for rightside in (False, True):
                    for lower in (False, True):
                        shapes = {"A": (2, 3, 3), "B": (2, 4, 3) if rightside else (2, 3, 4)}
                        attrs = {"transpose": transpose, "rightside": rightside, "lower": lower, "alpha": 0.5}
                        label = f"{transpose:d}{rightside:d}{lower:d}"
                        made.append(_dominant(case(op, label, shapes, attrs, dtype=dtype), "A"))
        made.append(case("_linalg_syrk", "plain", {"A": (3, 2)}, dtype=dtype))
        made.append(case("_linalg_syrk", "turned", {"A": (2, 3, 2)}, {"transpose": True, "alpha": -2}, dtype=dtype))
        for op in ("potrf", "potri", "inverse", "det", "slogdet", "syevd", "sumlogdiag"):
            for shape in ((3, 3), (2, 3, 3), (2, 1, 4, 4), (1, 1)):
                label = "x".join(map(str, shape))
                made.append(_dominant(case(f"_linalg_{op}", label, {"A": shape}, dtype=dtype), "A"))
        for shape in ((2, 3), (3, 3), (2, 2, 4), (1, 3)):
            made.append(case("_linalg_gelqf", "x".join(map(str, shape)), {"A": shape}, dtype=dtype))
        for offset in (-2, -1, 0, 1, 2):
            made.append(case("_linalg_extractdiag", f"{offset}", {"A": (2, 3, 3)}, {"offset": offset}, dtype=dtype))
            made.append(case("_linalg_makediag", f"{offset}", {"A": (2, 3)}, {"offset": offset}, dtype=dtype))
            for lower in (False, True):
                attrs = {"offset": offset, "lower": lower}
                made.append(case("_linalg_extracttrian", f"{offset}_{lower:d}", {"A": (2, 3, 3)}, attrs, dtype=dtype))
                made.append(case("_linalg_maketrian", f"{offset}_{lower:d}", {"A": (2, 3)}, attrs, dtype=dtype))
        for offset in (-1, 1):
            attrs = {"offset": offset}
            made.append(case("_linalg_extracttrian", f"of_four_{offset}", {"A": (4, 4)}, attrs, dtype=dtype))
            made.append(case("_linalg_maketrian", f"of_four_{offset}", {"A": (6,)}, attrs, dtype=dtype))
        made.append(case("_linalg_extractdiag", "one", {"A": (3, 3)}, dtype=dtype))
        made.append(case("_linalg_det", "zeros", {"A": (2, 2)}, dtype=dtype, span=(0, 0)))
        made.append(case("_linalg_slogdet", "zeros", {"A": (2, 2)}, dtype=dtype, span=(0, 0)))
    refused = [("potrf", {"A": (2, 3)}, {}), ("potrf", {"A": (2, 2)}, {"span": (-2, -1)}),
               ("inverse", {"A": (2, 3)}, {}), ("inverse", {"A": (2, 2)}, {"span": (0, 0)}),
               ("potri", {"A": (2, 2)}, {"span": (0, 0)}),
               ("det", {"A": (2, 2, 1)}, {}), ("gelqf", {"A": (3, 2)}, {}), ("syevd", {"A": (2, 3)}, {}),
               ("extractdiag", {"A": (3,)}, {}), ("extractdiag", {"A": (3, 3)}, {"attrs": {"offset": 3}}),
               ("extracttrian", {"A": (3, 3)}, {"attrs": {"offset": -3}}), ("extracttrian", {"A": (2, 3)}, {}),
               ("maketrian", {"A": (2, 5)}, {}), ("trmm", {"A": (2, 2), "B": (3, 2)}, {}),
               ("trsm", {"A": (2, 2), "B": (3, 2)}, {}), ("trsm", {"A": (2, 3), "B": (3, 2)}, {}),
               ("gemm2", {"A": (2, 3), "B": (2, 3)}, {}), ("gemm2", {"A": (2, 2, 3), "B": (1, 3, 2)}, {}),
               ("gemm2", {"A": (2, 3), "B": (3, 2)}, {"attrs": {"axis": -1}}),
               ("gemm2", {"A": (2, 3), "B": (3, 2)}, {"dtype": "float16"}),
               ("det", {"A": (2, 2)}, {"dtype": "float16"})]
    for number, (op, shapes, more) in enumerate(refused):
        made.append(case(f"_linalg_{op}", f"refused{number}", shapes, **more))  # type: ignore[arg-type]
    return made
