"""Prefixes of blocks: each block's parameters have names that begin with its own."""
from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar

from mxc.gluon.parameter_dict import ParameterDict
from mxc.name import NameManager, Prefix
from mxc.runtime.scopes import ThreadValue


class BlockScope:
    """The scope of a block, a `with` block: blocks that are made in it have prefixes that begin with the block's, and
    are numbered by kind; so have symbols."""

    _current: ClassVar[ThreadValue] = ThreadValue(lambda: None)  # the scope in force

    def __init__(self, block: Any):
        self._block = block
        self._counter: dict[str, int] = {}
        self._entered: list[Prefix] = []

    @staticmethod
    def create(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
        """The prefix and the parameters of a new block, made in the scope in force.

        hint: of its kind, for a prefix that is not given. params: to share with another block.
        """
        scope = BlockScope._current.value
        if scope is None:
            if prefix is None:
                prefix = NameManager._current.value.get(None, hint) + "_"
            return prefix, ParameterDict(prefix if params is None else params.prefix, params)
        if prefix is None:
            number = scope._counter.get(hint, 0)
            scope._counter[hint] = number + 1
            prefix = f"{hint}{number}_"
        if params is None:
            outer = scope._block.params
            made = ParameterDict(outer.prefix + prefix, outer._shared)
        else:
            made = ParameterDict(params.prefix, params)
        return scope._block.prefix + prefix, made

    def __enter__(self) -> BlockScope:
        if not self._block._empty_prefix:
            BlockScope._current.enter(self)
            self._entered.append(Prefix(self._block.prefix))
            self._entered[-1].__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if not self._block._empty_prefix:
            self._entered.pop().__exit__(kind, error, trace)
            BlockScope._current.leave()
