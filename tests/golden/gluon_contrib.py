"""Gluon's contrib, written once for MXNet and mxc: recurrent cells, samplers, and the estimator with its handlers.

With MXNet's Python, `gluon_contrib.py` writes what MXNet 1.9.1 answers to gluon_contrib.json, a line for each case;
tests/test_gluon_contrib.py compares mxc's.
"""
import importlib
import logging
import os
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_suffix(".json")
N, T = 2, 3
SHAPES = {1: (2, 7), 2: (2, 5, 6), 3: (2, 4, 3, 4)}  # of an example, by the number of axes


def part(mx, name):
    return importlib.import_module(f"{mx.__name__}.gluon.{name}")


def short(array):
    """The shape, and some of the values with the sum of all."""
    values = np.asarray(array.asnumpy(), "float64").ravel()
    return [list(array.shape), [float(f"{v:.5g}") for v in (*values[:6], values.sum())]]


def values(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape)


def cell(make, shape=(4,), graph=True, **options):
    """A cell, made by `make(contrib.rnn, rnn)`: its names, an unrolled sequence of steps (N, *shape) and gradients."""
    def call(mx):
        with mx.name.NameManager():
            made = make(part(mx, "contrib.rnn"), part(mx, "rnn"))
        found = {"repr": repr(made), "prefix": made.prefix,
                 "info": [[list(i["shape"]), i["__layout__"]] for i in made.state_info(N)]}
        if graph:
            with mx.name.NameManager():
                outputs, states = made.unroll(2, [mx.sym.var("t0"), mx.sym.var("t1")])
            whole = mx.sym.Group([*outputs, *states])
            found["graph"] = whole.get_internals().list_outputs()
        made.initialize()
        steps = [mx.nd.array(values(50 + i, N, *shape)) for i in range(T)]
        given = {"inputs": mx.nd.stack(*steps, axis=1) if options else steps, **options}
        if "valid_length" in options:
            given["valid_length"] = mx.nd.array(options["valid_length"])
        made.unroll(T, **given)
        for seed, (_, param) in enumerate(sorted(made._collect_params_with_prefix().items())):
            param.set_data(mx.nd.array(values(seed, *param.shape) * 0.7))
        with mx.autograd.record():
            outputs, states = made.unroll(T, **given)
            listed = outputs if isinstance(outputs, (list, tuple)) else [outputs]
            total = sum((out * out).sum() for out in listed) + sum((s * s * 0.5).sum() for s in states)
        total.backward()
        return {**found, "is list": isinstance(outputs, (list, tuple)), "outputs": [short(out) for out in listed],
                "states": [short(state) for state in states],
                "parameters": {path: [p.name, list(p.shape), short(p.grad())]
                               for path, p in sorted(made._collect_params_with_prefix().items())}}

    return call


def interval(*arguments):
    """What an IntervalSampler gives."""
    def call(mx):
        sampler = part(mx, "contrib.data").IntervalSampler(*arguments)
        return [list(sampler), len(sampler)]

    return call


