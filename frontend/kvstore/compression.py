"""Gradient compression: each number that is pushed becomes one of three, and the rest is kept for the next push."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mxc.compiler.error import ArgumentError, MXNetError
from mxc.ndarray import NDArray, zeros


class TwoBit:
    """Compression of each number to 2 bits.

    parameters: "type", which must be "2bit", and "threshold", a positive number (0.5). Raises MXNetError for others.
    """

    def __init__(self, parameters: Mapping[str, Any]):
        unknown = [name for name in parameters if name not in ("type", "threshold")]
        if unknown:
            raise MXNetError(f"gradient compression: unknown parameter {unknown[0]!r}; there are type and threshold")
        if parameters.get("type") != "2bit":
            raise MXNetError(f"gradient compression: type must be '2bit', got {parameters.get('type')!r}")
        try:
            self.threshold = float(parameters.get("threshold", 0.5))
        except (TypeError, ValueError):
            raise ArgumentError("gradient compression: threshold must be a number, got "
                                f"{parameters['threshold']!r}") from None
        if not self.threshold > 0:
            raise MXNetError(f"gradient compression: threshold must be greater than 0, got {self.threshold}")
        self._rests: dict[tuple[int | str, int], NDArray] = {}
        self._part_rests: dict[tuple[int | str, int], np.ndarray] = {}

    def compressed(self, key: int | str, values: Sequence[NDArray]) -> list[NDArray]:
        """The arrays that are sent in place of the devices' values: `threshold` where a value plus its rest is at least
        that, -threshold where it is at most -threshold, else 0. The new rest is kept for each key and device."""
        results = []
        for i, value in enumerate(values):
            rest = self._rests.get((key, i))
            if rest is None:
                rest = self._rests[key, i] = zeros(value.shape, value.context, value.dtype)
            rest += value
            sent = ((rest >= self.threshold) - (rest <= -self.threshold)) * self.threshold
            rest -= sent
            results.append(sent)
        return results

    def packed(self, name: tuple[int | str, int], values: np.ndarray) -> Packed:
        """What is sent to a server in place of a part's values, by the rule of `compressed`. The new rest is kept by
        the part's name."""
        rest = self._part_rests.get(name)
        if rest is None:
            rest = self._part_rests[name] = np.zeros(values.shape, values.dtype)
        rest += values
        above, below = rest >= self.threshold, rest <= -self.threshold
        np.subtract(rest, self.threshold, out=rest, where=above)
        np.add(rest, self.threshold, out=rest, where=below)
        return Packed(self.threshold, values.shape, values.dtype.name, np.packbits(above), np.packbits(below))


class Packed(NamedTuple):
    """Numbers that are threshold, 0 or -threshold. above, below: a bit for each, whether it is not 0."""

    threshold: float
    shape: tuple[int, ...]
    dtype: str
    above: np.ndarray
    below: np.ndarray


def unpacked(values: Any) -> Any:
    """The numbers; what is not packed as it is."""
    if not isinstance(values, Packed):
        return values
    size = int(np.prod(values.shape))
    above, below = (np.unpackbits(bits, count=size).astype(np.int8) for bits in (values.above, values.below))
    return ((above - below) * np.dtype(values.dtype).type(values.threshold)).reshape(values.shape)
