"""Methods of NDArray that stand for an operator: `x.relu()` for `mx.nd.relu(x)`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from mxc.compiler.error import ArgumentError, UnsupportedError
from mxc.operator_calls import METHODS, add_methods


class OperatorMethods:
    """The methods of NDArray that stand for operators."""

    __slots__ = ()

    _apply: Any
    shape: Any

    def broadcast_like(self, other: Any) -> Any:
        """This array, repeated along its axes of extent 1 to the shape of `other`."""
        return self.broadcast_to(other.shape)

    def broadcast_to(self, shape: int | Sequence[int]) -> Any:
        """This array, repeated along axes of extent 1, and new ones before its own, to `shape`.

        Raises ValueError when it does not fit.
        """
        target = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        own = (1,) * (len(target) - len(self.shape)) + self.shape
        if len(own) != len(target) or any(n not in (1, m) for n, m in zip(own, target, strict=True)) or 0 in target:
            raise ArgumentError(f"an array of shape {self.shape} cannot be broadcast to {target}")
        source: Any = self if own == self.shape else self.reshape(own)  # type: ignore[attr-defined]
        return source._apply("broadcast_to", shape=target)

    def diag(self, k: int = 0, **kwargs: Any) -> Any:
        """`mx.nd.diag` of this array: its k-th diagonal, or a matrix with this one."""
        from mxc.ndarray import functions

        return functions.find("diag")(self, k, **kwargs)

    def split_v2(self, *args: Any, **kwargs: Any) -> Any:
        """`mx.nd.split_v2` of this array."""
        from mxc.ndarray import creation

        return creation.split_v2(self, *args, **kwargs)  # type: ignore[arg-type]

    def slice_assign(self, rhs: Any, begin: Sequence[int | None], end: Sequence[int | None],
                     step: Sequence[int | None]) -> Any:
        """A copy of this array with `rhs` at begin:end:step; each of these has a number for every axis."""
        return self._apply("_slice_assign", rhs, begin=tuple(begin), end=tuple(end), step=tuple(step))

    def slice_assign_scalar(self, value: float, begin: Sequence[int | None], end: Sequence[int | None],
                            step: Sequence[int | None]) -> Any:
        """A copy of this array with one number at begin:end:step; each of these has a number for every axis."""
        return self._apply("_slice_assign_scalar", scalar=float(value), begin=tuple(begin), end=tuple(end),
                           step=tuple(step))

    def as_nd_ndarray(self) -> Any:
        """The array itself: it belongs to the classic interface already."""
        return self

    def as_np_ndarray(self) -> NoReturn:
        """Raises UnsupportedError: there is no NumPy-like interface to turn to."""
        raise UnsupportedError("as_np_ndarray: the interface mx.np is not there; arrays are those of mx.nd; asnumpy() "
                               "gives a NumPy array")


def _find(name: str) -> Any:
    from mxc.ndarray import functions

    return functions.find(name)


add_methods(OperatorMethods, METHODS, "NDArray", "`mx.nd.{}` of this array.", _find)
