"""Golden cases of densities."""
from __future__ import annotations

from golden.cases import Case, case
from golden.shape_cases import Row, row

# name: parameters with their ranges, the sample's range, whether it counts
DENSITIES = {
    "uniform": ({"low": (0, 1), "high": (2, 3)}, (0, 3), False),
    "normal": ({"mu": (-1, 1), "sigma": (0.5, 2)}, (-2, 2), False),
    "gamma": ({"alpha": (0.5, 3), "beta": (0.5, 3)}, (0.1, 4), False),
    "exponential": ({"lam": (0.5, 3)}, (0, 4), False),
    "poisson": ({"lam": (0.5, 6)}, (0, 9), True),
    "negative_binomial": ({"k": (1, 5), "p": (0.2, 0.8)}, (0, 9), True),
    "generalized_negative_binomial": ({"mu": (0.5, 6), "alpha": (0.2, 0.8)}, (0, 9), True),
}


def cases() -> list[Case]:
    made = []
    for name, (parameters, span, counts) in DENSITIES.items():
        op = f"random_pdf_{name}"
        for label, lead, more, log in (("rows", (2,), (4,), False), ("rows_log", (2,), (4,), True),
                                       ("more", (2, 2), (3, 2), False), ("alone", (5,), (), True)):
            shapes = {"sample": (*lead, *more), **dict.fromkeys(parameters, lead)}
            made.append(case(op, label, shapes, {"is_log": log}, span=span, spans=parameters,
                             integer=["sample"] if counts else []))
        shapes = {"sample": (2, 3), **dict.fromkeys(parameters, (2,))}
        made.append(case(op, "half", shapes, dtype="float16", span=span, spans=parameters, train=False,
                         integer=["sample"] if counts else []))
        made.append(case(op, "int", shapes, dtype="int32", span=(1, 3), train=False))
        made.append(case(op, "wrong", {"sample": (3, 3), **dict.fromkeys(parameters, (2,))}, span=span))
    made.append(case("random_pdf_uniform", "turned", {"sample": (2, 3), "low": (2,), "high": (2,)}, train=False,
                     spans={"low": (2, 3), "high": (0, 1)}))
    for label, sample, alpha, log in (("rows", (2, 3, 4), (2, 4), False), ("log", (2, 3, 4), (2, 4), True),
                                      ("one", (3,), (3,), False), ("plain", (2, 3), (2, 3), True)):
        made.append(case("random_pdf_dirichlet", label, {"sample": sample, "alpha": alpha}, {"is_log": log},
                         span=(0.1, 0.9), spans={"alpha": (0.5, 3)}))
    made.append(case("random_pdf_dirichlet", "wrong", {"sample": (2, 3), "alpha": (2, 4)}))
    return made


def rows() -> list[Row]:
    made = [row("random_pdf_normal", {"sample": sample, "mu": mu, "sigma": sigma}) for sample, mu, sigma in (
        ((2, 3), (2,), (2,)), ((2, 3), (2,), None), (None, (2,), (2,)), ((3, 3), (2,), (2,)))]
    made += [row("random_pdf_dirichlet", {"sample": sample, "alpha": alpha}) for sample, alpha in (
        ((2, 3, 4), (2, 4)), ((4,), (4,)), ((2, 4), (3, 4)))]
    return made
