"""Module: one symbol on one device or several."""
from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mxc import context as ctx
from mxc import ndarray as nd
from mxc import optimizer as opt
from mxc.checkpoints import checkpoint_paths, load_checkpoint
from mxc.compiler.error import ArgumentError, ArgumentTypeError, FileAccessError, MXNetError, nearest
from mxc.initializer import InitDesc, Uniform
from mxc.io import DataDesc
from mxc.model import (
    _create_kvstore,
    _initialize_kvstore,
    _update_params,
    _update_params_on_kvstore,
)
from mxc.module.base_module import FIRST, SGD_PARAMS, BaseModule, Batch, Params, _check_input_names, _parse_data_desc
from mxc.module.checks import require
from mxc.module.executor_group import DataParallelExecutorGroup
from mxc.ndarray import NDArray, zeros
from mxc.runtime.array import dtype_name
from mxc.runtime.whole_file import replacing

__all__ = ["BaseModule", "DataDesc", "DataParallelExecutorGroup", "InitDesc", "Module", "Uniform", "ctx",
           "load_checkpoint", "logging", "nd", "opt", "warnings", "zeros"]


class Module(BaseModule):
    """A symbol with its parameters, on one device or several that share every batch.

    symbol: what is computed. data_names, label_names: its inputs; all other arguments are parameters. context: a
    device, or a list of them. work_load_list: the part of each device, in proportion. fixed_param_names: parameters
    that training leaves as they are. state_names: arguments that run from batch to batch. group2ctxs: the devices of
    the groups that `ctx_group` names, as a dict, or one for each device. compression_params: how a kvstore compresses
    gradients.
    Raises ValueError for names that the symbol does not have, and for a load list of another length.
    """

    # MXNet's signature
    def __init__(self, symbol: Any, data_names: Sequence[str] | None = ("data",),
                 label_names: Sequence[str] | None = ("softmax_label",), logger: Any = logging,
                 context: Any = ctx.cpu(), work_load_list: Sequence[float] | None = None,  # noqa: B008  a constant
                 fixed_param_names: Sequence[str] | None = None, state_names: Sequence[str] | None = None,
                 group2ctxs: Any = None, compression_params: Mapping[str, Any] | None = None):
        super().__init__(logger=logger)
        self._context = [context] if isinstance(context, ctx.Context) else list(context)
        self._work_load_list = [1] * len(self._context) if work_load_list is None else list(work_load_list)
        require(len(self._work_load_list) == len(self._context),
                f"work_load_list has {len(self._work_load_list)} loads for {len(self._context)} devices")
        self._group2ctxs = group2ctxs
        self._symbol = symbol
        self._data_names, self._label_names = list(data_names or ()), list(label_names or ())
        self._state_names, self._fixed_param_names = list(state_names or ()), list(fixed_param_names or ())
        for names, kind, throw in ((self._data_names, "data", True), (self._label_names, "label", False),
                                   (self._state_names, "state", True), (self._fixed_param_names, "fixed_param", True)):
            _check_input_names(symbol, names, kind, throw)
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in symbol.list_arguments() if name not in inputs]
        self._aux_names, self._output_names = symbol.list_auxiliary_states(), symbol.list_outputs()
        self._arg_params: dict[str, NDArray] | None = None
        self._aux_params: dict[str, NDArray] | None = None
        self._params_dirty = False  # whether the devices have newer values than _arg_params
        self._compression_params = compression_params
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore: bool | None = None
        self._updater: Any = None
        self._asks_for_rows = False  # whether `prepare` pulls rows of row_sparse parameters for each batch
        self._numbered: list[str] = []  # the parameters in the order in which the optimizer numbers them
        self._preload_opt_states: str | None = None
        self._grad_req: Any = None
        self._reset_bind()

    # -- files

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """The module that was saved under a prefix after an epoch.

        load_optimizer_states: init_optimizer then reads the optimizer's states too. kwargs: see Module.
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol=symbol, **kwargs)
        module._arg_params, module._aux_params = arg_params, aux_params
        module.params_initialized = True
        if load_optimizer_states:
            module._preload_opt_states = checkpoint_paths(prefix, epoch).states
        return module

    def save_checkpoint(self, prefix: str, epoch: int, save_optimizer_states: bool = False,
                        remove_amp_cast: bool = True) -> None:
        """Save PREFIX-symbol.json, PREFIX-EPOCH.params, and the optimizer's states as PREFIX-EPOCH.states.

        Each file appears whole or not at all, the parameters last: when a new epoch has them, its checkpoint is
        complete.
        """
        paths = checkpoint_paths(prefix, epoch)
        self._symbol.save(paths.symbol, remove_amp_cast=remove_amp_cast)
        if save_optimizer_states:
            self.save_optimizer_states(paths.states)
        self.save_params(paths.params)
        logging.info('Saved checkpoint to "%s"', paths.params)
        if save_optimizer_states:
            logging.info('Saved optimizer state to "%s"', paths.states)

    def save_optimizer_states(self, fname: str | os.PathLike[str]) -> None:
        """Write the optimizer's states to a file, which appears whole or not at all.

        They are what the optimizer keeps for each parameter, such as moments, but not how many updates there were. A
        run that goes on with them, and whose learning rate or optimizer depends on that number, gives it to the
        optimizer as begin_num_update.
        """
        require(self.optimizer_initialized, "there is no optimizer: call init_optimizer first")
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname)
            return
        states = self._updater.get_states()
        with replacing(fname) as file:
            file.write(states)

    def load_optimizer_states(self, fname: str | os.PathLike[str]) -> None:
        """Read what `save_optimizer_states` wrote, here or in MXNet."""
        require(self.optimizer_initialized, "there is no optimizer: call init_optimizer first")
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            return
        try:
            states = Path(fname).read_bytes()
        except OSError as error:
            raise FileAccessError(str(fname), "read", error) from None
        self._updater.set_states(states)

    # -- facts

    def _reset_bind(self) -> None:
        self.binded = False
        self._exec_group: Any = None
        self._data_shapes: list[DataDesc] = []
        self._label_shapes: list[DataDesc] | None = None

    @property
    def data_names(self) -> list[str]:
        """The names of the inputs that data are for."""
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """The names of the inputs that labels are for."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> list[DataDesc]:
        """A description of each input."""
        self._require_bound()
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """A description of each label; None without them."""
        self._require_bound()
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the outputs."""
        self._require_bound()
        return self._exec_group.get_output_shapes()

    # -- parameters

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Parameters and auxiliary states by name; the arrays are the module's, and the next call writes them again."""
        self._require_ready()
        assert self._arg_params is not None and self._aux_params is not None
        if self._params_dirty:
            self._sync_params_from_devices()
        return self._arg_params, self._aux_params

    def _sync_params_from_devices(self) -> None:
        self._exec_group.get_params(self._arg_params, self._aux_params)
        if self._update_on_kvstore:  # The devices have some rows alone.
            assert self._arg_params is not None
            for name in self._sparse_names():
                self._kvstore.pull(name, self._arg_params[name], ignore_sparse=False)
        self._params_dirty = False

    def _sparse_names(self) -> list[str]:
        """The parameters that are row_sparse."""
        group = self._exec_group
        return [name for name, arrays in zip(group.param_names, group.param_arrays, strict=True)
                if arrays[0].stype == "row_sparse"]

    def init_params(self, initializer: Any = FIRST, arg_params: Params | None = None, aux_params: Params | None = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """See BaseModule. An argument's attribute `__init__` has precedence over the initializer."""
        if initializer is not None and not callable(initializer):
            raise ArgumentTypeError(f"init_params: the initializer must be an Initializer, got {initializer!r}")
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. init_params call ignored.",
                          stacklevel=2)
            return
        require(self.binded, "call bind before initializing the parameters")
        assert self._arg_params is not None and self._aux_params is not None
        attributes = self._symbol.attr_dict()
        for targets, given in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            for name, array in sorted(targets.items()):
                value = None if given is None else given.get(name)
                if value is not None:
                    if value.shape != array.shape:
                        raise MXNetError(f"the parameter {name!r} has the shape {value.shape}; the bound module needs "
                                         f"{array.shape}")
                    if value is not array:
                        value.copyto(array)
                elif given is not None and not allow_missing:
                    hint = "pass allow_missing=True to initialize the others"
                    if name.endswith("label"):
                        hint = f"it looks like a label: make the module with label_names=[{name!r}]"
                    raise MXNetError(f"{name} is not presented: the given parameters are {', '.join(given) or 'none'}; "
                                     f"{hint}")
                elif initializer is not None:
                    initializer(InitDesc(name, attributes.get(name)), array)
        self._params_dirty = False
        self._exec_group.set_params(self._arg_params, self._aux_params, allow_extra=allow_extra)
        self.params_initialized = True

    def set_params(self, arg_params: Params | None, aux_params: Params | None, allow_missing: bool = False,
                   force_init: bool = True, allow_extra: bool = False) -> None:
        """See BaseModule."""
        if not allow_missing:
            self.init_params(initializer=None, arg_params=arg_params, aux_params=aux_params,
                             allow_missing=allow_missing, force_init=force_init, allow_extra=allow_extra)
            return
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. set_params call ignored.",
                          stacklevel=2)
            return
        self._require_bound()
        self._exec_group.set_params(arg_params or {}, aux_params or {}, allow_extra=allow_extra)
        self._params_dirty = True  # The devices have values that _arg_params does not have yet.
        self.params_initialized = True

    # -- binding

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """See BaseModule. shared_module: a Module that is bound and has its parameters."""
        if force_rebind:
            if self.binded and self.params_initialized and self._params_dirty:
                self._sync_params_from_devices()
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        require(for_training or not inputs_need_grad, "inputs_need_grad=True needs for_training=True")
        data, labels = _parse_data_desc(self._data_names, self._label_names, data_shapes, label_shapes or None)
        relative = None
        if shared_module is not None:
            require(isinstance(shared_module, Module) and shared_module.binded and shared_module.params_initialized,
                    "shared_module must be a Module that is bound and has parameters")
            relative = shared_module._exec_group
            require(len(relative.execs) >= len(self._context), "shared_module has fewer devices than this module")
        self._exec_group = DataParallelExecutorGroup(
            self._symbol, self._context, self._work_load_list, data, labels, self._param_names, for_training,
            inputs_need_grad, relative, logger=self.logger, fixed_param_names=self._fixed_param_names,
            grad_req=grad_req, state_names=self._state_names, group2ctxs=self._group2ctxs)
        if relative is not None:
            _check_shared(self._exec_group, relative)
        self._data_shapes, self._label_shapes, self._grad_req = data, labels, grad_req
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        if shared_module is not None:
            self._arg_params, self._aux_params = shared_module._arg_params, shared_module._aux_params
            self.params_initialized = True
        elif self.params_initialized:
            self._exec_group.set_params(self._arg_params, self._aux_params)
        else:
            group = self._exec_group
            self._arg_params = _blank(self._param_names, group.param_arrays)
            self._aux_params = _blank(self._aux_names, group.aux_arrays)
        self.binded = True  # This comes last, so that a bind that fails leaves the module unbound.
        if shared_module is not None and shared_module.optimizer_initialized:
            self.borrow_optimizer(shared_module)

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Bind for other shapes; parameters and optimizer stay."""
        self._require_bound()
        data, labels = _parse_data_desc(self._data_names, self._label_names, data_shapes, label_shapes or None)
        self._exec_group.reshape(data, labels)
        self._data_shapes, self._label_shapes = data, labels

    # -- the optimizer

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD_PARAMS,
                       force_init: bool = False) -> None:
        """See BaseModule. An optimizer given by name divides gradients by the batch size; one that was made elsewhere
        does what its rescale_grad says, and a warning tells where that is another number."""
        self._require_ready()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._params_dirty:
            self._sync_params_from_devices()
        assert self._arg_params is not None
        count = len(self._context)
        kvstore, update_on_kvstore = _create_kvstore(kvstore, count, self._arg_params)
        names = self._exec_group.param_names
        if update_on_kvstore:
            idx2name = dict(enumerate(names))
        else:
            idx2name = {i * count + k: name for k in range(count) for i, name in enumerate(names)}
        rescale_grad = 1.0 / (self._exec_group.batch_size * _pushing_workers(kvstore))
        if isinstance(optimizer, str):
            params = {"rescale_grad": rescale_grad, **dict(optimizer_params)}
            optimizer = opt.create(optimizer, sym=self.symbol, param_idx2name=idx2name, **params)
        elif not isinstance(optimizer, opt.Optimizer):
            raise ArgumentTypeError(f"the optimizer must be an Optimizer or the name of one, got {type(optimizer)}")
        else:
            if optimizer.rescale_grad != rescale_grad:
                warnings.warn("Optimizer created manually outside Module but rescale_grad is not normalized to "
                              f"1.0/batch_size/num_workers ({optimizer.rescale_grad} vs. {rescale_grad}). Is this "
                              "intended?", stacklevel=2)
            if not optimizer.idx2name:
                optimizer.idx2name = idx2name.copy()
        self._optimizer, self._kvstore, self._update_on_kvstore = optimizer, kvstore, update_on_kvstore
        self._updater, self._numbered = None, names
        if kvstore is not None:
            if self._compression_params:
                kvstore.set_gradient_compression(self._compression_params)
            if update_on_kvstore:
                kvstore.set_optimizer(optimizer)
            _initialize_kvstore(kvstore, self._exec_group.param_arrays, self._arg_params, self._param_names,
                                update_on_kvstore)
        if not update_on_kvstore:
            self._updater = opt.get_updater(optimizer)
        self.optimizer_initialized = True
        states, self._preload_opt_states = self._preload_opt_states, None
        if states is not None:
            self.load_optimizer_states(states)

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Use another module's optimizer and kvstore."""
        require(shared_module.optimizer_initialized, "shared_module has no optimizer")
        self._optimizer, self._kvstore = shared_module._optimizer, shared_module._kvstore
        self._update_on_kvstore, self._updater = shared_module._update_on_kvstore, shared_module._updater
        self._numbered = shared_module._numbered
        self.optimizer_initialized = True

    # -- steps

    def forward(self, data_batch: Batch, is_train: bool | None = None) -> None:
        """See BaseModule. Batches of other shapes than are bound make the module bind itself to these."""
        self._require_ready()
        first = data_batch[0] if isinstance(data_batch, list) else data_batch
        shapes = [tuple(array.shape) for array in first.data]
        bound = [desc.shape for desc in self._data_shapes]
        if isinstance(data_batch, list):  # one batch for each device: the whole has the rows of all
            shapes = [(sum(len(one.data[k]) for one in data_batch), *shape[1:]) for k, shape in enumerate(shapes)]
        if shapes != bound:
            self._fit_shapes(first, shapes)
        self._exec_group.forward(data_batch, is_train)

    def _fit_shapes(self, batch: Any, shapes: Sequence[tuple[int, ...]]) -> None:
        if len(shapes) != len(self._data_shapes):
            raise ArgumentError(f"the batch has {len(shapes)} data arrays; the module is bound to "
                                f"{len(self._data_shapes)}: {', '.join(desc.name for desc in self._data_shapes)}")
        data = getattr(batch, "provide_data", None) or _redescribed(self._data_shapes, shapes)
        labels = getattr(batch, "provide_label", None)
        if not set(self._label_names).intersection(self._symbol.list_arguments()):
            labels = None  # they are for another module of a sequence
        elif not labels and getattr(batch, "label", None):
            # a module bound without labels takes none
            labels = _redescribed(self._label_shapes or (), [tuple(array.shape) for array in batch.label])
        self.reshape(data, labels or None)

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """See BaseModule."""
        self._require_ready()
        self._exec_group.backward(out_grads=out_grads)

    def update(self) -> None:
        """See BaseModule."""
        self._require_ready()
        require(self.optimizer_initialized, "there is no optimizer: call init_optimizer first")
        self._params_dirty = True
        group = self._exec_group
        if self._update_on_kvstore:
            _update_params_on_kvstore(group.param_arrays, group.grad_arrays, self._kvstore, group.param_names)
            if not self._asks_for_rows:
                self._pull_rows({})
        else:
            numbers = None if self._numbered == group.param_names else [self._numbered.index(n)
                                                                        for n in group.param_names]
            _update_params(group.param_arrays, group.grad_arrays, self._updater, len(self._context), self._kvstore,
                           group.param_names, numbers)

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """See BaseModule. The arrays are the executors': the next run writes them again."""
        self._require_ready()
        return self._exec_group.get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """See BaseModule."""
        self._require_ready()
        return self._exec_group.get_input_grads(merge_multi_context=merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """See BaseModule."""
        self._require_ready()
        return self._exec_group.get_states(merge_multi_context=merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """See BaseModule."""
        self._require_ready()
        self._exec_group.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """See BaseModule."""
        self._exec_group.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """See BaseModule."""
        self._require_bound()
        self._exec_group.install_monitor(mon)

    def prepare(self, data_batch: Batch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """See BaseModule. Where a kvstore updates the parameters, the rows are pulled from there. Once rows have been
        asked for, `update` no longer pulls all of them.

        Raises ArgumentTypeError where sparse_row_id_fn gives no dict by name.
        """
        self._require_bound()
        super().prepare(data_batch, sparse_row_id_fn)
        if sparse_row_id_fn is None or not self._update_on_kvstore:
            return
        rows = sparse_row_id_fn(data_batch)
        if not isinstance(rows, Mapping):
            raise ArgumentTypeError(f"sparse_row_id_fn gives row numbers by the names of parameters, got {type(rows)}")
        self._asks_for_rows = True
        self._pull_rows(rows)

    def _pull_rows(self, wanted: Mapping[str, NDArray]) -> None:
        """Have the devices' row_sparse parameters follow the kvstore's: in the rows that are wanted, else whole."""
        group, names = self._exec_group, {*self._sparse_names()}
        for name, arrays in zip(group.param_names, group.param_arrays, strict=True):
            if name in wanted:
                self._kvstore.row_sparse_pull(name, list(arrays), row_ids=wanted[name])
            elif name in names:
                self._kvstore.pull(name, list(arrays), ignore_sparse=False)


def _blank(names: Sequence[str], blocks: Sequence[Sequence[NDArray]]) -> dict[str, NDArray]:
    """An array on the host for each parameter."""
    return {name: zeros(block[0].shape, dtype=block[0].dtype, stype=block[0].stype)
            for name, block in zip(names, blocks, strict=True)}


def _check_shared(group: DataParallelExecutorGroup, owner: DataParallelExecutorGroup) -> None:
    """Raise MXNetError for a parameter that the owner lacks, or has in another shape: it would not be shared."""
    known = dict(zip(owner.param_names, owner.param_arrays, strict=True))
    for name, arrays in zip(group.param_names, group.param_arrays, strict=True):
        if name not in known:
            raise MXNetError(f"the parameter {name!r} is not in the module whose parameters this one uses; that has "
                             f"{', '.join(known)}{nearest(name, known)}")
        if arrays[0] is not known[name][0]:
            raise MXNetError(f"the parameter {name!r} has the shape {arrays[0].shape} ({dtype_name(arrays[0].dtype)}); "
                             f"in the module whose parameters this one uses it has {known[name][0].shape} "
                             f"({dtype_name(known[name][0].dtype)})")


def _redescribed(descriptions: Sequence[DataDesc], shapes: Sequence[tuple[int, ...]]) -> list[DataDesc]:
    return [DataDesc(desc.name, shape, desc.dtype, desc.layout)
            for desc, shape in zip(descriptions, shapes, strict=False)]


def _pushing_workers(kvstore: Any) -> int:
    """How many workers' gradients one update has in it."""
    return kvstore.num_workers if kvstore is not None and "async" not in kvstore.type else 1
