"""What a graph is compiled for."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


class Tiles(Protocol):
    """What the passes ask of a target."""

    def tile(self, dtype: str) -> tuple[int, int]:
        """(MR, NR): rows and columns of the register tile that the target's matrix kernels use for `dtype`.

        NR is a multiple of `lanes`. (0, 0): they read plain weights.
        """

    def lanes(self, dtype: str) -> int:
        """Channels that lie side by side in blocked arrays of `dtype`; 1: the target has no kernels for these."""


@dataclass(frozen=True)
class Options:
    """What a graph is compiled for.

    is_train: training-mode operators (BatchNorm by batch statistics, Dropout active). grad_req: argument name to
    "write", "add" or "null". static: arguments and auxiliary states whose values change rarely, so that what depends
    on them alone is computed once, in the prepare part of the plan. target: the device's tile sizes. strict: no
    algorithm that rounds more than plain sums of products do.
    """

    target: Tiles
    is_train: bool = False
    grad_req: Mapping[str, str] = field(default_factory=dict)
    static: frozenset[str] = frozenset()
    strict: bool = False

    @property
    def wants_gradients(self) -> bool:
        return any(mode != "null" for mode in self.grad_req.values())
