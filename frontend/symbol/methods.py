"""Methods of Symbol that stand for an operator (`x.relu()` for `mx.sym.relu(x)`), and those only an NDArray has."""
from __future__ import annotations

from typing import Any, NoReturn

from mxc.base import NotImplementedForSymbol
from mxc.compiler.error import UnsupportedError
from mxc.operator_calls import METHODS, add_methods

# Methods that need values, which a symbol does not have.
_ARRAY_ONLY = ["as_in_context", "asnumpy", "asscalar", "backward", "copy", "detach", "wait_to_read"]


def _array_only_method(name: str) -> Any:
    def method(self: Any) -> NoReturn:
        raise NotImplementedForSymbol(name, None)

    method.__name__, method.__qualname__ = name, f"Symbol.{name}"
    method.__doc__ = "Only an NDArray has values: raises NotImplementedForSymbol."
    return method


class OperatorMethods:
    """The methods of Symbol that stand for operators."""

    __slots__ = ()

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        """`mx.sym.cast` of this symbol: `x.astype("float16")`."""
        from mxc.symbol import functions

        return functions.find("cast")(self, *args, **kwargs)

    def diag(self, k: int = 0, **kwargs: Any) -> Any:
        """`mx.sym.diag` of this symbol."""
        from mxc.symbol import functions

        return functions.find("diag")(self, k, **kwargs)

    def expand_dims(self, axis: int, inplace: bool = False, **kwargs: Any) -> Any:
        """`mx.sym.expand_dims` of this symbol; `inplace` means something only to arrays."""
        from mxc.symbol import functions

        return functions.find("expand_dims")(self, axis=axis, **kwargs)

    def flatten(self, inplace: bool = False, **kwargs: Any) -> Any:
        """`mx.sym.flatten` of this symbol; `inplace` means something only to arrays."""
        from mxc.symbol import functions

        return functions.find("flatten")(self, **kwargs)

    def squeeze(self, axis: Any = None, inplace: bool = False, **kwargs: Any) -> Any:
        """`mx.sym.squeeze` of this symbol; `inplace` means something only to arrays."""
        from mxc.symbol import functions

        return functions.find("squeeze")(self, axis=axis, **kwargs)

    def split_v2(self: Any, *args: Any, **kwargs: Any) -> Any:
        """`mx.sym.split_v2` of this symbol."""
        from mxc.symbol import creation

        return creation.split_v2(self, *args, **kwargs)

    def as_nd_ndarray(self) -> Any:
        """The symbol itself: it belongs to the classic interface already."""
        return self

    def as_np_ndarray(self) -> NoReturn:
        """Raises UnsupportedError: there is no NumPy-like interface to turn to."""
        raise UnsupportedError("as_np_ndarray: the interface mx.np is not there; symbols are those of mx.sym")


def _find(name: str) -> Any:
    from mxc.symbol import functions

    return functions.find(name)


add_methods(OperatorMethods, (*METHODS, "broadcast_like", "broadcast_to", "reshape"), "Symbol",
            "`mx.sym.{}` of this symbol.", _find)
for _name in _ARRAY_ONLY:
    setattr(OperatorMethods, _name, _array_only_method(_name))
