"""Golden cases of what programs of several precisions ask: finite numbers, sums of squares, rates of LARS."""
from __future__ import annotations

from golden.cases import Case, case

FLOATS = "float16", "float32", "float64"


def cases() -> list[Case]:
    made = []
    for dtype in FLOATS:
        made.append(case("all_finite", "plain", {"data": (3, 4)}, dtype=dtype, train=False))
        for op in ("multi_all_finite", "multi_sum_sq"):
            shapes = {"data_0": (3, 4), "data_1": (2,)}
            made.append(case(op, "plain", shapes, {"num_arrays": 2}, dtype=dtype, train=False, list_input=True))
        for label, more, span in (("same", {}, (0, 0)), ("near", {"rtol": 0.5, "atol": 1}, (-1, 1)),
                                  ("far", {"atol": 0.1}, (-1, 1)), ("one_sided", {"rtol": 0.6, "atol": 0}, (1, 2))):
            made.append(case("_contrib_allclose", label, {"a": (3, 4), "b": (3, 4)}, more, dtype=dtype, span=span,
                             train=False))
    made.append(case("_contrib_allclose", "integers", {"a": (9,), "b": (9,)}, {"rtol": 0.9, "atol": 3}, dtype="int32",
                     span=(0, 9), integer=["a", "b"], train=False))
    made.append(case("all_finite", "integers", {"data": (3,)}, dtype="int32", train=False))
    rates = dict.fromkeys(("lrs", "weights_sum_sq", "grads_sum_sq", "wds"), (6,))
    attrs = {"eta": 0.5, "eps": 0.001}
    for label, more, span in (("plain", {}, (0.1, 2)), ("scaled", {"rescale_grad": 0.25}, (0.1, 2)),
                              ("zeros", {}, (0, 0)), ("no_weight", {}, (-1, 0))):
        made.append(case("multi_lars", label, rates, {**attrs, **more}, span=span, train=False))
    made.append(case("amp_multicast", "same", {"data_0": (3,), "data_1": (2, 2)}, {"num_outputs": 2}, list_input=True))
    return made
