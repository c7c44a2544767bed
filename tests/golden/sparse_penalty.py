"""Golden cases of the penalty on channels that are active too often, whose average changes with the gradient."""
from __future__ import annotations

from golden.cases import Case, case


def cases() -> list[Case]:
    made = []
    op, shapes, spans = "IdentityAttachKLSparseReg", {"data": (4, 3), "moving_avg": (3,)}, {"moving_avg": (0.1, 0.5)}
    for label, attrs in (("plain", {}), ("strong", {"sparseness_target": 0.3, "penalty": 2, "momentum": 0.2}),
                         ("none", {"penalty": 0}), ("still", {"momentum": 1})):
        made.append(case(op, label, shapes, attrs, span=(0.2, 0.9), spans=spans, no_grad=("moving_avg",)))
    made.append(case(op, "forward", shapes, span=(0.2, 0.9), spans=spans, train=False))
    made.append(case(op, "one", {"data": (1, 1), "moving_avg": (1,)}, {"penalty": 1}, span=(0.2, 0.9), spans=spans,
                     no_grad=("moving_avg",)))
    made.append(case(op, "refused", {"data": (4,), "moving_avg": (4,)}, span=(0.2, 0.9)))
    return made
