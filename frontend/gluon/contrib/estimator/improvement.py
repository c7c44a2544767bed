"""When a metric is better than before."""
from __future__ import annotations

import math
import warnings
from typing import Any


class Improvement:
    """By `mode`: "max", "min", or "auto": larger is better for metrics with "acc" or "f1" in their names, else smaller.

    Another mode is taken for "auto", with a warning.
    """

    def __init__(self, monitor: Any, mode: str):
        if mode not in ("auto", "min", "max"):
            warnings.warn(f"mode is {mode!r}; expected 'auto', 'min' or 'max': 'auto' is taken", RuntimeWarning,
                          stacklevel=3)
            mode = "auto"
        name = str(monitor.get()[0]).lower()
        self.larger = mode == "max" or (mode == "auto" and ("acc" in name or "f1" in name))
        self.worst = -math.inf if self.larger else math.inf

    def better(self, value: float, best: float, by: float = 0) -> bool:
        """Whether value is better than best by more than `by`."""
        return value - by > best if self.larger else value + by < best
