"""Blocks: layers, and networks made of them, that compute with arrays."""
from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from mxc import ndarray
from mxc.compiler.error import AssertedError, nearest
from mxc.context import Context
from mxc.gluon.hooks import HookHandle, attached
from mxc.gluon.naming import BlockScope
from mxc.gluon.parameter import UNIFORM, Parameter
from mxc.gluon.parameter_dict import ParameterDict
from mxc.ndarray import NDArray
from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.ndarray_file import own_name

__getattr__, _names = elsewhere(__name__, {
    "mxc.gluon.hybrid_block": "HybridBlock", "mxc.gluon.symbol_block": "SymbolBlock"},
    {"": "copy initializer=mxc.initializer json np=numpy symbol=mxc.symbol threading warnings",
     "collections": "defaultdict", "mxc.base": "MXNetError mx_real_t", "mxc.gluon.naming": "_BlockScope=BlockScope",
     "mxc.gluon.parameter": "DeferredInitializationError", "mxc.symbol": "Symbol load_json",
     "mxc.util": "is_np_array np_array np_shape"})
__all__ = ["Block", *_names]


class Block:
    """A layer, or a network of layers.

    A subclass makes its children and parameters in `__init__`, in `with self.name_scope():`, and says in `forward` what
    it computes. Blocks and parameters that are assigned to attributes are its children and its parameters.

    prefix: what the names of its parameters begin with; None for its kind and a number, "" for its parent's prefix.
    params: the parameters of another block, to share them.
    """

    _is_container: ClassVar[bool] = False  # whether it only calls its children

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None):
        self._empty_prefix = prefix == ""
        self._prefix, self._params = BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix[:-1] if self._prefix.endswith("_") else self._prefix
        self._scope = BlockScope(self)
        self._children: OrderedDict[str, Block] = OrderedDict()
        self._reg_params: dict[str, Parameter] = {}
        self._forward_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}

    def _alias(self) -> str:
        """The kind, for prefixes."""
        return type(self).__name__.lower()

    def __repr__(self) -> str:
        return _tree(type(self).__name__, {key: child for key, child in self.__dict__.items()
                                           if isinstance(child, Block)})

    def __setattr__(self, name: str, value: Any) -> None:
        """Raises TypeError for a value of another type in the place of a child or parameter, AssertionError for another
        parameter in the place of one."""
        existing = self.__dict__.get(name)
        if isinstance(existing, (Parameter, Block)) and not isinstance(value, type(existing)):
            raise TypeError(f"{name} of {self.name} is a {type(existing).__name__}, which cannot become a "
                            f"{type(value).__name__}")
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if name in self._reg_params:
                raise AssertedError(f"parameter {name} of {self.name} is there already; to share the parameters of "
                                    "another block, give them as `params` when the block is made")
            self._reg_params[name] = value
        super().__setattr__(name, value)

    # -- names and parameters

    @property
    def prefix(self) -> str:
        """What the names of its parameters begin with."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without the line at its end."""
        return self._name

    @property
    def params(self) -> ParameterDict:
        """The block's own parameters, without its children's."""
        return self._params

    def name_scope(self) -> BlockScope:
        """The scope in which children and parameters are made, so that their names begin with the block's prefix."""
        return self._scope

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """The parameters of the block and of all below it. select: those whose names match this regular expression."""
        found = ParameterDict(self._params.prefix)
        pattern = re.compile(select) if select else None
        found.update({name: p for name, p in self.params.items() if pattern is None or pattern.match(name)})
        for child in self._children.values():
            found.update(child.collect_params(select))
        return found

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Every parameter by its path, as "features.0.weight"."""
        start = f"{prefix}." if prefix else ""
        found = {start + name: param for name, param in self._reg_params.items()}
        for name, child in self._children.items():
            found.update(child._collect_params_with_prefix(start + name))
        return found

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make a block a child; assigning it to an attribute does so too. name: default is its number."""
        self._children[str(len(self._children)) if name is None else name] = block

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(block, inputs)` before each forward. The handle's `detach` ends it."""
        return attached(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Call `hook(block, inputs, outputs)` after each forward. The handle's `detach` ends it."""
        return attached(self._forward_hooks, hook)

    def register_op_hook(self, callback: Callable[[str, str, NDArray], None], monitor_all: bool = False) -> None:
        """Call `callback(node name, operator name, array)` for every output of an operator of hybridised blocks below,
        and with monitor_all for every input."""
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def apply(self, fn: Callable[[Block], Any]) -> Block:
        """Call `fn` with every block below, then with this one. Returns the block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def initialize(self, init: Any = UNIFORM, ctx: Context | Sequence[Context] | None = None, verbose: bool = False,
                   force_reinit: bool = False) -> None:
        """Initialize all parameters: see `Parameter.initialize`."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Compile the hybrid blocks below."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def cast(self, dtype: Any) -> None:
        """Cast the parameters of the block and of all below it."""
        for child in self._children.values():
            child.cast(dtype)
        for param in self.params.values():
            param.cast(dtype)

    # -- files

    def save_parameters(self, filename: str | os.PathLike[str], deduplicate: bool = False) -> None:
        """Write all parameters to a file, by their paths. deduplicate: one that several blocks share once."""
        params = self._collect_params_with_prefix()
        if deduplicate:
            last = {id(p): name for name, p in params.items()}  # MXNet's choice among its paths
            params = {name: params[name] for name in last.values()}
        ndarray.save(filename, {name: param._reduce() for name, param in params.items()})

    def save_params(self, filename: str | os.PathLike[str]) -> None:
        """Deprecated: `save_parameters`, by whole names."""
        try:
            self.collect_params().save(filename, strip_prefix=self.prefix)
        except ValueError as error:
            raise ValueError(f"{error}; save_params is deprecated, save_parameters writes any block") from error

    def load_parameters(self, filename: str | os.PathLike[str], ctx: Context | Sequence[Context] | None = None,
                        allow_missing: bool = False, ignore_extra: bool = False, cast_dtype: bool = False,
                        dtype_source: str = "current") -> None:
        """Read parameters from a file that `save_parameters`, `save_params` or `export` wrote.

        allow_missing: parameters that are not in the file stay as they are. ignore_extra: what is no parameter of the
        block is left out. cast_dtype: arrays of another dtype are cast to the parameter's; dtype_source="saved" casts
        the parameter. Raises AssertionError or ValueError for a file that does not fit.
        """
        path = os.fspath(filename)
        loaded, params = ndarray.load(filename), self._collect_params_with_prefix()
        if not loaded and not params:
            return
        if not isinstance(loaded, Mapping):
            raise AssertedError(f"{path}: arrays without names; expected parameters by name")
        if not any("." in name for name in loaded):  # whole names, of save_params and export
            own = self.collect_params()
            prefix = "" if any(own_name(name) in own for name in loaded) else self.prefix
            own.load_dict(loaded, ctx, allow_missing, ignore_extra, prefix, path, cast_dtype, dtype_source)
            return
        self._load_by_path(path, loaded, params, ctx, (allow_missing, ignore_extra), cast_dtype, dtype_source)

    def _load_by_path(self, path: str, loaded: Mapping[str, NDArray], params: Mapping[str, Parameter], ctx: Any,
                      allowed: tuple[bool, bool], cast_dtype: bool, dtype_source: str) -> None:
        there = {id(param) for name, param in params.items() if name in loaded}
        missing = [name for name, param in params.items() if id(param) not in there]
        if missing and not allowed[0]:
            raise AssertedError(f"{path}: parameter {missing[0]} is missing{nearest(missing[0], list(loaded))}; "
                                "allow_missing=True leaves it as it is")
        extra = [name for name in loaded if name not in params]
        if extra and not allowed[1]:
            raise AssertedError(f"{path}: {extra[0]} is no parameter of {self.name}{nearest(extra[0], list(params))}; "
                                "ignore_extra=True leaves it out")
        for name, array in loaded.items():
            if name in params:
                params[name]._load_init(array, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)

    def load_params(self, filename: str | os.PathLike[str], ctx: Context | Sequence[Context] | None = None,
                    allow_missing: bool = False, ignore_extra: bool = False) -> None:
        """Deprecated: `load_parameters`."""
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Write the parameters to PREFIX-model.params, and their order to PREFIX-model.json, which `load` reads."""
        import json

        self.save_parameters(f"{prefix}-model.params")
        from mxc.runtime.whole_file import replacing

        with replacing(f"{prefix}-model.json") as file:
            file.write(json.dumps({"name": type(self).__name__, "params": [*self._collect_params_with_prefix()]},
                                  indent=2).encode())

    def load(self, prefix: str) -> None:
        """Read what `save` wrote."""
        self.load_parameters(f"{prefix}-model.params")

    # -- computing

    def __call__(self, *args: Any) -> Any:
        """The outputs of `forward`, with the hooks around it."""
        for hook in tuple(self._forward_pre_hooks.values()):
            hook(self, args)
        result = self.forward(*args)
        for hook in tuple(self._forward_hooks.values()):
            hook(self, args, result)
        return result

    def forward(self, *args: Any) -> Any:
        """What the block computes; a subclass says it."""
        raise NotImplementedError

    def summary(self, *inputs: Any) -> None:
        """Print a table of all blocks below, with their outputs' shapes and numbers of parameters, for these inputs.

        Raises AssertionError for a hybridised block, whose children do not run by themselves.
        """
        from mxc.gluon.summary import summary

        summary(self, inputs)


def _tree(name: str, children: Mapping[str, object]) -> str:
    """Name and children, one below the other."""
    if not children:
        return f"{name}(\n\n)"
    lines = [f"  ({key}): " + repr(child).replace("\n", "\n  ") for key, child in children.items()]
    return f"{name}(\n" + "\n".join(lines) + "\n)"
