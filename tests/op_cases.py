"""Test inputs of operators: those that a kind has by default, ranges and more cases from `samples` of ops.yaml."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mxc.compiler.ops.operator import Kind, Operator, Params


@dataclass(frozen=True)
class Case:
    """Parameters, and an array's shape for each input, with values in low..high."""

    op: Operator
    params: Params
    shapes: tuple[tuple[int, ...], ...]
    low: float = -1.0
    high: float = 1.0

    def arrays(self, dtype: str = "float64", seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        return [rng.uniform(self.low, self.high, shape).astype(dtype) for shape in self.shapes]

    def __str__(self) -> str:
        shown = ",".join(f"{k}={v}" for k, v in self.op.attrs_of(self.params).items())
        return f"{self.op.name}({shown}){'x'.join(map(str, self.shapes))}".replace(" ", "")


_REDUCTIONS: list[dict[str, object]] = [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True},
                                        {"axis": 1, "exclude": True}]


def cases(op: Operator) -> list[Case]:
    """At least one case for an operator with `expr` or `reduce` whose parameters have defaults or a sample."""
    samples = list(op.samples) or [{}]
    found = []
    for sample in samples:
        given = dict(sample.get("params", {}))
        given.setdefault(op.variadic, 3) if op.variadic else None
        for params in _parameter_sets(op, given):
            for shapes in [sample["shapes"]] if "shapes" in sample else _default_shapes(op, params):
                sizes = tuple(tuple(s) for s in shapes)
                found.append(Case(op, params, sizes, sample.get("low", -1.0), sample.get("high", 1.0)))
    return found


def _parameter_sets(op: Operator, given: dict[str, object]) -> list[Params]:
    if isinstance(op.expr, dict):
        (name, choices), = op.expr.items()
        return [op.make_params({**given, name: value}) for value in choices]
    if op.reduce is not None:
        one = "axis" in op.params and str(op.params["axis"]).startswith("int")  # axis is one number, not several
        sets = [more for more in _REDUCTIONS if not (one and isinstance(more.get("axis"), tuple))]
        return [op.make_params({**given, **{k: v for k, v in more.items() if k in op.params}}) for more in sets]
    return [op.make_params(given)]


def _default_shapes(op: Operator, params: Params) -> list[list[tuple[int, ...]]]:
    count = len(op.input_names(params))
    if op.kind == Kind.BROADCAST and count == 2:
        return [[(2, 3), (2, 3)], [(2, 1), (1, 3)], [(3,), (2, 3)]]
    return [[(2, 3, 4) if op.reduce else (2, 3)] * count]
