"""Gluon's contrib answers what MXNet 1.9.1 does (golden/gluon_contrib.json): cells, samplers, the estimator."""
from __future__ import annotations

import importlib
import json
import logging
import math
import re
from pathlib import Path

import pytest

import mxc as mx
from mxc import gluon
from mxc.gluon.contrib import estimator as contrib
from mxc.gluon.contrib import rnn

gluon_contrib = importlib.import_module("golden.gluon_contrib")
REAL = json.loads(gluon_contrib.PATH.read_text())
OURS = (r"EarlyStoppingHan.*",)  # lines that are worded otherwise


def same(ours, theirs, tolerance: float = 3e-4) -> bool:
    """Equal, but for rounding."""
    if isinstance(theirs, (list, dict)):
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(
            same(ours[key], theirs[key], tolerance) for key in keys)
    if isinstance(theirs, float):
        return math.isnan(ours) if math.isnan(theirs) else math.isclose(ours, theirs, rel_tol=tolerance,
                                                                        abs_tol=tolerance / 10)
    if isinstance(theirs, str):
        return re.sub(*OURS, "", ours) == re.sub(*OURS, "", theirs)
    return ours == theirs


def test_every_case_is_recorded():
    assert list(REAL) == list(gluon_contrib.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str):
    ours = gluon_contrib.answer(mx, case)
    assert same(ours, REAL[case]), (ours, REAL[case])


@pytest.mark.parametrize("arguments", [{"h2h_kernel": 2}, {"h2h_kernel": (3, 3, 3)},
                                       {"h2h_kernel": 3, "i2h_pad": (1,)}])
def test_convolutions_that_cannot_be(arguments: dict):
    with pytest.raises(AssertionError, match=next(reversed(arguments))):
        rnn.Conv2DRNNCell((2, 6, 5), 3, i2h_kernel=3, **arguments)


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybrid"])
@pytest.mark.parametrize("make", [lambda: rnn.Conv1DGRUCell((2, 7), 3, 3, 3, 1), lambda: rnn.LSTMPCell(5, 3),
                                  lambda: rnn.VariationalDropoutCell(gluon.rnn.LSTMCell(3))],
                         ids=["conv", "projection", "dropout"])
def test_one_step_hybridised_or_not(make, hybrid: bool):
    cell = make()
    cell.initialize()
    steps = [mx.nd.random.uniform(shape=(2, 2, 7) if "Conv" in repr(cell) else (2, 4)) for _ in range(2)]
    outputs, states = cell.unroll(2, steps, merge_outputs=False)
    if hybrid:
        cell.hybridize()
    state = cell.begin_state(func=mx.nd.zeros, batch_size=2)
    for step, expected in zip(steps, outputs, strict=True):
        out, state = cell(step, state)
        assert abs(out - expected).max().asscalar() < 1e-6
    assert all(abs(one - other).max().asscalar() < 1e-6 for one, other in zip(state, states, strict=True))


def test_variational_dropout_drops_the_same_in_all_steps():
    cell = rnn.VariationalDropoutCell(gluon.rnn.RNNCell(8, activation="relu"), drop_inputs=0.5, drop_states=0.5,
                                      drop_outputs=0.5)
    cell.initialize(mx.init.One())
    steps = [mx.nd.ones((4, 3)) for _ in range(3)]
    with mx.autograd.record():
        outputs, _ = cell.unroll(3, steps)
    dropped = [out.asnumpy() == 0 for out in outputs]
    assert 0 < dropped[0].sum() < dropped[0].size and all((one == dropped[0]).all() for one in dropped)
    whole = rnn.VariationalDropoutCell(gluon.rnn.RNNCell(8, activation="relu"), drop_outputs=0.5)
    whole.initialize(mx.init.One())
    with mx.autograd.record():
        merged, _ = whole.unroll(3, mx.nd.ones((4, 3, 3)), merge_outputs=True)
    zeros = merged.asnumpy() == 0
    assert 0 < zeros.sum() < zeros.size and (zeros == zeros[:, :1]).all()
    with pytest.raises(AssertionError, match="BidirectionalCell"):
        rnn.VariationalDropoutCell(gluon.rnn.BidirectionalCell(gluon.rnn.RNNCell(3), gluon.rnn.RNNCell(3)),
                                   drop_states=0.1)


