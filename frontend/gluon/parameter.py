"""Parameters of blocks: arrays on one or several devices, made when their shape is known, with their gradients."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc import autograd, initializer
from mxc.compiler.error import ArgumentTypeError, AssertedError, MXNetError
from mxc.compiler.ops.dtypes import dtype_name
from mxc.context import Context, cpu, current_context
from mxc.ndarray import NDArray
from mxc.runtime.elsewhere import elsewhere
from mxc.symbol import Symbol, var
from mxc.util import is_np_shape

__getattr__, _names = elsewhere(__name__, {"mxc.gluon.parameter_dict": "ParameterDict"}, {
    "": "context=mxc.context ndarray=mxc.ndarray symbol=mxc.symbol", "collections": "OrderedDict defaultdict",
    "mxc.base": "mx_real_t", "mxc.util": "is_np_array"})
__all__ = ["Constant", "DeferredInitializationError", "Parameter", "tensor_types", *_names]

tensor_types = (Symbol, NDArray)

REQUESTS = ("write", "add", "null")
STORAGE_TYPES = ("default", "row_sparse", "csr")
UNIFORM = initializer.Uniform()  # what parameters start with when nothing is said


class DeferredInitializationError(MXNetError):
    """A parameter was read before its shape was known: the first forward pass tells it."""


def shape_is_known(shape: Sequence[int] | None) -> bool:
    """Whether every extent of a shape is known: 0 says no, and -1 in the scope mx.np_shape()."""
    return shape is not None and not any(e == (-1 if is_np_shape() else 0) for e in shape)


class Parameter:
    """An array of a block, on every device that the block was initialized on, and its gradient.

    grad_req: "write", "add" or "null". shape: extents that are 0 are told by the first forward pass, which needs
    allow_deferred_init. lr_mult, wd_mult: factors of the optimizer's learning rate and weight decay. init: the
    initializer, or its name. differentiable: False for what has no gradient, as moving means. stype, grad_stype: how
    the arrays and their gradients are kept. The rows of a row_sparse parameter are its Trainer's, which
    `row_sparse_data` asks for those that a batch needs.
    Raises ValueError for another request or storage type.
    """

    # MXNet's signature
    def __init__(self, name: str, grad_req: str = "write", shape: int | Sequence[int] | None = None,
                 dtype: Any = np.float32, lr_mult: float = 1.0, wd_mult: float = 1.0, init: Any = None,
                 allow_deferred_init: bool = False, differentiable: bool = True, stype: str = "default",
                 grad_stype: str = "default"):
        self._data: list[NDArray] | None = None
        self._grad: list[NDArray] | None = None
        self._ctx_list: list[Context] = []
        self._ctx_map: Any = None  # MXNet finds the array of a device by it, and packages' own parameters copy it
        self._deferred_init: tuple[Any, list[Context], Any, NDArray | None] | None = None
        self._trainer: Any = None
        self._var: Any = None
        self._differentiable, self._allow_deferred_init = differentiable, allow_deferred_init
        self.name = name
        self._shape = (shape,) if isinstance(shape, int) else None if shape is None else tuple(shape)
        self._dtype = dtype
        self.lr_mult, self.wd_mult, self.init = lr_mult, wd_mult, init
        self._grad_req = ""
        self.grad_req = grad_req
        self._stype, self._grad_stype = stype, grad_stype
        for what, given in (("stype", stype), ("grad_stype", grad_stype)):
            if given not in STORAGE_TYPES:
                raise AssertedError(f"{what} of parameter {name} is {given!r}; expected one of "
                                    f"{', '.join(STORAGE_TYPES)}")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy's arrays have the copy's gradients."""
        self.__dict__.update(state)
        if self._data is not None and self._grad is not None:
            autograd.mark_variables(self._data, self._grad, self.grad_req)

    def __repr__(self) -> str:
        return f"Parameter {self.name} (shape={self.shape}, dtype={self.dtype})"

    # -- what it is like

    @property
    def grad_req(self) -> str:
        """What backward does with the gradient: "write", "add" or "null"."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in REQUESTS:
            raise AssertedError(f"grad_req of parameter {self.name} is {req!r}; expected one of {', '.join(REQUESTS)}")
        wanted = req if self._differentiable else "null"
        if wanted == self._grad_req:
            return
        self._grad_req = wanted
        if wanted == "null" and self._grad is not None:
            self._grad = None
            self._data = [array.detach() for array in self._data or ()]
        elif self._data is not None:
            self._init_grad()

    @property
    def dtype(self) -> Any:
        """The dtype, as it was given."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape; an extent that is not known is 0, and -1 in the scope mx.np_shape()."""
        if self._shape is None or not is_np_shape():
            return self._shape
        return tuple(extent if extent != 0 else -1 for extent in self._shape)

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        given = tuple(shape)
        if self._shape is not None and not (len(self._shape) == len(given) and all(
                old in (-1, 0, new) for old, new in zip(self._shape, given, strict=True))):
            raise _BadShape(f"parameter {self.name} has the shape {self._shape}, which the shape {given} does not fit")
        self._shape = given

    def var(self) -> Any:
        """The variable that stands for it in symbols, one for all of them."""
        if self._var is None:
            self._var = var(self.name, shape=self.shape, dtype=self.dtype, lr_mult=self.lr_mult, wd_mult=self.wd_mult,
                            init=self.init, stype=self._stype)
        return self._var

    # -- initialization

    def initialize(self, init: Any = None, ctx: Context | Sequence[Context] | None = None,
                   default_init: Any = UNIFORM, force_reinit: bool = False) -> None:
        """Make the arrays, on `ctx` (default: the current context), and give them their first values; or do so at the
        first forward pass when the shape is not known.

        init: goes before the parameter's own `init`, and that before `default_init`. force_reinit: do it again.
        Raises ValueError for a shape that is not known and may not be told later.
        """
        if self._data is not None and not force_reinit:
            warnings.warn(f"parameter {self.name} is initialized already and stays so; force_reinit=True makes it "
                          "anew", stacklevel=2)
            return
        self._data = self._grad = None
        devices = [current_context()] if ctx is None else [ctx] if isinstance(ctx, Context) else list(ctx)
        if init is None:
            init = default_init if self.init is None else self.init
        if not shape_is_known(self.shape) and not self._allow_deferred_init:
            raise ValueError(f"parameter {self.name} cannot be initialized: its shape {self.shape} is not known")
        self._deferred_init = init, devices, default_init, None
        if shape_is_known(self.shape):
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Make the arrays that `initialize` left for later. Raises ValueError when the shape is still not known."""
        if self._deferred_init is None:
            return
        init, devices, default_init, data = self._deferred_init
        if not shape_is_known(self.shape):
            raise AssertedError(f"parameter {self.name} cannot be initialized: its shape {self.shape} is not known. "
                                "Give the layer its in_units, in_channels, ..., or run a forward pass first")
        with autograd.pause():
            if data is None:
                from mxc import ndarray

                assert self.shape is not None
                data = ndarray.zeros(self.shape, dtype=self.dtype, ctx=cpu(), stype=self._stype)
                self._give_values(init, default_init, data)
            self._init_impl(data, devices)
        self._deferred_init = None

    def _give_values(self, init: Any, default_init: Any, data: NDArray) -> None:
        """As MXNet does: a named or made initializer gives weights, whatever the parameter's name ends in."""
        first = initializer.create(default_init) if isinstance(default_init, str) else default_init
        is_own = isinstance(init, (str, initializer.Initializer))
        if not is_own:  # Mixed, Load, or a function of the program's own
            first = init
        first(initializer.InitDesc(self.name, {"__init__": init} if is_own else {}), data)

    def _init_impl(self, data: NDArray, devices: Sequence[Context]) -> None:
        self._ctx_list = list(devices)
        kept = data if data.stype == self._stype else data.tostype(self._stype)
        self._data = [kept.copyto(device) for device in devices]
        self._init_grad()

    def _init_grad(self) -> None:
        if self.grad_req == "null":
            self._grad = None
            return
        from mxc import ndarray

        self._grad = [ndarray.zeros(a.shape, dtype=a.dtype, ctx=a.context, stype=self._grad_stype)
                      for a in self._data or ()]
        autograd.mark_variables(self._data, self._grad, self.grad_req)

    def _load_init(self, data: NDArray, ctx: Context | Sequence[Context] | None, cast_dtype: bool = False,
                   dtype_source: str = "current") -> None:
        """Take loaded values. cast_dtype: of another dtype too, cast to the parameter's ("current"), or the other way
        round ("saved"). Raises AssertionError where shape, dtype or devices do not fit."""
        if self.shape is not None and not (len(self.shape) == len(data.shape) and all(
                own in (-1, 0, given) for own, given in zip(self.shape, data.shape, strict=True))):
            raise _BadShape(f"parameter {self.name}: the loaded array is {data.shape}, expected {self.shape}")
        if cast_dtype:
            if dtype_source not in ("current", "saved"):
                raise AssertedError(f"dtype_source is {dtype_source!r}; expected 'current' or 'saved'")
            if dtype_source == "current":
                data = data.astype(self.dtype, copy=False)
            else:
                self.cast(data.dtype)
        elif dtype_name(self.dtype) != data._array.dtype:
            raise _BadShape(f"parameter {self.name}: the loaded array is {data._array.dtype}, expected "
                            f"{dtype_name(self.dtype)}; cast_dtype=True casts it")
        self._shape = data.shape
        devices = [ctx] if isinstance(ctx, Context) else None if ctx is None else list(ctx)
        there = self._ctx_list if self._data is not None else self._deferred_init[1] if self._deferred_init else None
        if devices is not None and there is not None and set(devices) != set(there):
            raise _BadShape(f"parameter {self.name} is initialized on {there}, and cannot be loaded on {devices}; call "
                            "reset_ctx first")
        if self._data is None:
            with autograd.pause():
                self._init_impl(data, devices or there or [cpu()])
        else:
            self.set_data(data)
        self._deferred_init = None

    # -- its arrays

    def _check_and_get(self, arrays: list[NDArray] | None, ctx: Any) -> Any:
        """The arrays on all devices where ctx is `list`, or the one on a device."""
        if arrays is None:
            if self._deferred_init is not None:
                raise DeferredInitializationError(
                    f"parameter {self.name} has no values yet: they are made in the first forward pass, which tells "
                    "its shape. Run one batch through the network, or give the layer its in_units, in_channels, ...")
            raise MXNetError(f"parameter {self.name} has not been initialized: call initialize() of the block or "
                             "of its collect_params(), which has the parameters of its children too")
        if ctx is list:
            return arrays
        if ctx is None:
            if len(arrays) == 1:
                return arrays[0]
            ctx = current_context()
        for device, array in zip(self._ctx_list, arrays, strict=True):
            if device == ctx:
                return array
        raise MXNetError(f"parameter {self.name} is not on {ctx}, only on {', '.join(map(str, self._ctx_list))}")

    def data(self, ctx: Context | None = None) -> NDArray:
        """The array on a device; without `ctx` the only one, or that on the current context.

        Raises RuntimeError when it is not there, and for a row_sparse parameter; DeferredInitializationError when it is
        to be made later.
        """
        self._require_dense("data")
        return self._check_and_get(self._data, ctx)

    def list_data(self) -> list[NDArray]:
        """The arrays on all devices. Raises as `data`."""
        self._require_dense("list_data")
        return self._check_and_get(self._data, list)

    def _require_dense(self, asked: str) -> None:
        if self._stype == "row_sparse":
            raise MXNetError(f"parameter {self.name} is row_sparse, so {asked}() has no copy of it: "
                             f"{asked.replace('data', 'row_sparse_data')}(row_id) gives the rows that are asked for")

    def grad(self, ctx: Context | None = None) -> NDArray:
        """The gradient on a device. Raises as `data`, and RuntimeError when there is none, with grad_req="null"."""
        self._require_grad()
        return self._check_and_get(self._grad, ctx)

    def list_grad(self) -> list[NDArray]:
        """The gradients on all devices. Raises as `grad`."""
        self._require_grad()
        return self._check_and_get(self._grad, list)

    def _require_grad(self) -> None:
        if self._data is not None and self._grad is None:
            raise MXNetError(f"parameter {self.name} has no gradient: its grad_req is 'null'")

    def list_ctx(self) -> list[Context]:
        """The devices. Raises RuntimeError before it was initialized."""
        if self._data is not None:
            return self._ctx_list
        if self._deferred_init is None:
            raise MXNetError(f"parameter {self.name} has not been initialized")
        return self._deferred_init[1]

    def list_row_sparse_data(self, row_id: NDArray) -> list[NDArray]:
        """The arrays on all devices, with these rows. Raises as `row_sparse_data`."""
        return self._rows(row_id, list)

    def row_sparse_data(self, row_id: NDArray) -> NDArray:
        """The array of a row_sparse parameter on the device of `row_id`, with the rows of these numbers, as its Trainer
        has them now.

        Raises RuntimeError for a dense parameter, and before a Trainer has the parameter; TypeError where row_id is no
        array.
        """
        if not isinstance(row_id, NDArray):
            raise ArgumentTypeError(f"row_id is an NDArray of the numbers of rows, got {type(row_id)}")
        return self._rows(row_id, row_id.context)

    def _rows(self, row_id: NDArray, ctx: Any) -> Any:
        if self._stype != "row_sparse":
            raise MXNetError(f"parameter {self.name} has the storage type {self._stype}: use data() in place of "
                             "row_sparse_data()")
        found = self._check_and_get(self._data, ctx)
        self._require_trainer()._row_sparse_pull(self, found, row_id)
        return found

    def _require_trainer(self) -> Any:
        if self._trainer is None:
            raise MXNetError(f"the rows of parameter {self.name} are its Trainer's, and there is none yet: make a "
                             "gluon.Trainer with the parameter first")
        return self._trainer

    def set_data(self, data: NDArray) -> None:
        """Write `data` to the arrays on all devices; before the deferred initialization: start with it.

        Raises AssertionError for a shape that does not fit, and before it was initialized.
        """
        self.shape = data.shape
        if self._data is None:
            if self._deferred_init is None:
                raise _BadShape(f"parameter {self.name} has not been initialized")
            self._deferred_init = (*self._deferred_init[:3], data)
            return
        if self._trainer is not None:
            self._trainer._parameter_was_set(self)
        for array in self._data:
            array[:] = data

    def zero_grad(self) -> None:
        """Set the gradients to 0; nothing where there is none."""
        from mxc import ndarray

        for gradient in self._grad or ():
            if gradient.stype == "default":
                gradient[:] = 0
            else:
                ndarray.zeros(gradient.shape, gradient.context, gradient.dtype, gradient.stype).copyto(gradient)

    def cast(self, dtype: Any) -> None:
        """Cast the arrays and their gradients to another dtype."""
        self._dtype, self._var = dtype, None
        if self._data is None:
            return
        with autograd.pause():
            self._data = [array.astype(dtype) for array in self._data]
            if self._grad is not None:
                self._grad = [gradient.astype(dtype) for gradient in self._grad]
                autograd.mark_variables(self._data, self._grad, self.grad_req)

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move the parameter to other devices. Raises ValueError before it was initialized."""
        devices = [ctx] if isinstance(ctx, Context) else list(ctx)
        if self._data is not None:
            data = self._reduce()
            with autograd.pause():
                self._init_impl(data, devices)
        elif self._deferred_init is not None:
            self._deferred_init = (self._deferred_init[0], devices, *self._deferred_init[2:])
        else:
            raise ValueError(f"parameter {self.name} has not been initialized, so it cannot be moved")

    def _reduce(self) -> NDArray:
        """The mean over all devices, on the CPU; of a row_sparse parameter, what its Trainer has."""
        from mxc import ndarray

        if self._stype == "row_sparse":
            whole = self._check_and_get(self._data, list)[0].copyto(cpu())
            if self._trainer is not None:
                self._trainer._row_sparse_pull(self, whole, ndarray.arange(whole.shape[0], dtype="int64"))
            return whole
        arrays = [array.copyto(cpu()) for array in self.list_data()]
        return arrays[0] if len(arrays) == 1 else ndarray.add_n(*arrays) / len(arrays)

    def _set_trainer(self, trainer: Any) -> None:
        if self._stype != "default" and None is not self._trainer is not trainer is not None:
            raise MXNetError(f"parameter {self.name} is {self._stype} and has a Trainer already, which has its values: "
                             "one Trainer only can have it")
        self._trainer = trainer


class Constant(Parameter):
    """A parameter that is not trained, of a given value: an NDArray, or what makes one."""

    def __init__(self, name: str, value: Any):
        if not isinstance(value, NDArray):
            from mxc import ndarray

            value = ndarray.array(value)
        self.value = value
        super().__init__(name, grad_req="null", shape=value.shape, dtype=value.dtype, init=_Given(value))

    def __repr__(self) -> str:
        return f"Constant {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def grad_req(self) -> str:
        """Always "null"."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warnings.warn(f"constant {self.name} has no gradient: grad_req={req!r} is ignored", stacklevel=2)


class _Given(initializer.Initializer):
    """The values of a constant."""

    def __init__(self, value: NDArray):
        super().__init__()
        self.value = value

    def _init_weight(self, _: str, arr: NDArray) -> None:
        self.value.copyto(arr)

    def dumps(self) -> str:
        """Variables carry no values: those of a constant are in the file of parameters."""
        return initializer.Zero().dumps()


class _BadShape(MXNetError, AssertionError):
    """MXNet raises AssertionError."""
