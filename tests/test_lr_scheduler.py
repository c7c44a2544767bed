"""Learning rate schedulers: over 1000 updates as MXNet's (golden/schedules.json), what they refuse and log."""
from __future__ import annotations

import importlib
import json
import logging

import pytest

import mxc as mx

golden = importlib.import_module("golden.schedules")
REAL = json.loads(golden.PATH.read_text())
schedulers = mx.lr_scheduler


def test_every_schedule_is_recorded() -> None:
    assert list(REAL) == [json.dumps(q) for q in golden.questions()]


@pytest.mark.parametrize("question", REAL)
def test_rates_are_mxnets_to_the_last_digit(question: str) -> None:
    assert golden.answer(mx, question) == REAL[question]


@pytest.mark.parametrize(("make", "error", "match"), [
    (lambda: schedulers.FactorScheduler(0), ValueError, "at least 1; got 0"),
    (lambda: schedulers.FactorScheduler(1, factor=1.5), ValueError, "factor must be at most 1"),
    (lambda: schedulers.MultiFactorScheduler([3, 2]), ValueError, r"increasing.*got \[3, 2\]"),
    (lambda: schedulers.MultiFactorScheduler([2, 2]), ValueError, "increasing"),
    (lambda: schedulers.MultiFactorScheduler([0, 2]), ValueError, "at least 1"),
    (lambda: schedulers.MultiFactorScheduler([]), TypeError, "a list of at least one"),
    (lambda: schedulers.MultiFactorScheduler((1, 2)), TypeError, "a list of at least one"),
    (lambda: schedulers.MultiFactorScheduler([1], factor=2), ValueError, "factor must be at most 1"),
    (lambda: schedulers.PolyScheduler(0), ValueError, "max_update must be 1 or more"),
    (lambda: schedulers.CosineScheduler(1.5), TypeError, "max_update must be a whole number, got 1.5"),
    (lambda: schedulers.CosineScheduler(5, warmup_steps=-1), ValueError, "warmup_steps must be 0 or more"),
    (lambda: schedulers.PolyScheduler(5, warmup_steps=1.5), TypeError, "warmup_steps must be a whole number"),
    (lambda: schedulers.PolyScheduler(5, warmup_begin_lr=1), ValueError, "they are 1 and 0.01"),
    (lambda: schedulers.FactorScheduler(5, warmup_steps=2, warmup_mode="x"), ValueError, "'linear' or 'constant'"),
    (lambda: schedulers.LRScheduler(warmup_steps=2).get_warmup_lr(2), ValueError, "behind the warm-up of 2"),
    (lambda: schedulers.LRScheduler()(3), NotImplementedError, "must define __call__"),
])
def test_what_leads_nowhere_is_refused(make, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def test_changes_are_logged_in_mxnets_words(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = schedulers.FactorScheduler(2, 0.1, stop_factor_lr=1e-3)
    multi = schedulers.MultiFactorScheduler([2, 5], 0.1)
    with caplog.at_level(logging.INFO):
        assert [scheduler(i) for i in (2, 3, 5)] == [0.01, 0.001, 0.001]
        assert [multi(i) for i in (2, 3, 6)] == [0.01, 0.001, 0.0001]
    assert [record.getMessage() for record in caplog.records] == [
        "Update[3]: Change learning rate to 1.00000e-03",
        "Update[5]: now learning rate arrived at 1.00000e-03, will not change in the future",
        "Update[3]: Change learning rate to 1.00000e-03", "Update[6]: Change learning rate to 1.00000e-04"]


def test_a_warm_up_as_long_as_the_schedule_ends_at_its_last_rate() -> None:
    """MXNet divides by zero there."""
    scheduler = schedulers.PolyScheduler(4, final_lr=0.001, warmup_steps=4)
    assert [scheduler(i) for i in (2, 4, 9)] == [0.005, 0.001, 0.001]
