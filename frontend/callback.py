"""MXNet's `mx.callback`: what `fit` calls after each batch or epoch, to log speed and metrics, to draw a progress bar,
to save checkpoints."""
from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any

from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {"mxc.model": "save_checkpoint"})
__all__ = ["LogValidationMetricsCallback", "ProgressBar", "Speedometer", "do_checkpoint", "log_train_metric", "logging",
           "math", "module_checkpoint", "time", *_names]


def module_checkpoint(mod: Any, prefix: str, period: int = 1,
                      save_optimizer_states: bool = False) -> Callable[..., None]:
    """A callback for the end of an epoch: every `period` epochs the module is saved, as PREFIX-0001.params and so on,
    with the optimizer's states as .states if wanted."""
    period = int(max(1, period))

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            mod.save_checkpoint(prefix, iter_no + 1, save_optimizer_states)

    return save


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """A callback for the end of an epoch: every `period` epochs symbol and parameters are saved, as
    PREFIX-symbol.json and PREFIX-0001.params and so on."""
    period = int(max(1, period))

    def save(iter_no: int, sym: Any, arg: Any, aux: Any) -> None:
        if (iter_no + 1) % period == 0:
            from mxc.checkpoints import save_checkpoint  # only now: it needs symbols and arrays

            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return save


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[Any], None]:
    """A callback for the end of a batch: every `period` batches the metric is logged. auto_reset: it begins anew then,
    but for its global value."""
    def log(param: Any) -> None:
        if param.nbatch % period == 0 and param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
            if auto_reset:
                param.eval_metric.reset_local()

    return log


class Speedometer:
    """A callback for the end of a batch: every `frequent` batches the samples per second since the last time are
    logged, with the metric. auto_reset: the metric begins anew then, but for its global value.

    The first call of an epoch starts the clock.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True):
        self.batch_size, self.frequent, self.auto_reset = batch_size, frequent, auto_reset
        self.init = False  # whether the clock runs
        self.tic = 0.0
        self.last_count = 0

    def __call__(self, param: Any) -> None:
        """Look at the clock. param: has epoch, nbatch and eval_metric."""
        count = param.nbatch
        if self.last_count > count:
            self.init = False
        self.last_count = count
        if not self.init:
            self.init, self.tic = True, time.perf_counter()
        elif count % self.frequent == 0:
            seconds = time.perf_counter() - self.tic
            speed = self.frequent * self.batch_size / seconds if seconds > 0 else math.inf
            if param.eval_metric is None:
                logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            else:
                found = param.eval_metric.get_name_value()
                if self.auto_reset:
                    param.eval_metric.reset_local()
                first = count - self.frequent if self.auto_reset else 0
                logging.info("Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec" + "\t%s=%f" * len(found), param.epoch,
                             first, count, speed, *[part for pair in found for part in pair])
            self.tic = time.perf_counter()


class ProgressBar:
    """A callback for the end of a batch, which draws how many of `total` batches are done, as a bar of `length`
    characters."""

    def __init__(self, total: int, length: int = 80):
        self.bar_len, self.total = length, total

    def __call__(self, param: Any) -> None:
        """Draw. param: has nbatch."""
        done = round(self.bar_len * param.nbatch / float(self.total))
        bar = "=" * done + "-" * (self.bar_len - done)
        logging.info("[%s] %s%s\r", bar, math.ceil(100.0 * param.nbatch / float(self.total)), "%")


class LogValidationMetricsCallback:
    """A callback for the end of a validation, which logs each value of the metric."""

    def __call__(self, param: Any) -> None:
        """Log. param: has epoch and eval_metric."""
        if param.eval_metric:
            for name, value in param.eval_metric.get_name_value():
                logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
