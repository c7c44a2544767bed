"""The events of training: a handler is a subclass of one class for each event that it is told."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["BatchBegin", "BatchEnd", "EpochBegin", "EpochEnd", "EventHandler", "TrainBegin", "TrainEnd"]


class EventHandler:
    """What is told of events. Handlers with a lower `priority` (0 by default) are told first."""


class TrainBegin(EventHandler):
    """Told before the first epoch."""

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """A subclass says what happens."""


class TrainEnd(EventHandler):
    """Told after the last epoch."""

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """A subclass says what happens."""


class EpochBegin(EventHandler):
    """Told before each epoch."""

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """A subclass says what happens."""


class EpochEnd(EventHandler):
    """Told after each epoch."""

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """A subclass says what happens; True ends the training."""
        return False


class BatchBegin(EventHandler):
    """Told before each batch."""

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """A subclass says what happens. In kwargs: batch."""


class BatchEnd(EventHandler):
    """Told after each batch."""

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """A subclass says what happens; True ends the epoch. In kwargs: batch, and lists of pred, label and loss."""
        return False


_EVENTS = {"train_begin": TrainBegin, "epoch_begin": EpochBegin, "batch_begin": BatchBegin, "batch_end": BatchEnd,
           "epoch_end": EpochEnd, "train_end": TrainEnd}


class Told:
    """Handlers in the order of their priorities."""

    def __init__(self, estimator: Any, handlers: Sequence[EventHandler]):
        self._estimator = estimator
        ordered = sorted(handlers, key=lambda handler: getattr(handler, "priority", 0))
        self._of = {event: [getattr(handler, event) for handler in ordered if isinstance(handler, kind)]
                    for event, kind in _EVENTS.items()}

    def tell(self, event: str, **kwargs: Any) -> bool:
        """Tell all of an event; whether one of them wants to stop."""
        stops = [handler(self._estimator, **kwargs) for handler in self._of[event]]
        return any(stops)
