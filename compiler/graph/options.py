"""What a graph is compiled for."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mxc.compiler.error import SettingError
from mxc.compiler.system import env

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences
    from mxc.compiler.targets.protocol import KernelTarget


def saves_memory() -> bool:
    """Whether MXC_MEMORY asks for plans that hold hardly more than the parameters once.

    Raises SettingError for what it cannot be.
    """
    value = env.text("MXC_MEMORY")
    if value not in ("", "small"):
        raise SettingError(f"MXC_MEMORY: expected 'small', or nothing, got {value!r}")
    return value == "small"


@dataclass(frozen=True)
class Options:
    """What a graph is compiled for.

    is_train: training-mode operators (BatchNorm by batch statistics, Dropout active). grad_req: argument name to
    "write", "add" or "null". static: arguments and auxiliary states whose values change rarely, so that what depends
    on them alone is computed once, in the prepare part of the plan. target: what kernels are compiled for; it has
    tiles, lanes, and the figures to decide by (`prefers`). strict: whether to leave out algorithms that round more than
    plain sums of products do. small: whether memory for parameters counts more than time.
    """

    target: KernelTarget
    is_train: bool = False
    grad_req: Mapping[str, str] = field(default_factory=dict)
    static: frozenset[str] = frozenset()
    strict: bool = False
    small: bool = False

    @property
    def prefers(self) -> Preferences:
        """The target's figures."""
        return self.target.prefers

    @property
    def wants_gradients(self) -> bool:
        return any(mode != "null" for mode in self.grad_req.values())
