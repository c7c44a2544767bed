"""Blocks one after the other, and functions as blocks."""
from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from mxc import ndarray, symbol
from mxc.compiler.error import AssertedError, nearest
from mxc.gluon.block import Block, _tree
from mxc.gluon.hybrid_block import HybridBlock

__all__ = ["HybridLambda", "HybridSequential", "Lambda", "Sequential"]


class _Chain:
    """What both kinds of sequences share."""

    _children: OrderedDict[str, Block]
    _is_container = True

    def __repr__(self) -> str:
        return _tree(type(self).__name__, self._children)

    def __getitem__(self, key: int | slice) -> Any:
        """One block, or by a slice a sequence of several, which shares their parameters."""
        found = list(self._children.values())[key]
        if not isinstance(found, list):
            return found
        made: Any = type(self)(prefix=self._prefix)  # type: ignore[attr-defined, call-arg]
        with made.name_scope():
            made.add(*found)
        return made

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Block]:
        return iter(list(self._children.values()))

    def _through(self, x: Any) -> Any:
        for block in self._children.values():
            x = block(x)
        return x


class Sequential(_Chain, Block):
    """Blocks that run one after the other."""

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)

    def add(self, *blocks: Block) -> None:
        """Put blocks behind those that are there."""
        for block in blocks:
            self.register_child(block)

    def forward(self, x: Any) -> Any:
        """The last block's outputs."""
        return self._through(x)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Compile the hybrid blocks; a HybridSequential is compiled as one."""
        if self._children and all(isinstance(block, HybridBlock) for block in self._children.values()):
            warnings.warn(f"all blocks of {self.name} are hybrid: a HybridSequential of them is compiled as one",
                          stacklevel=2)
        super().hybridize(active, **kwargs)


class HybridSequential(_Chain, HybridBlock):
    """Hybrid blocks that run one after the other, and are compiled as one."""

    def __init__(self, prefix: str | None = None, params: Any = None):
        super().__init__(prefix=prefix, params=params)

    def add(self, *blocks: Block) -> None:
        """Put blocks behind those that are there. Raises ValueError for one that is not hybrid."""
        for block in blocks:
            self.register_child(block)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The last block's outputs."""
        return self._through(x)


class Lambda(Block):
    """A function of arrays as a block. function: the function, or the name of one of mx.nd.

    Raises AssertionError for a name of none, ValueError for anything else.
    """

    def __init__(self, function: Any, prefix: str | None = None):
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            self._func_impl, self._func_name = _named(function, ndarray), function
        else:
            self._func_impl, self._func_name = _callable(function), getattr(function, "__name__", str(function))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"

    def forward(self, *args: Any) -> Any:
        """What the function gives."""
        return self._func_impl(*args)


class HybridLambda(HybridBlock):
    """A function of F and arrays or symbols as a hybrid block. function: the function, `function(F, x, ...)`, or the
    name of one that mx.nd and mx.sym have.

    Raises AssertionError for a name of none, ValueError for anything else.
    """

    def __init__(self, function: Any, prefix: str | None = None):
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            _named(function, ndarray), _named(function, symbol)
            self._func_name = function
            self._func: Callable[..., Any] = lambda F, *args: getattr(F, function)(*args)
        else:
            self._func, self._func_name = _callable(function), getattr(function, "__name__", str(function))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._func_name})"

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """What the function gives."""
        return self._func(F, x, *args)


def _named(name: str, module: Any) -> Callable[..., Any]:
    if not hasattr(module, name):
        raise AssertedError(f"there is no function {name!r} in {module.__name__.replace('mxc.', 'mx.')}"
                            f"{nearest(name, dir(module))}")
    return getattr(module, name)


def _callable(function: Any) -> Callable[..., Any]:
    if not callable(function):
        raise ValueError(f"expected a function, or the name of one, got {type(function).__name__}")
    return function