def test_an_estimator_by_default():
    net = gluon.nn.Dense(2)
    with pytest.warns(UserWarning, match="no trainer"):
        made = contrib.Estimator(net, gluon.loss.L1Loss())
    assert [metric.name for metric in made.train_metrics + made.val_metrics] == ["training l1loss",
                                                                                 "validation l1loss"]
    assert type(made.trainer.optimizer).__name__ == "SGD" and made.trainer.learning_rate == 0.001
    assert made.context == [mx.cpu()] and net.weight.list_ctx() == [mx.cpu()]


def test_several_devices_share_a_batch():
    ctx = [mx.cpu(0), mx.cpu(1)]
    net = gluon.nn.Dense(1, in_units=3)
    net.initialize(mx.init.One(), ctx=ctx)
    made = contrib.Estimator(net, gluon.loss.L2Loss(), context=ctx,
                             trainer=gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}))
    made.logger.handlers = [logging.NullHandler()]
    rows = gluon.data.ArrayDataset(mx.nd.ones((8, 3)), mx.nd.zeros((8,)))
    made.fit(gluon.data.DataLoader(rows, 8), epochs=1)
    assert (net.weight.data(ctx[1]).asnumpy() == net.weight.data(ctx[0]).asnumpy()).all()
    assert abs(net.weight.data(ctx[0]).asnumpy() - 0.7).max() < 1e-6  # the mean gradient is 3


BAD = {
    "loss": lambda e, net, loader: contrib.Estimator(net, 3),
    "trainer": lambda e, net, loader: contrib.Estimator(net, gluon.loss.L2Loss(), trainer=3),
    "context": lambda e, net, loader: contrib.Estimator(net, gluon.loss.L2Loss(), context="cpu"),
    "batch_processor": lambda e, net, loader: contrib.Estimator(net, gluon.loss.L2Loss(), batch_processor=3,
                                                                trainer=e.trainer),
    "DataLoader": lambda e, net, loader: e.fit([1], epochs=1),
    "DataLoader, got list": lambda e, net, loader: e.evaluate([1]),
    "epochs or batches": lambda e, net, loader: e.fit(loader),
    "epochs=1 and batches=1": lambda e, net, loader: e.fit(loader, epochs=1, batches=1),
    "EventHandlers": lambda e, net, loader: e.fit(loader, epochs=1, event_handlers=[3]),
    "log_interval": lambda e, net, loader: contrib.LoggingHandler("batch"),
    "monitor": lambda e, net, loader: contrib.EarlyStoppingHandler("loss"),
    "EvalMetric": lambda e, net, loader: contrib.MetricHandler([3]),
}


@pytest.mark.parametrize("words", BAD)
def test_refusals(words: str):
    made, loader, _, _ = gluon_contrib.estimator(mx)
    with pytest.raises(ValueError, match=words):
        BAD[words](made, made.net, loader)


def test_checkpoints_that_cannot_be(tmp_path: Path):
    with pytest.raises(ValueError, match="save_best"):
        contrib.CheckpointHandler(str(tmp_path / "new"), save_best=True)
    made, loader, _, _ = gluon_contrib.estimator(mx)
    with pytest.raises(AssertionError, match="epoch_period"):
        made.fit(loader, epochs=1, event_handlers=contrib.CheckpointHandler(
            str(tmp_path), batch_period=1, resume_from_checkpoint=True))
    made.fit(loader, epochs=1, event_handlers=contrib.CheckpointHandler(str(tmp_path)))
    with pytest.raises(ValueError, match="asked for already"):
        made.fit(loader, epochs=1, event_handlers=contrib.CheckpointHandler(str(tmp_path),
                                                                            resume_from_checkpoint=True))


def test_auto_takes_less_of_a_loss_for_better():
    made, loader, _, _ = gluon_contrib.estimator(mx)
    handler = contrib.EarlyStoppingHandler(made.train_metrics[1], patience=1)
    made.fit(loader, epochs=4, event_handlers=[handler])
    assert handler.stopped_epoch == 0 and handler.best == made.train_metrics[1].get()[1]
    with pytest.warns(RuntimeWarning, match="mode is 'most'"):
        contrib.EarlyStoppingHandler(made.train_metrics[0], mode="most")
