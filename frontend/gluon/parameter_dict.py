"""Parameters by name, under a common prefix."""
from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.compiler.error import AssertedError, MXNetError, nearest
from mxc.compiler.ops.dtypes import dtype_name
from mxc.context import Context
from mxc.gluon.parameter import UNIFORM, Constant, Parameter
from mxc.ndarray import NDArray
from mxc.runtime.ndarray_file import own_name

__all__ = ["ParameterDict"]


class ParameterDict:
    """Parameters of a block by their whole names.

    prefix: before the names that `get` is given. shared: another dict, whose parameters `get` finds first, so that
    blocks share them.
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None):
        self._prefix, self._shared = prefix, shared
        self._params: OrderedDict[str, Parameter] = OrderedDict()

    def __repr__(self) -> str:
        name = f"{self._prefix} " if self._prefix else ""
        lines = "\n".join(f"  {line}" for param in self.values() for line in repr(param).splitlines())
        return f"{name}(\n{lines}\n)"

    def __getitem__(self, key: str) -> Parameter:
        return self._params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> Any:
        """(name, parameter) pairs."""
        return self._params.items()

    def keys(self) -> Any:
        """The names."""
        return self._params.keys()

    def values(self) -> Any:
        """The parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """What the names of its parameters begin with."""
        return self._prefix

    def _find(self, name: str) -> Parameter | None:
        if name in self._params:
            return self._params[name]
        if self._shared is not None and name in self._shared._params:
            self._params[name] = self._shared._params[name]
            return self._params[name]
        return None

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """The parameter PREFIX + name; a new one, made with `kwargs`, where there is none.

        Raises AssertionError when one is there and `kwargs` say otherwise than it is.
        """
        full = self.prefix + name
        found = self._find(full)
        if found is None:
            found = self._params[full] = Parameter(full, **kwargs)
            return found
        for key, value in kwargs.items():
            has = getattr(found, key, None)
            if has is None:
                setattr(found, key, value)
            elif key == "shape" and value is not None:
                found.shape = _united(full, has, (value,) if isinstance(value, int) else tuple(value))
            elif key == "dtype" and dtype_name(value) == dtype_name(has):
                continue
            elif value is not None and value != has:
                raise AssertedError(f"parameter {full} is there with {key}={has!r}, and is asked for with "
                                    f"{key}={value!r}")
        return found

    def get_constant(self, name: str, value: Any = None) -> Parameter:
        """The constant PREFIX + name; a new one of that value where there is none.

        Raises AssertionError when one is there with another value, KeyError when there is none and no value is given.
        """
        full = self.prefix + name
        found = self._find(full)
        if found is None:
            if value is None:
                raise KeyError(f"there is no constant {full}: give a value to make one")
            found = self._params[full] = Constant(full, value)
        elif value is not None:
            given = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
            if not isinstance(found, Constant) or found.shape != given.shape or (found.value.asnumpy() != given).any():
                raise AssertedError(f"{full} is there with another value than is asked for")
        return found

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Take the parameters of another dict. Raises AssertionError where another one has the same name."""
        for key, value in other.items():
            if self._params.setdefault(key, value) is not value:
                raise AssertedError(f"parameter {key} is there already, and is another one")

    def initialize(self, init: Any = UNIFORM, ctx: Context | Sequence[Context] | None = None, verbose: bool = False,
                   force_reinit: bool = False) -> None:
        """`Parameter.initialize` of all; `init` where a parameter has none of its own. verbose: log each."""
        if verbose:
            init.set_verbosity(verbose=verbose)
        for param in self.values():
            param.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to 0."""
        for param in self.values():
            param.zero_grad()

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move all parameters to other devices."""
        for param in self.values():
            param.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """The devices of all parameters."""
        return list(dict.fromkeys(device for param in self.values() for device in param.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute, as "grad_req" or "lr_mult", of all parameters."""
        for param in self.values():
            setattr(param, name, value)

    def save(self, filename: str | os.PathLike[str], strip_prefix: str = "") -> None:
        """Write all values to a file. Raises ValueError when a name does not begin with `strip_prefix`."""
        found = {}
        for param in self.values():
            if not param.name.startswith(strip_prefix):
                raise ValueError(f"strip_prefix is {strip_prefix!r}, with which the name {param.name!r} does not begin")
            found[param.name[len(strip_prefix):]] = param._reduce()
        ndarray.save(filename, found)

    def load(self, filename: str | os.PathLike[str], ctx: Context | Sequence[Context] | None = None,
             allow_missing: bool = False, ignore_extra: bool = False, restore_prefix: str = "",
             cast_dtype: bool = False, dtype_source: str = "current") -> None:
        """Read values from a file; see `load_dict`."""
        loaded = ndarray.load(filename) or {}  # without arrays, as of a network without parameters, there are no names
        if not isinstance(loaded, Mapping):
            raise MXNetError(f"{os.fspath(filename)}: arrays without names; expected parameters by name")
        self.load_dict(loaded, ctx, allow_missing, ignore_extra, restore_prefix, os.fspath(filename), cast_dtype,
                       dtype_source)

    def load_dict(self, param_dict: Mapping[str, NDArray], ctx: Context | Sequence[Context] | None = None,
                  allow_missing: bool = False, ignore_extra: bool = False, restore_prefix: str = "",
                  filename: str | None = None, cast_dtype: bool = False, dtype_source: str = "current") -> None:
        """Take values by name, with or without `arg:` and `aux:` before it. restore_prefix: goes before the names.

        Raises AssertionError for a parameter that is not there, without allow_missing, and for a name of no parameter,
        without ignore_extra; and where shape or dtype do not fit.
        """
        where = f"in {filename}" if filename else "in the given parameters"
        loaded = {restore_prefix + own_name(key): value for key, value in param_dict.items()}
        if restore_prefix and not all(name.startswith(restore_prefix) for name in self.keys()):
            raise AssertedError(f"restore_prefix is {restore_prefix!r}, with which not all names of the "
                                "parameters begin")
        missing = [name for name in self.keys() if name not in loaded]
        if missing and not allow_missing:
            raise AssertedError(f"parameter {missing[0]} is missing {where}, which has {_some(loaded)}"
                                f"{nearest(missing[0], list(loaded))}; allow_missing=True leaves it as it is")
        for name, value in loaded.items():
            if name in self._params:
                self._params[name]._load_init(value, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
            elif not ignore_extra:
                raise AssertedError(f"parameter {name}, which is {where}, is not one of {_some(self.keys())}"
                                    f"{nearest(name, list(self.keys()))}; ignore_extra=True leaves it out")


def _united(name: str, one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of which each says a part."""
    if len(one) == len(other) and all(a == b or a in (0, -1) or b in (0, -1) for a, b in zip(one, other, strict=True)):
        return tuple(b if a in (0, -1) else a for a, b in zip(one, other, strict=True))
    raise AssertedError(f"parameter {name} is there with the shape {one}, and is asked for with {other}")


def _some(names: Any) -> str:
    """The first of many names, for a message."""
    listed = list(names)
    return ", ".join(listed[:8]) + (f", ... ({len(listed)} names)" if len(listed) > 8 else "")
