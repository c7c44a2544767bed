"""The trainer, which applies an optimizer to the parameters of blocks."""
from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from mxc import autograd
from mxc import kvstore as stores
from mxc import optimizer as opt
from mxc.compiler.error import ArgumentError, AssertedError
from mxc.context import Context
from mxc.gluon.parameter import Parameter
from mxc.gluon.parameter_dict import ParameterDict
from mxc.ndarray import NDArray
from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.whole_file import replacing

__getattr__, _ = elsewhere(__name__, {}, {"mxc.kvstore": "KVStore", "mxc.model": "_create_kvstore"})
__all__ = ["Trainer"]


class Trainer:
    """Changes parameters by their gradients, after each `backward`.

    params: a ParameterDict, or a list or dict of parameters. optimizer: its name or an Optimizer; optimizer_params: the
    arguments for one that is named. kvstore: "local", "device", a KVStore, or None: what sums the gradients of several
    devices. update_on_kvstore: whether the store applies the optimizer; default: it does where there is a store.
    Raises ValueError for what are no parameters.
    """

    def __init__(self, params: Any, optimizer: Any, optimizer_params: Mapping[str, Any] | None = None,
                 kvstore: Any = "device", compression_params: Mapping[str, Any] | None = None,
                 update_on_kvstore: bool | None = None):
        if isinstance(params, (dict, ParameterDict)):
            params = [params[key] for key in sorted(params.keys())]
        if not isinstance(params, (list, tuple)):
            raise ValueError(f"a Trainer takes parameters in a list or a dict, got {type(params).__name__}")
        self._params: list[Parameter] = []
        for param in params:
            if not isinstance(param, Parameter):
                raise ValueError(f"a Trainer takes parameters, and got {type(param).__name__} among them")
            self._params.append(param)
            param._set_trainer(self)
        self._has_sparse = any(param._stype != "default" for param in self._params)
        self._compression, self._given_store, self._on_store = compression_params, kvstore, update_on_kvstore
        self._contexts: list[Context] | None = None
        given = dict(optimizer_params or {})
        by_index = dict(enumerate(self._params))
        if isinstance(optimizer, opt.Optimizer):
            if given:
                raise AssertedError("an Optimizer that is made already takes no optimizer_params")
            self._optimizer = optimizer
            self._optimizer.param_dict = by_index
        else:
            self._optimizer = opt.create(optimizer, param_dict=by_index, **given)
        self._scale = self._optimizer.rescale_grad
        self._updaters: list[Any] = []
        self._reset_kvstore()

    # -- its store

    def _reset_kvstore(self) -> None:
        self._kvstore: Any = None
        self._update_on_kvstore: bool | None = None
        self._kv_initialized = False
        self._to_init = list(self._params)

    def _devices(self) -> list[Context]:
        """The devices of all parameters, which must be the same."""
        found: list[Context] | None = None
        for param in self._params:
            devices = param.list_ctx()
            if found is not None and found != devices:
                raise AssertedError(f"all parameters of a Trainer are to be on the same devices; {param.name} is on "
                                    f"{devices}, others are on {found}")
            found = devices
        return found or []

    def _init_kvstore(self) -> None:
        devices = self._contexts = self._devices()
        store, count = self._given_store, len(devices)
        if isinstance(store, str):
            store = stores.create(store) if count > 1 or "dist" in store or self._has_sparse else None
        on_store = self._on_store
        if self._has_sparse:  # the store has their rows
            if on_store is False:
                raise ArgumentError("Cannot set update_on_kvstore=False when sparse weights are present: the kvstore "
                                    "has the rows of row_sparse parameters")
            store, on_store = store or stores.create("device"), True
        elif on_store is None and any(param._grad_stype != "default" for param in self._params):
            on_store = store is not None and "dist" in store.type  # servers take rows alone, and change these alone
        if on_store and store is None and self._given_store is None:
            raise ValueError("update_on_kvstore=True needs a kvstore, and kvstore is None")
        if on_store is None:
            on_store = store is not None and store.is_capable("optimizer")
        elif on_store and store is None and isinstance(self._given_store, str):
            store = stores.create(self._given_store)
        if store is not None and not on_store and "async" in store.type:
            raise ValueError("a store of the type dist_async applies the optimizer itself: leave update_on_kvstore out")
        if store is not None and self._compression:
            store.set_gradient_compression(self._compression)
        if store is not None and on_store:
            store.set_optimizer(self._optimizer)
        self._kvstore, self._update_on_kvstore, self._kv_initialized = store, bool(on_store), True
        if not self._updaters:
            self._updaters = [opt.get_updater(self._optimizer) for _ in range(count or 1)]

    def _init_params(self) -> None:
        """Put into the store what has values by now."""
        left = []
        for param in self._to_init:
            if param._data is None:
                left.append(param)
            elif self._kvstore is not None:
                index = self._index[id(param)]
                with autograd.pause():  # the first forward may be recorded, and ask for rows of another parameter
                    if param._stype == "default":
                        self._kvstore.broadcast(index, param.list_data()[0], param.list_data())
                    else:
                        self._kvstore.init(index, param._data[0])
        self._to_init = left

    @property
    def _index(self) -> dict[int, int]:
        return {id(param): i for i, param in enumerate(self._params)}

    def _parameter_was_set(self, param: Parameter) -> None:
        """The store's weight is another than the parameter's now."""
        if self._kv_initialized and self._update_on_kvstore and param not in self._to_init:
            self._reset_kvstore()

    def _ready(self) -> None:
        if not self._kv_initialized:
            self._init_kvstore()
        if self._to_init:
            self._init_params()

    # -- training

    @property
    def learning_rate(self) -> float:
        """The optimizer's learning rate now."""
        return self._optimizer.learning_rate

    @property
    def optimizer(self) -> Any:
        """The optimizer."""
        return self._optimizer

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate. Raises UserWarning, as an error, when the optimizer has a scheduler."""
        self._optimizer.set_learning_rate(lr)

    def step(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Sum the gradients of all devices, and change the parameters by them, divided by `batch_size`.

        ignore_stale_grad: leave out parameters that backward gave no gradient since the last step; else they raise
        UserWarning, as an error.
        """
        self._rescale(self._scale / batch_size)
        self._ready()
        self._sum_gradients()
        self._apply(ignore_stale_grad)

    def _rescale(self, scale: float) -> None:
        if self._update_on_kvstore and self._kv_initialized and self._optimizer.rescale_grad != scale:
            warnings.warn(f"the batch size changed: gradients are multiplied by {scale} from now on, "
                          f"{self._optimizer.rescale_grad} before", stacklevel=3)
        self._optimizer.rescale_grad = scale

    def allreduce_grads(self) -> None:
        """Sum the gradients of all devices; `update` then applies them.

        Raises AssertionError when the store applies the optimizer.
        """
        self._ready()
        self._require_own_update("allreduce_grads")
        self._sum_gradients()

    def update(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Change the parameters by their gradients as they are, divided by `batch_size`. See `step`.

        Raises AssertionError when the store applies the optimizer.
        """
        self._ready()
        self._require_own_update("update")
        self._rescale(self._scale / batch_size)
        self._apply(ignore_stale_grad)

    def _require_own_update(self, what: str) -> None:
        if self._kvstore is not None and self._update_on_kvstore:
            raise AssertedError(f"{what}() is for a Trainer that applies the optimizer itself: make it with "
                                "update_on_kvstore=False")

    def _sum_gradients(self) -> None:
        store = self._kvstore
        if store is None:
            return
        together: list[tuple[int, Parameter]] = []  # what NCCL sums at once
        is_group = isinstance(store, stores.KVStore) and store.is_group(self._contexts or [])
        for i, param in enumerate(self._params):
            if param.grad_req == "null":
                continue
            if param._stype != "default":  # whoever needs its rows asks for them
                store.push(i, param.list_grad(), priority=-i)
            elif param._grad_stype != "default" and not self._update_on_kvstore:
                store.push(i, param.list_grad(), priority=-i)
                store.pull(i, param.list_grad(), priority=-i, ignore_sparse=False)
            elif is_group:
                together.append((i, param))
            else:
                store.pushpull(i, param.list_grad(), out=self._summed(param), priority=-i)
        if together:
            store.pushpull([i for i, _ in together], [param.list_grad() for _, param in together],
                           out=[self._summed(param) for _, param in together])

    def _summed(self, param: Parameter) -> list[NDArray]:
        """What the sum of a parameter's gradients, or the store's update by it, goes to."""
        return param.list_data() if self._update_on_kvstore else param.list_grad()

    def _row_sparse_pull(self, param: Parameter, out: Any, row_id: NDArray) -> None:
        """Write rows of a row_sparse parameter, as the store has them, to arrays of its shape."""
        self._ready()
        self._kvstore.row_sparse_pull(self._index[id(param)], out=out, row_ids=row_id)

    def _overflowed(self) -> bool:
        """Whether a gradient is infinite or no number, where `mx.contrib.amp.init_trainer` has it asked."""
        scaler = getattr(self, "_amp_loss_scaler", None)
        return scaler is not None and scaler.has_overflow([p for p in self._params if p.grad_req != "null"])

    def _apply(self, ignore_stale_grad: bool) -> None:
        if self._overflowed():
            return
        updates: list[list[tuple[int, Any, Any]]] = [[] for _ in self._updaters]
        for i, param in enumerate(self._params):
            if param.grad_req == "null":
                continue
            datas = param._check_and_get(param._data, list)
            if not ignore_stale_grad:
                for array in datas:
                    if not array._fresh_grad:
                        raise UserWarning(
                            f"backward gave parameter {param.name} on {array.context} no gradient since the last step: "
                            "does the loss depend on it? Leave it out of the Trainer, or call "
                            "step(ignore_stale_grad=True)")
            for found, array, gradient in zip(updates, datas, param.list_grad(), strict=True):
                if array._fresh_grad or not ignore_stale_grad:
                    found.append((i, gradient, array))
                    array._fresh_grad = False
        if self._kvstore is not None and self._update_on_kvstore:
            return
        for updater, found in zip(self._updaters, updates, strict=True):
            if found:
                indices, gradients, weights = zip(*found, strict=True)
                updater(list(indices), list(gradients), list(weights))

    # -- files

    def save_states(self, fname: str | os.PathLike[str]) -> None:
        """Write the optimizer and its states to a file."""
        self._ready()
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True)
            return
        with replacing(fname) as file:
            file.write(self._updaters[0].get_states(dump_optimizer=True))

    def load_states(self, fname: str | os.PathLike[str]) -> None:
        """Read what `save_states` wrote, the optimizer too."""
        self._ready()
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            if self._kvstore._updater is not None:  # else servers have the optimizer
                self._optimizer = self._kvstore._updater.optimizer
        else:
            with open(fname, "rb") as file:
                states = file.read()
            for updater in self._updaters:
                updater.set_states(states)
                updater.optimizer = self._updaters[0].optimizer
            self._optimizer = self._updaters[0].optimizer
        self._optimizer.param_dict = dict(enumerate(self._params))
