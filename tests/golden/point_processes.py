"""Golden cases of likelihoods of events in time, in float32: MXNet rounds to it in float64, too."""
from __future__ import annotations

from golden.cases import Case, case

OP = "_contrib_hawkesll"


def cases() -> list[Case]:
    made = []
    constant = ("lags", "marks", "valid_length", "max_time")
    for label, (samples, kinds, events), longest in (("plain", (2, 3, 4), (1, 5)), ("whole", (3, 2, 5), (5, 5)),
                                                     ("one_kind", (2, 1, 6), (2, 7)), ("none", (2, 3, 4), (0, 0)),
                                                     ("one", (1, 1, 1), (1, 1)), ("fraction", (2, 4, 7), (1.5, 4.5))):
        shapes = {"lda": (samples, kinds), "alpha": (kinds,), "beta": (kinds,), "state": (samples, kinds),
                  "lags": (samples, events), "marks": (samples, events), "valid_length": (samples,),
                  "max_time": (samples,)}
        spans = {"lda": (0.5, 2), "alpha": (0.1, 0.8), "beta": (0.3, 2), "state": (0, 1.5), "lags": (0.1, 1),
                 "marks": (0, kinds), "valid_length": longest, "max_time": (4, 9)}
        made.append(case(OP, label, shapes, dtypes={"marks": "int32"}, spans=spans, integer=("marks",),
                         no_grad=constant))
        if label == "plain":
            for name in ("alpha", "state", "max_time"):
                wrong = {**shapes, name: (*shapes[name][:-1], shapes[name][-1] + 1)}
                made.append(case(OP, f"refused_{name}", wrong, dtypes={"marks": "int32"}, spans=spans,
                                 integer=("marks",), no_grad=constant))
    return made
