"""Learning rates that follow from the number of updates: `mx.lr_scheduler`."""
from __future__ import annotations

import logging
from itertools import pairwise
from math import cos, pi
from typing import Any

from mxc.compiler.error import ArgumentError, ArgumentTypeError

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler", "cos",
           "logging", "pi"]


CHANGED = "Update[%d]: Change learning rate to %0.5e"  # the log's lines are MXNet's, which programs read
ARRIVED = "Update[%d]: now learning rate arrived at %0.5e, will not change in the future"


class LRScheduler:
    """The base of schedulers: a rate that, at the begin, rises to `base_lr` over `warmup_steps` updates.

    warmup_begin_lr: the rate of the first update. warmup_mode: "linear", or "constant" for `warmup_begin_lr` until the
    warm-up ends. A scheduler is called with the number of updates so far, counted from 1, and gives the rate. Raises
    ValueError for a warm-up that leads nowhere, TypeError for steps that are no whole number.
    """

    def __init__(self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0,
                 warmup_mode: str = "linear"):
        if not isinstance(warmup_steps, int):
            raise ArgumentTypeError(f"warmup_steps must be a whole number, got {warmup_steps!r}")
        if warmup_begin_lr > base_lr:
            raise ArgumentError(f"the warm-up rises from warmup_begin_lr to base_lr, which must not be below it; they "
                                f"are {warmup_begin_lr} and {base_lr}")
        if warmup_steps < 0:
            raise ArgumentError(f"warmup_steps must be 0 or more, got {warmup_steps}")
        if warmup_mode not in ("linear", "constant"):
            raise ArgumentError(f"warmup_mode must be 'linear' or 'constant', got {warmup_mode!r}")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_final_lr = base_lr
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate of an update of the warm-up. Raises ValueError for one behind it."""
        if num_update >= self.warmup_steps:
            raise ArgumentError(f"update {num_update} is behind the warm-up of {self.warmup_steps}")
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = (self.warmup_final_lr - self.warmup_begin_lr) * float(num_update) / float(self.warmup_steps)
        return self.warmup_begin_lr + rise

    def __call__(self, num_update: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(num_update), the learning rate")


class FactorScheduler(LRScheduler):
    """The rate is multiplied by `factor` after every `step` updates, until it is `stop_factor_lr`.

    Raises ValueError for a step below 1 and a factor above 1.
    """

    def __init__(self, step: int, factor: float = 1, stop_factor_lr: float = 1e-8, base_lr: float = 0.01,
                 warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise ArgumentError(f"step is the number of updates between changes, at least 1; got {step}")
        _check_factor(factor)
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while (change := self.count + self.step) < num_update:
            self.count, rate = change, self.base_lr * self.factor
            is_last = rate < self.stop_factor_lr
            self.base_lr = self.stop_factor_lr if is_last else rate
            logging.info(ARRIVED if is_last else CHANGED, num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """The rate is multiplied by `factor` behind each of the updates in `step`, a list of increasing numbers.

    Raises ValueError where they do not increase from 1 at least, and for a factor above 1; TypeError for no list.
    """

    def __init__(self, step: list[int], factor: float = 1, base_lr: float = 0.01, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(step, list) or not step:
            raise ArgumentTypeError(f"step must be a list of at least one number of updates, got {step!r}")
        if step[0] < 1 or any(after <= before for before, after in pairwise(step)):
            raise ArgumentError(f"step must be increasing numbers of updates, the first at least 1; got {step}")
        _check_factor(factor)
        self.step = step
        self.cur_step_ind = 0
        self.factor = factor
        self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info(CHANGED, num_update, self.base_lr)
        return self.base_lr


class _Falling(LRScheduler):
    """A rate that falls from `base_lr` to `final_lr` between the warm-up and update `max_update`, and stays."""

    def __init__(self, max_update: int, base_lr: float, final_lr: float, *warmup: Any):
        super().__init__(base_lr, *warmup)
        if not isinstance(max_update, int):
            raise ArgumentTypeError(f"max_update must be a whole number, got {max_update!r}")
        if max_update < 1:
            raise ArgumentError(f"max_update must be 1 or more, got {max_update}")
        self.base_lr_orig = self.base_lr
        self.max_update = max_update
        self.final_lr = final_lr
        self.max_steps = self.max_update - self.warmup_steps

    def left(self, passed: int) -> float:
        """How much of the way down is left, from 1 to 0, when `passed` of its `max_steps` updates lie behind."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            left = self.left(num_update - self.warmup_steps) if self.max_steps else 0.0
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * left
        return self.base_lr


class PolyScheduler(_Falling):
    """The rate falls as (1 - n / max_update) ** pwr, from `base_lr` to `final_lr`, where it stays.

    Raises ValueError for a max_update below 1, TypeError for one that is no whole number.
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, pwr: float = 2, final_lr: float = 0,
                 warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def left(self, passed: int) -> float:
        return pow(1 - passed / self.max_steps, self.power)


class CosineScheduler(_Falling):
    """The rate falls as half a wave of a cosine, from `base_lr` to `final_lr`, where it stays.

    Raises ValueError for a max_update below 1, TypeError for one that is no whole number.
    """

    def __init__(self, max_update: int, base_lr: float = 0.01, final_lr: float = 0, warmup_steps: int = 0,
                 warmup_begin_lr: float = 0, warmup_mode: str = "linear"):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def left(self, passed: int) -> float:
        return (1 + cos(pi * passed / self.max_steps)) / 2


def _check_factor(factor: float) -> None:
    if factor > 1.0:
        raise ArgumentError(f"factor must be at most 1, for the learning rate to fall; got {factor}")
