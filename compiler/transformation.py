"""What graph passes and stages have in common: a name, what each needs and gives, and what happens around its run.

The passes (`passes/`) stand in the tuple `PASSES` of passes/pipeline.py, the stages (`lowering/`) in the tuple `STAGES`
of lowering/stages.py, each in the order in which they run. Both modules call `check_order` when they are imported.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mxc.compiler.error import MXNetError, SettingError, nearest
from mxc.compiler.system import env

PRINTS_ALL = 3  # From this MXC_DEBUG on, every pass and stage prints what it changed.
PRINTS_UNCHANGED = 4  # From this MXC_DEBUG on, also those that changed nothing say so.


@dataclass(frozen=True)
class Transformation:
    """A pass or a stage.

    needs: names of the facts that have to hold before it; gives: those that hold after it. A transformation that gives
    no fact can be left out: MXC_SKIP names it. also: another name for it in MXC_PRINT.
    """

    name: str
    function: Callable[..., Any]
    needs: tuple[str, ...]
    gives: tuple[str, ...]
    also: str = ""

    @property
    def optional(self) -> bool:
        return not self.gives

    @property
    def summary(self) -> str:
        """What it does, in the first line of its function's docstring; docs/design.md has it too."""
        return (self.function.__doc__ or "").partition("\n")[0]

    @property
    def is_skipped(self) -> bool:
        """Whether MXC_SKIP leaves it out."""
        return self.optional and self.name in env.names("MXC_SKIP")

    @property
    def is_printed(self) -> bool:
        """Whether MXC_PRINT or MXC_DEBUG asks for what it makes."""
        return env.debug_level() >= PRINTS_ALL or bool({self.name, self.also} & env.names("MXC_PRINT"))

    def print_change(self, what: str, text: str, seconds: float) -> None:
        """Print what it made to standard error, as `text`. what: the kind of that, or how many of it there are now."""
        print(f"-- after {self.name}: {what}, {seconds * 1e3:.1f} ms\n{text.rstrip()}", file=sys.stderr)

    def print_unchanged(self, seconds: float) -> None:
        """Say that it changed nothing, if MXC_DEBUG asks for so much."""
        if env.debug_level() >= PRINTS_UNCHANGED:
            print(f"-- {self.name}: no change, {seconds * 1e3:.1f} ms", file=sys.stderr)


def check_order(listed: Sequence[Transformation], given: Iterable[str]) -> None:
    """Raise MXNetError unless each finds what it needs, `given` at the start or by one before it, under a name that no
    other one has."""
    have, names = set(given), set[str]()
    for each in listed:
        missing = [need for need in each.needs if need not in have]
        if missing:
            raise MXNetError(f"{each.name} needs {', '.join(missing)}, which nothing before it gives")
        if each.name in names:
            raise MXNetError(f"{each.name} is listed twice")
        have.update(each.gives)
        names.add(each.name)


def check_names(listed: Sequence[Transformation]) -> None:
    """Raise SettingError when MXC_PRINT names nothing that is listed, or MXC_SKIP nothing that can be left out."""
    by_name = {each.name: each for each in listed}
    optional = [each.name for each in listed if each.optional]
    for name in sorted(env.names("MXC_SKIP").difference(optional)):
        if name not in by_name:
            raise SettingError(f"MXC_SKIP: there is no pass or stage {name!r}; "
                               f"expected one of {', '.join(optional)}{nearest(name, by_name)}")
        raise SettingError(f"MXC_SKIP: {name!r} cannot be left out: what follows needs "
                           f"{', '.join(by_name[name].gives)}; expected one of {', '.join(optional)}")
    printed = [*by_name, *(each.also for each in listed if each.also)]
    for name in sorted(env.names("MXC_PRINT").difference(printed)):
        raise SettingError(f"MXC_PRINT: there is no pass or stage {name!r}; "
                           f"expected one of {', '.join(printed)}{nearest(name, printed)}")