class Lines(logging.Handler):
    """What an estimator says, without times and folders."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        line = re.sub(r"(in|interval:) [0-9.]+s|total [0-9]+s| model at [^ ]+|improved from [^ ]+", r"\1",
                      record.getMessage())
        self.lines.append(re.sub(r"^\[Epoch [0-9]+\] (?=CheckpointHandler)", "", line))


class Recorder:
    """Told of all events; what it was told."""

    def __init__(self, name, priority, events):
        self.name, self.priority, self.events = name, priority, events

    def _say(self, event, kwargs):
        sizes = [f"{key} {len(value)}" for key, value in sorted(kwargs.items())]
        self.events.append(" ".join([self.name, event, *sizes]))


for _event in ("train_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end", "train_end"):
    setattr(Recorder, _event, lambda self, estimator, _event=_event, **kwargs: self._say(_event, kwargs))


def estimator(mx, **options):
    """An estimator of a small network, its loaders for training and validation, and what it says."""
    gluon, contrib = part(mx, "nn"), part(mx, "contrib.estimator")
    net = gluon.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.Dense(8, activation="tanh"), gluon.Dense(3))
    net.initialize()
    net.hybridize()
    x = np.random.RandomState(0).randn(25, 4)
    y = (x.sum(1) > 0).astype(int) + (x[:, 0] > 1)
    net(mx.nd.array(x))
    for seed, (_, param) in enumerate(sorted(net._collect_params_with_prefix().items())):
        param.set_data(mx.nd.array(values(seed, *param.shape) * 0.7))
    data = part(mx, "data")
    rows = data.ArrayDataset(mx.nd.array(x), mx.nd.array(y))
    trainer = part(mx, "trainer").Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "momentum": 0.5})
    made = contrib.Estimator(net, part(mx, "loss").SoftmaxCrossEntropyLoss(), trainer=trainer, **options)
    lines = Lines()
    made.logger.handlers = [lines]
    return made, data.DataLoader(rows, 10), data.DataLoader(rows, 7), lines


def trained(handlers=None, validate=True, **how):
    """What a training with the handlers that `handlers(contrib.estimator, estimator, events, folder)` gives says."""
    def call(mx):
        contrib = part(mx, "contrib.estimator")
        found = {}
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            for again in range(2 if how.get("twice") else 1):
                made, train, val, lines = estimator(mx)
                events = []
                given = {"event_handlers": handlers(contrib, made, events, folder)} if handlers else {}
                limits = {key: value * (again + 1) for key, value in how.items() if key != "twice"}
                made.fit(train, val if validate else None, **limits, **given)
            found["files"] = sorted(os.listdir(folder))
        found |= {"lines": lines.lines, "events": events}
        for kind, metrics in (("train", made.train_metrics), ("val", made.val_metrics)):
            found[kind] = [[name, float(f"{value:.4g}")] for name, value in (m.get() for m in metrics)]
        found["weights"] = [short(param.data()) for param in made.net.collect_params().values()]
        return found

    return call


def recorders(contrib, made, events, folder):
    kinds = [getattr(contrib, name) for name in
             ("TrainBegin", "EpochBegin", "BatchBegin", "BatchEnd", "EpochEnd", "TrainEnd")]
    kind = type("Own", (Recorder, *kinds), {})
    return [kind("late", 5, events), kind("early", -3000, events)]


def checkpoints(**options):
    def make(contrib, made, events, folder):
        monitor = {"monitor": made.train_metrics[0]} if options.get("save_best") else {}
        return [contrib.CheckpointHandler(folder, "m", verbose=1, **monitor, **options)]

    return make


CASES = {
    **{f"conv{axes}d {kind}": cell(lambda rnn, _, kind=kind, axes=axes: getattr(rnn, f"Conv{axes}D{kind}Cell")(
        SHAPES[axes], 3, i2h_kernel=3, h2h_kernel=3, i2h_pad=1), SHAPES[axes])
       for axes in (1, 2, 3) for kind in ("RNN", "LSTM", "GRU")},
    "conv lstm with all options": cell(lambda rnn, _: rnn.Conv2DLSTMCell(
        (2, 6, 5), 3, (3, 2), (3, 5), i2h_pad=(0, 1), i2h_dilate=2, h2h_dilate=(2, 1), activation="relu"), (2, 6, 5)),
    "lstmp": cell(lambda rnn, _: rnn.LSTMPCell(5, 3)),
    "lstmp of a known size, merged": cell(lambda rnn, _: rnn.LSTMPCell(5, 3, input_size=4), merge_outputs=True),
    "variational dropout of nothing": cell(lambda rnn, own: rnn.VariationalDropoutCell(own.LSTMCell(3)), graph=False),
    "variational dropout of nothing, lengths": cell(lambda rnn, own: rnn.VariationalDropoutCell(own.GRUCell(3)),
                                                    graph=False, valid_length=[1, 3]),
    "interval": interval(13, 3), "interval without rollover": interval(13, 3, False), "whole interval": interval(6, 6),
    "two epochs": trained(epochs=2), "four batches": trained(recorders, batches=4, validate=False),
    "events and validation": trained(recorders, epochs=1),
    "logging by batches": trained(lambda c, e, _, __: [c.LoggingHandler(2, e.train_metrics)], epochs=1),
    "checkpoints of the best": trained(checkpoints(save_best=True, max_checkpoints=2), epochs=4),
    "checkpoints by batches": trained(checkpoints(epoch_period=None, batch_period=2), batches=5),
    "resumed": trained(checkpoints(resume_from_checkpoint=True), epochs=2, twice=True),
    "resumed by batches": trained(checkpoints(resume_from_checkpoint=True, epoch_period=None, batch_period=1),
                                  batches=4, twice=True),
    "early stopping": trained(lambda c, e, _, __: [c.EarlyStoppingHandler(e.val_metrics[0], min_delta=.5, patience=2)],
                              epochs=9),
    "early stopping by a baseline": trained(lambda c, e, _, __: [c.EarlyStoppingHandler(
        e.train_metrics[1], mode="min", baseline=.01)], epochs=9),
}


def answer(mx, case):
    """What a case gives."""
    return CASES[case](mx)


if __name__ == "__main__":
    import answers

    answers.run(__file__, PATH, CASES, answer)
