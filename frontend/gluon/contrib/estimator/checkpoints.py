"""Parameters and the trainer's states written to files during training, and training resumed from them."""
from __future__ import annotations

import math
import os
import re
import warnings
from typing import Any

from mxc.compiler.error import AssertedError
from mxc.gluon.contrib.estimator.events import BatchEnd, EpochEnd, TrainBegin
from mxc.gluon.contrib.estimator.improvement import Improvement
from mxc.metric import EvalMetric


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Writes checkpoints after so many epochs, or batches, into a folder, which is made where it is missing:
    PREFIX-epochEbatchB.params and .states, and of a hybridised network PREFIX-symbol.json.

    max_checkpoints: of those that this handler has written so many are kept, the newest. save_best: of the best by the
    metric `monitor` PREFIX-best.params and .states too; mode: see Improvement. verbose: above 0 it says what it writes.
    resume_from_checkpoint: training goes on from the last checkpoint, for what is left of its epochs or batches.

    Raises ValueError for save_best without a metric, and in training where nothing is left; AssertionError where it
    resumes and periods are not those of the training.
    """

    # MXNet's signature
    def __init__(self, model_dir: str, model_prefix: str = "model", monitor: Any = None, verbose: int = 0,
                 save_best: bool = False, mode: str = "auto", epoch_period: int | None = 1,
                 batch_period: int | None = None, max_checkpoints: int = 5, resume_from_checkpoint: bool = False):
        os.makedirs(model_dir, exist_ok=True)
        if save_best and not isinstance(monitor, EvalMetric):
            raise ValueError("save_best needs as monitor one of the metrics in the estimator's train_metrics or "
                             f"val_metrics, got {type(monitor).__name__}")
        self.model_dir, self.model_prefix, self.monitor, self.verbose = model_dir, model_prefix, monitor, verbose
        self.save_best, self.epoch_period, self.batch_period = save_best, epoch_period, batch_period
        self.max_checkpoints, self.resume_from_checkpoint = max_checkpoints, resume_from_checkpoint
        self._improvement = Improvement(monitor, mode) if save_best else None
        self.best = self._improvement.worst if self._improvement else math.nan
        self.current_batch = self.current_epoch = 0
        self.trained_epoch = self.trained_batch = -1
        self.saved_checkpoints: list[str] = []

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Begin to count; go on from a checkpoint where that is asked for."""
        self.current_batch = self.current_epoch = 0
        if self._improvement:
            self.best = self._improvement.worst
        if self.resume_from_checkpoint:
            other, own = ((self.epoch_period, self.batch_period) if estimator.max_batch else
                          (self.batch_period, self.epoch_period))
            if other or not own:
                kind = "batch" if estimator.max_batch else "epoch"
                raise AssertedError(f"training by {kind}s resumes from checkpoints by {kind}s alone: give {kind}_period"
                                    ", and None as the other period")
            self._resume(estimator)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count, and write where it is time."""
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """Count, and write where it is time."""
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save(estimator)
        self.current_epoch += 1

    def _path(self, name: str) -> str:
        return os.path.join(self.model_dir, name)

    def _log(self, estimator: Any, text: str) -> None:
        if self.verbose > 0:
            estimator.logger.info(f"[Epoch {self.current_epoch}] CheckpointHandler: {text}")

    def _save_symbol(self, estimator: Any) -> None:
        path = self._path(f"{self.model_prefix}-symbol.json")
        graph = getattr(estimator.net, "_cached_graph", None)
        if graph:
            graph[1].save(path)
        else:
            estimator.logger.info(f"{path} is not written: the network has no graph; make it of HybridBlocks, and "
                                  "call hybridize()")

    def _save(self, estimator: Any) -> None:
        epoch, batch = self.current_epoch, self.current_batch
        if self.resume_from_checkpoint:
            epoch += self.trained_epoch + 1
            batch += self.trained_batch + (0 if estimator.max_epoch else 1)
        name = f"{self.model_prefix}-epoch{epoch}batch{batch}"
        self._write(estimator, name)
        self._log(estimator, f"trained total {self.current_batch + 1} batches, saving model at {self.model_dir} with "
                  f"prefix: {name}")
        self.saved_checkpoints.append(name)
        while len(self.saved_checkpoints) > self.max_checkpoints:
            old = self.saved_checkpoints.pop(0)
            for ending in (".params", ".states"):
                if os.path.exists(self._path(old + ending)):
                    os.remove(self._path(old + ending))
        if self._improvement:
            self._save_best(estimator, self._improvement)

    def _save_best(self, estimator: Any, improvement: Improvement) -> None:
        metric, value = self.monitor.get()
        if math.isnan(value):
            warnings.warn(f"{metric} has no value, so the best is not saved: the monitor of a CheckpointHandler is one "
                          "of the metrics in the estimator's train_metrics or val_metrics", RuntimeWarning,
                          stacklevel=4)
        elif improvement.better(value, self.best):
            name = f"{self.model_prefix}-best"
            self._write(estimator, name)
            self._log(estimator, f"{metric} improved from {self.best:.5f} to {value:.5f}, updating best model at "
                      f"{self.model_dir} with prefix: {name}")
            self.best = value
        else:
            self._log(estimator, f"{metric} did not improve from {self.best:.5f}, skipping updating best model")

    def _write(self, estimator: Any, name: str) -> None:
        estimator.net.save_parameters(self._path(f"{name}.params"))
        estimator.trainer.save_states(self._path(f"{name}.states"))

    def _resume(self, estimator: Any) -> None:
        """Read the last checkpoint, and leave to the estimator what is left."""
        pattern = re.compile(re.escape(self.model_prefix) + r"-epoch(\d+)batch(\d+)\.params")
        found = sorted((int(match[1]), int(match[2])) for name in os.listdir(self.model_dir)
                       if (match := pattern.fullmatch(name)))
        self.trained_epoch, self.trained_batch = found[-1] if found else (-1, -1)
        kind = "epoch" if estimator.max_epoch else "batch"
        wanted, done = ((estimator.max_epoch, self.trained_epoch + 1) if estimator.max_epoch else
                        (estimator.max_batch, self.trained_batch + 1))
        if not found:
            estimator.logger.info("CheckpointHandler: No checkpoint found, training from scratch for "
                                  f"{wanted} {'epochs' if kind == 'epoch' else 'batches'}")
            return
        if done >= wanted:
            raise ValueError(f"the last checkpoint in {self.model_dir} has the {done} {kind}s that were asked for "
                             "already: resume_from_checkpoint=False trains from scratch")
        setattr(estimator, f"max_{kind}", wanted - done)
        name = f"{self.model_prefix}-epoch{self.trained_epoch}batch{self.trained_batch}"
        estimator.net.load_parameters(self._path(f"{name}.params"), ctx=estimator.context)
        estimator.trainer.load_states(self._path(f"{name}.states"))
        estimator.logger.warning(
            f"CheckpointHandler: Checkpoint resumed from epoch {self.trained_epoch} batch {self.trained_batch}, "
            f"continue to train for {wanted - done} {'epochs' if kind == 'epoch' else 'batches'} ")
