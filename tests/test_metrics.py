"""Metrics show what MXNet 1.9.1's show, and raise what they raise (golden/metrics.json)."""
from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from golden import metrics

import mxc as mx

REAL = json.loads((Path(__file__).parent / "golden" / "metrics.json").read_text())
# Errors of MXNet's own code by what mxc raises there.
ACCIDENTS = {"AssertionError": ("TypeError", "ValueError", "IndexError"), "AttributeError": ("TypeError", "ValueError")}
MISSING_GLOBAL = "average='micro'"  # of PearsonCorrelation: MXNet's global value is 0
BATCHES = {name: steps for name, (_, steps) in metrics.STEPS.items()}
# What mxc refuses at once, with which error, or when the first batch comes ("update").
REFUSED = {
    "after(m.TopKAccuracy(top_k=2.0), (c(1, 3, 6), p(2, 6, 3)))": "TypeError",
    "after(m.Perplexity('1'), (c(1, 3, 6), p(2, 6, 3)))": "TypeError",
    "after(m.PearsonCorrelation(average='other'), (r(1, 6), r(2, 6)), (r(3, 6), r(4, 6)))": "ValueError",
    "[type(m.CompositeEvalMetric(['acc']).get_metric(1)).__name__]": "ValueError",  # MXNet returns the error
    "[type(m.CompositeEvalMetric([]).get_metric(0)).__name__]": "ValueError",
    # Places in a partly sorted vector are no classes.
    **{f"after(m.TopKAccuracy(top_k=2), {steps})": "update" for steps in (
        "(c(1, 3, 6), c(2, 3, 6))", BATCHES["scores of a vector"], BATCHES["scores of classes"],
        BATCHES["two outputs of their shapes"])},
    # PCC: predictions without labels, of which MXNet takes as many as there are labels.
    **{f"after(m.{pcc}, {BATCHES[name]})": "update" for pcc in ("PCC()", "PCC(has_global_stats=False)")
       for name in ("second output wrong", "sequences")},
}
# Numbers that mxc has where MXNet has others, or an error; after the first batch and after the second.
PICTURES = [["pcc", -0.08362420100070908]] * 2
OTHERS = {
    # MXNet counts equal pairs of a row of pixels once.
    **{f"after(m.{pcc}, {BATCHES['pictures']})": (1, PICTURES) for pcc in ("PCC()", "PCC(has_global_stats=False)")},
    # MXNet has no number that large.
    **{f"after(m.{perplexity}, {BATCHES['scores of classes']})": (2, [["perplexity", "inf"]] * 2)
       for perplexity in ("Perplexity(None)", "Perplexity(ignore_label=1)")},
    # MXNet has no largest score of none.
    **{f"after(m.{metric}, {BATCHES['empty']})": (1, [[name, "nan"]] * 2) for metric, name in (
        ("Accuracy()", "accuracy"), ("PCC()", "pcc"), ("PCC(has_global_stats=False)", "pcc"))},
    f"after(m.TopKAccuracy(top_k=2), {BATCHES['empty']})": (2, [
        [["error", ["ValueError"]]], [["top_k_accuracy_2", "nan"], ["top_k_accuracy_2", "nan"], 0, 0, 0.0, 0.0]]),
    f"after(m.CompositeEvalMetric(['acc', 'mse']), {BATCHES['empty']})": (
        1, [[["accuracy", "mse"], ["nan", "nan"]]] * 2),
}


def same(ours, theirs) -> bool:
    """Equal, but for rounding, and an error for classes of which mxc's is one."""
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return False
        if theirs[:1] == ["error"] and isinstance(theirs[1], list):
            return raised(ours[1], theirs[1])
        return all(map(same, ours, theirs))
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and raised(ours["error"], theirs["error"])
    if isinstance(theirs, (int, float)) and not isinstance(theirs, bool):
        return isinstance(ours, (int, float)) and math.isclose(ours, theirs, rel_tol=2e-6, abs_tol=1e-7)
    return ours == theirs


def raised(ours, theirs) -> bool:
    return any(name in ours for first in theirs for name in (first, *ACCIDENTS.get(first, ())))


def without_global(shown):
    """What a metric shows at each step, less its global value."""
    if len(shown) == 2 and isinstance(shown[0][0], list):  # an error, and what it shows then
        return [shown[0], without_global(shown[1])]
    return [shown[0], *shown[2:]]


def test_every_case_is_recorded():
    assert list(REAL) == metrics.CASES
    assert set(REFUSED) | set(OTHERS) <= set(REAL)


@pytest.mark.parametrize("case", REAL)
def test_shows_what_mxnet_shows(case: str):
    ours, real = json.loads(json.dumps(metrics.answer(mx, case))), REAL[case]
    if case in OTHERS:
        step, wanted = OTHERS[case]
        assert same(ours[:step], real[:step]) and same(ours[step][:2], wanted) and not same(ours, real)
    elif REFUSED.get(case) == "update":
        assert "ValueError" in dict(ours[1][0])["error"] and not same(ours, real)
    elif case in REFUSED:
        assert REFUSED[case] in ours["error"] and not same(ours, real)
    elif "PearsonCorrelation" in case and MISSING_GLOBAL in case:
        assert same([*map(without_global, ours)], [*map(without_global, real)]), f"\n{ours}\n{real}"
    else:
        assert same(ours, real), f"\n{ours}\n{real}"
