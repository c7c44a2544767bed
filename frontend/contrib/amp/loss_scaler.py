"""The factor of the loss, by which gradients stay within the numbers of a narrow dtype."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from mxc import ndarray


class LossScaler:
    """A factor that halves where gradients overflow, and doubles after 2000 steps without.

    What `has_overflow` finds counts from the second step on: the loss of the next one may be scaled already.
    """

    def __init__(self) -> None:
        self._loss_scale = self._next_loss_scale = 65536.0
        self._max_loss_scale, self._scale_seq_len, self._unskipped = 2.0**24, 2000, 0

    @property
    def loss_scale(self) -> float:
        """The factor of this step."""
        return self._loss_scale

    def has_overflow(self, params: Sequence[Any]) -> bool:
        """Whether a gradient of the parameters is infinite or no number; chooses the next step's factor by it."""
        self._loss_scale = self._next_loss_scale
        gradients = [gradient for param in params for gradient in param.list_grad()]
        if gradients and not _are_finite(gradients):
            self._next_loss_scale, self._unskipped = self._loss_scale / 2.0, 0
            logging.info("AMP: decreasing loss scale to %f", self._next_loss_scale)
            return True
        self._unskipped += 1
        if self._unskipped == self._scale_seq_len:
            self._next_loss_scale, self._unskipped = min(self._max_loss_scale, self._loss_scale * 2.0), 0
            logging.info("AMP: increasing loss scale to %f", self._next_loss_scale)
        return False


def _are_finite(gradients: Sequence[Any]) -> bool:
    by_device: dict[Any, list[Any]] = {}
    for gradient in gradients:
        by_device.setdefault(gradient.context, []).append(gradient)
    return all(float(ndarray.multi_all_finite(*arrays, num_arrays=len(arrays)).asscalar()) == 1
               for arrays in by_device.values())
