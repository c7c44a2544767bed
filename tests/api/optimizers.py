"""Optimizers and schedules of learning rates."""
SECTIONS = ("mxnet.optimizer", "mxnet.lr_scheduler")

EXCEPTIONS: dict[str, str] = {}
