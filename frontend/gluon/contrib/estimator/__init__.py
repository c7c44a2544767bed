"""Training and evaluation of a network in one call, with handlers of its events: `mx.gluon.contrib.estimator`.

Begin with `estimator.py`: the loop, which calls the handlers of `event_handler.py`. `batch_processor.py` says what
happens to one batch. Programs import the classes from here.
"""
from mxc.gluon.contrib.estimator import batch_processor, estimator, event_handler
from mxc.gluon.contrib.estimator.batch_processor import BatchProcessor
from mxc.gluon.contrib.estimator.estimator import Estimator
from mxc.gluon.contrib.estimator.event_handler import *  # noqa: F403

__all__ = ["BatchProcessor", "Estimator", "batch_processor", "estimator", "event_handler",
           *(name for name in event_handler.__all__ if name != "EventHandler")]
