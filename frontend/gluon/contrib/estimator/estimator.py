"""Training and evaluation of a network in one call."""
from __future__ import annotations

import copy
import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from mxc import metric as metrics
from mxc.context import Context, cpu, gpu, num_gpus
from mxc.gluon.contrib.estimator.batch_processor import BatchProcessor
from mxc.gluon.contrib.estimator.event_handler import (
    EventHandler,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    ValidationHandler,
    metrics_of,
)
from mxc.gluon.contrib.estimator.events import Told
from mxc.gluon.data import DataLoader
from mxc.gluon.loss import Loss, SoftmaxCrossEntropyLoss
from mxc.gluon.trainer import Trainer

__all__ = ["Estimator"]


class Estimator:
    """Trains `net` with `loss`.

    train_metrics, val_metrics: without them the loss, and for SoftmaxCrossEntropyLoss the accuracy; those of validation
    are copies of those of training where none are given. Their names begin "training" and "validation" then.
    initializer: for a network that is not initialised yet. trainer: without one SGD with a learning rate of 0.001.
    context: the device, or several. val_net, val_loss: for validation, where they are others. batch_processor: what is
    done with a batch. logger: where LoggingHandler writes.

    Raises ValueError for arguments of other kinds.
    """

    # MXNet's signature
    def __init__(self, net: Any, loss: Any, train_metrics: Any = None, val_metrics: Any = None, initializer: Any = None,
                 trainer: Trainer | None = None, context: Any = None, val_net: Any = None, val_loss: Any = None,
                 batch_processor: Any = None):
        self.net, self.loss = net, _checked_loss(loss)
        self._train_metrics, self._val_metrics = metrics_of(train_metrics), metrics_of(val_metrics)
        self._name_metrics()
        self.logger = logging.Logger("Estimator", logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.val_net = net if val_net is None else val_net
        self.val_loss = self.loss if val_loss is None else _checked_loss(val_loss)
        self.context = _checked_context(context)
        self.max_epoch: int | None = None
        self.max_batch: int | None = None
        self.batch_axis = 0
        self._initialize(initializer)
        self.trainer = self._checked_trainer(trainer)
        self.batch_processor = BatchProcessor() if batch_processor is None else batch_processor
        for name in ("fit_batch", "evaluate_batch"):
            if not callable(getattr(self.batch_processor, name, None)):
                raise ValueError("a batch_processor has fit_batch and evaluate_batch; "
                                 f"{batch_processor!r} has no {name}")

    def _name_metrics(self) -> None:
        """Metrics by default, and what their names begin with."""
        if not self._train_metrics:
            if isinstance(self.loss, SoftmaxCrossEntropyLoss):
                self._train_metrics.append(metrics.Accuracy())
            self._train_metrics.append(metrics.Loss(self.loss.name.rstrip("0123456789")))
        if not self._val_metrics:
            self._val_metrics = [copy.deepcopy(metric) for metric in self._train_metrics]
        for kind, listed in (("training", self._train_metrics), ("validation", self._val_metrics)):
            for metric in listed:
                metric.name = f"{kind} {metric.name}"

    def _initialize(self, initializer: Any) -> None:
        try:
            for param in self.net.collect_params().values():
                param.list_ctx()
        except RuntimeError:
            options = {} if initializer is None else {"init": initializer}
            self.net.initialize(ctx=self.context, **options)
            return
        if initializer is not None:
            warnings.warn("the network is initialised already, so the initializer is not used: "
                          "net.initialize(init, force_reinit=True) does it again", stacklevel=3)

    def _checked_trainer(self, trainer: Any) -> Trainer:
        if trainer is None:
            warnings.warn("there is no trainer: SGD with a learning rate of 0.001 is used", stacklevel=3)
            return Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})
        if not isinstance(trainer, Trainer):
            raise ValueError(f"trainer is a gluon.Trainer, got {type(trainer).__name__}: {trainer!r}")
        return trainer

    @property
    def train_metrics(self) -> list[metrics.EvalMetric]:
        """The metrics of training."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[metrics.EvalMetric]:
        """The metrics of validation."""
        return self._val_metrics

    def evaluate(self, val_data: Any, batch_axis: int = 0, event_handlers: Any = None) -> None:
        """Update the metrics of validation over a DataLoader. Handlers are told of one epoch and its batches; without
        those of their kind there are a MetricHandler and a LoggingHandler.

        Raises ValueError for other data.
        """
        _require_loader(val_data)
        self.batch_axis = batch_axis
        handlers = _listed(event_handlers)
        _with_defaults(handlers, [MetricHandler(self._val_metrics), LoggingHandler(metrics=self._val_metrics)])
        told = Told(self, handlers)
        told.tell("epoch_begin")
        for batch in val_data:
            told.tell("batch_begin", batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            told.tell("batch_end", batch=batch, pred=pred, label=label, loss=loss)
        told.tell("epoch_end")

    def fit(self, train_data: Any, val_data: Any = None, epochs: int | None = None, event_handlers: Any = None,
            batches: int | None = None, batch_axis: int = 0) -> None:
        """Train for so many epochs or batches on a DataLoader. Without handlers of their kind there are a
        StoppingHandler, a GradientUpdateHandler, a MetricHandler, with val_data a ValidationHandler, and a
        LoggingHandler.

        Raises ValueError for other data, and for both or none of epochs and batches.
        """
        _require_loader(train_data)
        if (epochs is None) == (batches is None):
            raise ValueError(f"fit takes either epochs or batches, got epochs={epochs} and batches={batches}")
        self.max_epoch, self.max_batch, self.batch_axis = epochs, batches, batch_axis
        handlers = _listed(event_handlers)
        defaults: list[EventHandler] = [GradientUpdateHandler(), MetricHandler(self._train_metrics)]
        if val_data is not None:
            defaults.append(ValidationHandler(val_data, self.evaluate))
        _with_defaults(handlers, [*defaults, LoggingHandler(metrics=self._train_metrics)])
        told = Told(self, [*handlers, StoppingHandler(epochs, batches)])
        told.tell("train_begin")
        ended = False
        while not ended:
            told.tell("epoch_begin")
            for batch in train_data:
                told.tell("batch_begin", batch=batch)
                _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
                if told.tell("batch_end", batch=batch, pred=pred, label=label, loss=loss):
                    break
            ended = told.tell("epoch_end")
        told.tell("train_end")


def _checked_loss(loss: Any) -> Loss:
    if not isinstance(loss, Loss):
        raise ValueError(f"loss is a gluon.loss.Loss, got {type(loss).__name__}: {loss!r}")
    return loss


def _checked_context(context: Any) -> list[Context]:
    """The devices as a list: the first GPU where there is one, else the CPU, for None."""
    if context is None:
        return [gpu(0) if num_gpus() else cpu()]
    listed = [context] if isinstance(context, Context) else context
    if not isinstance(listed, (list, tuple)) or not all(isinstance(each, Context) for each in listed):
        raise ValueError("context is a Context or a list of them, as mx.cpu() or [mx.gpu(0), mx.gpu(1)]; got "
                         f"{context!r}")
    return list(listed)


def _require_loader(data: Any) -> None:
    if not isinstance(data, DataLoader):
        raise ValueError(f"an Estimator takes its data from a gluon.data.DataLoader, got {type(data).__name__}")


def _listed(handlers: Any) -> list[EventHandler]:
    """One handler, several or none as a list of its own."""
    listed = [handlers] if isinstance(handlers, EventHandler) else list(handlers or [])
    for handler in listed:
        if not isinstance(handler, EventHandler):
            raise ValueError(f"event_handlers are EventHandlers, got {type(handler).__name__}: {handler!r}")
    return listed


def _with_defaults(handlers: Sequence[EventHandler], defaults: Sequence[EventHandler]) -> None:
    """Add the defaults of whose kind there is no handler."""
    assert isinstance(handlers, list)
    handlers += [each for each in defaults if not any(isinstance(handler, type(each)) for handler in handlers)]
