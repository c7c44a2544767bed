"""Handlers of the events of training."""
from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from mxc.gluon.contrib.estimator.checkpoints import CheckpointHandler
from mxc.gluon.contrib.estimator.events import (
    BatchBegin,
    BatchEnd,
    EpochBegin,
    EpochEnd,
    EventHandler,
    TrainBegin,
    TrainEnd,
)
from mxc.gluon.contrib.estimator.improvement import Improvement
from mxc.metric import CompositeEvalMetric, EvalMetric, Loss

__all__ = ["BatchBegin", "BatchEnd", "CheckpointHandler", "EarlyStoppingHandler", "EpochBegin", "EpochEnd",
           "EventHandler", "GradientUpdateHandler", "LoggingHandler", "MetricHandler", "StoppingHandler", "TrainBegin",
           "TrainEnd", "ValidationHandler"]


def metrics_of(metrics: Any) -> list[EvalMetric]:
    """One metric or several as a list. Raises ValueError for what is no metric."""
    listed = [metrics] if isinstance(metrics, EvalMetric) else list(metrics or [])
    for metric in listed:
        if not isinstance(metric, EvalMetric):
            raise ValueError(f"expected an EvalMetric or a list of them, got {type(metric).__name__}: {metric!r}")
    return listed


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Ends the training after so many epochs or batches."""

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None):
        self.max_epoch, self.max_batch = max_epoch, max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count, to what the estimator says now: who resumes has changed it."""
        self.max_epoch, self.max_batch = estimator.max_epoch, estimator.max_batch
        self.current_batch = self.current_epoch = 0
        self.stop_training = False

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether this was the last batch."""
        done = self.current_batch = self.current_batch + 1
        self.stop_training |= done == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether this was the last epoch."""
        done = self.current_epoch = self.current_epoch + 1
        self.stop_training |= done == self.max_epoch
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Updates metrics with each batch, and resets them before each epoch."""

    def __init__(self, metrics: Any, priority: float = -1000):
        self.metrics, self.priority = metrics_of(metrics), priority

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Reset them."""
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Update them: mx.metric.Loss with the loss, others with labels and predictions."""
        for metric in self.metrics:
            if isinstance(metric, Loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Calls `eval_fn(val_data=..., batch_axis=..., event_handlers=...)` after so many epochs, or batches."""

    def __init__(self, val_data: Any, eval_fn: Callable[..., Any], epoch_period: int | None = 1,
                 batch_period: int | None = None, priority: float = -1000,
                 event_handlers: Sequence[EventHandler] | None = None):
        self.val_data, self.eval_fn = val_data, eval_fn
        self.epoch_period, self.batch_period = epoch_period, batch_period
        self.current_batch = self.current_epoch = 0
        self.priority, self.event_handlers = priority, event_handlers

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count."""
        self.current_batch = self.current_epoch = 0

    def _validate(self, count: int, period: int | None, estimator: Any) -> None:
        if period and count % period == 0:
            self.eval_fn(val_data=self.val_data, batch_axis=estimator.batch_axis, event_handlers=self.event_handlers)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count, and validate."""
        self.current_batch += 1
        self._validate(self.current_batch, self.batch_period, estimator)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count, and validate."""
        self.current_epoch += 1
        self._validate(self.current_epoch, self.epoch_period, estimator)


class GradientUpdateHandler(BatchEnd):
    """Changes the parameters by their gradients, over the number of examples in the batch. It comes first."""

    def __init__(self, priority: float = -2000):
        self.priority = priority

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """One step of the trainer."""
        losses = kwargs["loss"]
        listed = losses if isinstance(losses, (list, tuple)) else [losses]
        estimator.trainer.step(sum(loss.shape[0] for loss in listed))


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Writes metrics to the estimator's logger after each epoch, and with a number as log_interval after so many
    batches. It comes last. Raises ValueError for another log_interval than a number and "epoch"."""

    def __init__(self, log_interval: int | str = "epoch", metrics: Any = None, priority: float = math.inf):
        if not isinstance(log_interval, int) and log_interval != "epoch":
            raise ValueError(f"log_interval is {log_interval!r}; expected a number of batches or 'epoch'")
        self.log_interval, self.metrics, self.priority = log_interval, metrics_of(metrics), priority
        self.batch_index = self.current_epoch = self.processed_samples = 0
        self.log_interval_time = self.train_start = self.epoch_start = self.batch_start = 0.0

    def _log(self, estimator: Any, text: str) -> None:
        """The text with the metrics' values."""
        values = ", ".join(f"{name}: {value:.4f}" for name, value in (metric.get() for metric in self.metrics))
        estimator.logger.info((text + values).rstrip(", "))

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count; say how it is trained."""
        self.train_start = time.time()
        trainer = estimator.trainer
        estimator.logger.info(f"Training begin: using optimizer {type(trainer.optimizer).__name__} with current "
                              f"learning rate {trainer.learning_rate:.4f} ")
        estimator.logger.info(f"Train for {estimator.max_epoch} epochs." if estimator.max_epoch else
                              f"Train for {estimator.max_batch} batches.")
        self.batch_index = self.current_epoch = self.processed_samples = 0
        self.log_interval_time = 0.0

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Say how long it took."""
        seconds = int(time.time() - self.train_start)
        self._log(estimator, f"Train finished using total {seconds}s with {self.current_epoch} epochs. ")

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to measure."""
        self.batch_start = time.time()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count; speak where it is time."""
        if isinstance(self.log_interval, int):
            self.log_interval_time += time.time() - self.batch_start
            self.processed_samples += kwargs["batch"][0].shape[0]
            if self.batch_index % self.log_interval == 0:
                self._log(estimator, f"[Epoch {self.current_epoch}][Batch {self.batch_index}][Samples "
                          f"{self.processed_samples}] time/interval: {self.log_interval_time:.3f}s ")
                self.log_interval_time = 0.0
        self.batch_index += 1

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Say what begins: an Estimator names metrics of training so."""
        self.epoch_start = time.time()
        if any("training" in metric.name for metric in self.metrics):
            estimator.logger.info(f"[Epoch {self.current_epoch}] Begin, current learning rate: "
                                  f"{estimator.trainer.learning_rate:.4f}")
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Say how it went."""
        self._log(estimator, f"[Epoch {self.current_epoch}] Finished in {time.time() - self.epoch_start:.3f}s, ")
        self.current_epoch += 1
        self.batch_index = 0


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Ends the training when a metric has not got better by more than min_delta for `patience` epochs.

    mode: "max" or "min" say what is better; "auto" goes by the metric's name. baseline: what is to be bettered first.
    Raises ValueError for what is no metric, or several of them.
    """

    def __init__(self, monitor: Any, min_delta: float = 0, patience: int = 0, mode: str = "auto",
                 baseline: float | None = None):
        if not isinstance(monitor, EvalMetric) or isinstance(monitor, CompositeEvalMetric):
            raise ValueError("monitor is one of the metrics in the estimator's train_metrics or val_metrics, got "
                             f"{type(monitor).__name__}")
        self.monitor, self.min_delta, self.patience, self.baseline = monitor, min_delta, patience, baseline
        self._improvement = Improvement(monitor, mode)
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.best = self._improvement.worst
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count."""
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.best = self._improvement.worst if self.baseline is None else self.baseline
        self.stop_training = False

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        """Whether it has waited long enough."""
        name, value = self.monitor.get()
        if math.isnan(value):
            warnings.warn(f"{name} has no value: the monitor of an EarlyStoppingHandler is one of the metrics in the "
                          "estimator's train_metrics or val_metrics", RuntimeWarning, stacklevel=2)
        elif self._improvement.better(value, self.best, self.min_delta):
            self.best, self.wait = value, 0
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch, self.stop_training = self.current_epoch, True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Say why it ended."""
        if self.stopped_epoch > 0:
            estimator.logger.info(f"[Epoch {self.stopped_epoch}] EarlyStoppingHandler: early stopping, as "
                                  f"{self.monitor.get()[0]} did not improve")
