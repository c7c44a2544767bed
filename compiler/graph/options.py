"""What a graph is compiled for."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences
    from mxc.compiler.targets.protocol import KernelTarget

@dataclass(frozen=True)
class Options:
    """What a graph is compiled for.

    is_train: training-mode operators (BatchNorm by batch statistics, Dropout active). grad_req: argument name to
    "write", "add" or "null". static: arguments and auxiliary states whose values change rarely, so that what depends
    on them alone is computed once, in the prepare part of the plan. target: what kernels are compiled for; it has
    tiles, lanes, and the figures to decide by (`prefers`). strict: whether to leave out algorithms that round more than
    plain sums of products do.
    """

    target: KernelTarget
    is_train: bool = False
    grad_req: Mapping[str, str] = field(default_factory=dict)
    static: frozenset[str] = frozenset()
    strict: bool = False

    @property
    def prefers(self) -> Preferences:
        """The target's figures."""
        return self.target.prefers

    @property
    def wants_gradients(self) -> bool:
        return any(mode != "null" for mode in self.grad_req.values())
