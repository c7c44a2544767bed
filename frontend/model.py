"""MXNet's `mx.model`: what modules do with key-value stores, and FeedForward, which came before modules."""
from __future__ import annotations

import logging
import math
import os
import time
import warnings
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mxc import io, metric
from mxc import kvstore as kvs
from mxc import ndarray as nd
from mxc import optimizer as opt
from mxc import symbol as sym
from mxc.base import _as_list, mx_real_t
from mxc.callback import LogValidationMetricsCallback
from mxc.checkpoints import load_checkpoint, load_params, save_checkpoint
from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError, SettingError
from mxc.compiler.system import env
from mxc.compiling import compiling_logged
from mxc.context import Context, cpu
from mxc.executor_manager import DataParallelExecutorManager, _check_arguments
from mxc.initializer import InitDesc, Uniform
from mxc.io import DataDesc
from mxc.ndarray import NDArray
from mxc.optimizer import get_updater

__all__ = [
    "BASE_ESTIMATOR",
    "SKLEARN_INSTALLED",
    "BatchEndParam",
    "Context",
    "DataDesc",
    "DataParallelExecutorManager",
    "FeedForward",
    "LogValidationMetricsCallback",
    "Uniform",
    "cpu",
    "get_updater",
    "io",
    "kvs",
    "load_checkpoint",
    "load_params",
    "logging",
    "metric",
    "mx_real_t",
    "namedtuple",
    "nd",
    "np",
    "opt",
    "os",
    "save_checkpoint",
    "sym",
    "time",
    "warnings",
]

BASE_ESTIMATOR, SKLEARN_INSTALLED = object, False  # in MXNet scikit-learn's class, where there is one
ON_STORE = "MXNET_UPDATE_ON_KVSTORE"
LARGEST = 1 << 24  # elements of the largest parameter; beyond, the devices update all parameters and not the kvstore
Params = Mapping[str, NDArray]

BatchEndParam = namedtuple("BatchEndParam", ["epoch", "nbatch", "eval_metric", "locals"])
BatchEndParam.__doc__ = """What callbacks are told at the end of a batch: epoch and number of the batch, the metric, and
the variables of the loop by name."""


# -- stores and updates


def _create_kvstore(kvstore: Any, num_device: int, arg_params: Params) -> tuple[Any, bool]:
    """The store that training needs, or None, and whether it updates the parameters.

    One device needs none, unless it is given as a KVStore. Raises TypeError for what is no store, SettingError where
    MXNET_UPDATE_ON_KVSTORE is neither 0 nor 1.
    """
    wanted = env.text(ON_STORE, "1").strip()
    if wanted not in ("0", "1"):
        raise SettingError(f"{ON_STORE} must be 0 or 1, got {wanted!r}")
    if kvstore is None:
        return None, False
    if isinstance(kvstore, kvs.KVStoreBase):
        return kvstore, wanted == "1" and kvstore.is_capable(kvs.KVStoreBase.OPTIMIZER)
    if not isinstance(kvstore, str):
        raise ArgumentTypeError(f"kvstore must be KVStore, str or None, got {type(kvstore)}")
    if num_device == 1 and "dist" not in kvstore:
        return None, False
    made = kvs.create(kvstore)
    largest = max((math.prod(array.shape) for array in arg_params.values()), default=0)
    return made, wanted == "1" and made.is_capable(kvs.KVStoreBase.OPTIMIZER) and \
        not (kvstore == "local" and largest > LARGEST)


def _initialize_kvstore(kvstore: Any, param_arrays: Sequence[Sequence[NDArray]], arg_params: Params,
                        param_names: Sequence[str], update_on_kvstore: bool) -> None:
    """Give the store the parameters' values; where it updates them, the devices get them from there."""
    for name, arrays in zip(param_names, param_arrays, strict=True):
        if not isinstance(kvstore, kvs.KVStore):
            kvstore.broadcast(name, arg_params[name], out=list(arrays))
            continue
        kvstore.init(name, arg_params[name])
        if update_on_kvstore or kvstore.num_workers > 1:  # all workers begin with those of worker 0
            kvstore.pull(name, list(arrays), ignore_sparse=kvstore.num_workers == 1)


def _update_params_on_kvstore(param_arrays: Sequence[Sequence[NDArray]], grad_arrays: Sequence[Sequence[Any]],
                              kvstore: Any, param_names: Sequence[str]) -> None:
    """Push the gradients and pull the parameters that the store made of them; those without gradients stay, and so do
    row_sparse ones, some of whose rows are pulled when they are needed."""
    wanted = [(name, list(grads), list(arrays)) for name, grads, arrays in
              zip(param_names, grad_arrays, param_arrays, strict=True) if grads[0] is not None]
    if not wanted:
        return
    names, grads, arrays = zip(*wanted, strict=True)
    kvstore.pushpull(list(names), list(grads), out=list(arrays))


def _update_params(param_arrays: Sequence[Sequence[NDArray]], grad_arrays: Sequence[Sequence[Any]],
                   updater: Callable[..., Any], num_device: int, kvstore: Any = None,
                   param_names: Sequence[str] | None = None, numbers: Sequence[int] | None = None) -> None:
    """Update the parameters on each device; with a store from the sums of the devices' gradients.

    numbers: of the parameters, to the optimizer; their positions when None.
    """
    wanted = [i for i, grads in enumerate(grad_arrays) if grads[0] is not None]
    if not wanted:
        return
    if kvstore is not None:
        names = [param_names[i] if param_names is not None else i for i in wanted]
        sums = [list(grad_arrays[i]) for i in wanted]
        if all(grads[0].stype == "default" for grads in sums):
            kvstore.pushpull(names, sums, out=sums)
        else:
            kvstore.push(names, sums)
            kvstore.pull(names, sums, ignore_sparse=False)
    for k in range(num_device):
        keys = [(i if numbers is None else numbers[i]) * num_device + k for i in wanted]
        updater(keys, [grad_arrays[i][k] for i in wanted], [param_arrays[i][k] for i in wanted])


def _multiple_callbacks(callbacks: Any, *args: Any, **kwargs: Any) -> None:
    """Call a function, or each of a list, if there is one."""
    if callbacks is not None:
        for callback in _as_list(callbacks):
            callback(*args, **kwargs)


# -- FeedForward


class FeedForward:
    """A symbol with its parameters, which is trained on arrays or iterators. New programs use `mx.mod.Module`.

    symbol: what is computed, or a function that gives it for a bucket key. ctx: a device or a list of them; the current
    one when None. num_epoch: the epochs end before this one. epoch_size: batches of an epoch; all that there are when
    None. optimizer: one, or the name of one, whose parameters are kwargs. numpy_batch_size: of data given as arrays.
    arg_params, aux_params: first values, in place of the initializer's. allow_extra_params: there may be others among
    them. begin_epoch: the first epoch.
    """

    # MXNet's signature
    def __init__(self, symbol: Any, ctx: Any = None, num_epoch: int | None = None, epoch_size: int | None = None,
                 optimizer: Any = "sgd", initializer: Any = Uniform(0.01),  # noqa: B008  a constant
                 numpy_batch_size: int = 128, arg_params: Params | None = None, aux_params: Params | None = None,
                 allow_extra_params: bool = False, begin_epoch: int = 0, **kwargs: Any):
        warnings.warn("mxnet.model.FeedForward has been deprecated. Please use mxnet.mod.Module instead.",
                      DeprecationWarning, stacklevel=2)
        self.symbol: Any = symbol if isinstance(symbol, sym.Symbol) else None
        self.sym_gen: Any = None if isinstance(symbol, sym.Symbol) else symbol
        self.arg_params, self.aux_params = arg_params, aux_params
        self.allow_extra_params, self.argument_checked = allow_extra_params, False
        if self.sym_gen is None:
            self._check_arguments()
        self.ctx = [cpu()] if ctx is None else [ctx] if isinstance(ctx, Context) else list(ctx)
        self.num_epoch, self.epoch_size, self.begin_epoch = num_epoch, epoch_size, begin_epoch
        self.kwargs, self.optimizer, self.initializer = dict(kwargs), optimizer, initializer
        self.numpy_batch_size = numpy_batch_size
        self._pred_exec: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pred_exec": None}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_arguments(self) -> None:
        if self.argument_checked:
            return
        self.argument_checked = True
        _check_arguments(self.symbol)
        if self.allow_extra_params:
            for kind, names in (("arg_params", self.symbol.list_arguments()),
                                ("aux_params", self.symbol.list_auxiliary_states())):
                given = getattr(self, kind)
                if given:
                    setattr(self, kind, {name: value for name, value in given.items() if name in set(names)})

    # -- data

    def _init_iter(self, X: Any, y: Any, is_train: bool) -> Any:
        """An iterator over what is given as one, or as arrays."""
        if isinstance(X, (np.ndarray, NDArray)):
            if y is None:
                if is_train:
                    raise ArgumentError("y must be specified when X is numpy.ndarray")
                y = np.zeros(X.shape[0])
            if not isinstance(y, (np.ndarray, NDArray)):
                raise ArgumentTypeError(f"y must be ndarray when X is numpy.ndarray, got {type(y)}")
            if X.shape[0] != y.shape[0]:
                raise ArgumentError(f"The numbers of data points and labels not equal: {X.shape[0]} and {y.shape[0]}")
            if len(y.shape) == 2 and y.shape[1] == 1:
                y = y.reshape((-1,))
            if len(y.shape) != 1:
                raise ArgumentError(f"Label must be 1D or 2D (with 2nd dimension being 1), got the shape {y.shape}")
            return io.NDArrayIter(X, y, min(X.shape[0], self.numpy_batch_size), shuffle=is_train,
                                  last_batch_handle="roll_over" if is_train else "pad")
        if not isinstance(X, io.DataIter):
            raise ArgumentTypeError(f"X must be DataIter, NDArray or numpy.ndarray, got {type(X)}")
        return X

    def _init_eval_iter(self, eval_data: Any) -> Any:
        if eval_data is None or isinstance(eval_data, io.DataIter):
            return eval_data
        if not isinstance(eval_data, (tuple, list)) or len(eval_data) != 2:
            raise ArgumentTypeError("Eval data must be DataIter, or NDArray/numpy.ndarray/list pair (i.e. tuple/list "
                                    "of length 2)")
        data, label = eval_data
        if data is None:
            raise ArgumentError("Eval data is NONE")
        if label is None and isinstance(data, io.DataIter):
            return data
        data, label = (np.array(one) if isinstance(one, list) else one for one in eval_data)
        return self._init_iter(data, label, is_train=True)  # in another order each time, as MXNet's

    # -- parameters

    def _init_params(self, inputs: Any, overwrite: bool = False) -> tuple[list[str], list[str], list[str]]:
        """The names of arguments, parameters and states; those without values get them. inputs: DataDescs."""
        shapes = {desc[0]: tuple(desc[1]) for desc in inputs}
        arg_shapes, _, aux_shapes = self.symbol.infer_shape(**shapes)
        if arg_shapes is None:
            raise MXNetError(f"the shapes {shapes} do not tell those of all parameters")
        arg_names, aux_names = self.symbol.list_arguments(), self.symbol.list_auxiliary_states()
        param_names = [name for name in arg_names if name not in shapes]
        attributes = self.symbol.attr_dict()
        wanted = (("arg_params", param_names, dict(zip(arg_names, arg_shapes, strict=True))),
                  ("aux_params", aux_names, dict(zip(aux_names, aux_shapes, strict=True))))
        for kind, names, known in wanted:
            old, made = getattr(self, kind) or {}, {}
            for name in names:
                made[name] = nd.zeros(known[name])
                if name in old and not overwrite:
                    made[name][:] = old[name]
                else:
                    self.initializer(InitDesc(name, attributes.get(name)), made[name])
            setattr(self, kind, made)
        return arg_names, param_names, aux_names

    # -- predicting

    def _init_predictor(self, inputs: Any) -> Any:
        """The executor for these inputs: the last one where it fits."""
        shapes = {desc[0]: tuple(desc[1]) for desc in inputs}
        if self.arg_params is None:
            raise MXNetError("this model has no parameters: fit it, or give arg_params")
        if self._pred_exec is None or any(self._pred_exec.arg_dict[name].shape != shape
                                          for name, shape in shapes.items()):
            self._pred_exec = self.symbol.simple_bind(self.ctx[0], grad_req="null", **shapes)
        self._pred_exec.copy_params_from(self.arg_params, self.aux_params, allow_extra_params=True)
        _check_arguments(self.symbol)
        return self._pred_exec

    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """The outputs for all data, as a NumPy array, or a list of them; with return_data also data and labels.

        num_batch: how many batches at most. reset: begin the iterator anew.
        """
        data = self._init_iter(X, None, is_train=False)
        if reset:
            data.reset()
        executor = self._init_predictor(data.provide_data)
        columns: dict[str, list[list[np.ndarray]]] = {"out": [], "data": [], "label": []}
        for i, batch in enumerate(data):
            if i == num_batch:
                break
            outputs = executor.forward(is_train=False, **dict(zip(
                [desc[0] for desc in data.provide_data], batch.data, strict=True)))
            rows = data.batch_size - (batch.pad or 0)
            found = {"out": outputs, "data": batch.data, "label": batch.label or ()}
            for kind, arrays in found.items() if return_data else [("out", outputs)]:
                columns[kind].append([array[:rows].asnumpy() for array in arrays])
        joined = {kind: [np.concatenate(parts) for parts in zip(*batches, strict=True)]
                  for kind, batches in columns.items()}
        results = [values[0] if len(values) == 1 else values for values in joined.values()]
        return tuple(results) if return_data else results[0]

    def score(self, X: Any, eval_metric: Any = "acc", num_batch: int | None = None, batch_end_callback: Any = None,
              reset: bool = True) -> Any:
        """The value of a metric over the data of an iterator; see `predict`."""
        if not isinstance(eval_metric, metric.EvalMetric):
            eval_metric = metric.create(eval_metric)
        data = self._init_iter(X, None, is_train=False)
        if reset:
            data.reset()
        names = [desc[0] for desc in data.provide_data]
        executor = self._init_predictor(data.provide_data)
        for i, batch in enumerate(data):
            if i == num_batch:
                break
            executor.forward(is_train=False, **dict(zip(names, batch.data, strict=True)))
            eval_metric.update(batch.label, executor.outputs)
            if batch_end_callback is not None:
                _multiple_callbacks(batch_end_callback, BatchEndParam(0, i, eval_metric, locals()))
        return eval_metric.get()[1]

    # -- training

    # MXNet's signature
    def fit(self, X: Any, y: Any = None, eval_data: Any = None, eval_metric: Any = "acc",
            epoch_end_callback: Any = None, batch_end_callback: Any = None, kvstore: Any = "local", logger: Any = None,
            work_load_list: Sequence[float] | None = None, monitor: Any = None,
            eval_end_callback: Any = LogValidationMetricsCallback(),  # noqa: B008  a constant
            eval_batch_end_callback: Any = None) -> None:
        """Train on data and labels, given as an iterator or as arrays.

        eval_data: an iterator, or a pair of arrays, that is scored after each epoch. The callbacks and the rest: see
        BaseModule.fit; batches are counted from 1.
        """
        data, eval_data = self._init_iter(X, y, is_train=True), self._init_eval_iter(eval_data)
        if self.sym_gen is not None:
            self.symbol = self.sym_gen(data.default_bucket_key)
            self._check_arguments()
        _, param_names, _ = self._init_params([*data.provide_data, *data.provide_label])
        self.kwargs.update(sym=self.symbol, param_idx2name=dict(enumerate(param_names)))
        if not isinstance(eval_metric, metric.EvalMetric):
            eval_metric = metric.create(eval_metric)
        assert self.arg_params is not None
        store, on_store = _create_kvstore(kvstore, len(self.ctx), self.arg_params)
        if on_store is False:
            count = len(self.ctx)
            self.kwargs["param_idx2name"] = {i * count + k: name for i, name in enumerate(param_names)
                                             for k in range(count)}
        optimizer = self.optimizer
        if isinstance(optimizer, str):
            optimizer = opt.create(optimizer, **{"rescale_grad": 1.0 / data.batch_size, **self.kwargs})
        elif not isinstance(optimizer, opt.Optimizer):
            raise ArgumentTypeError(f"the optimizer must be an Optimizer or the name of one, got {type(optimizer)}")
        logger = logger if logger is not None else logging
        logger.info("Start training with %s", self.ctx)
        manager = DataParallelExecutorManager(self.symbol, self.ctx, data, param_names=param_names, logger=logger,
                                              work_load_list=work_load_list, sym_gen=self.sym_gen)
        if monitor is not None:
            manager.install_monitor(monitor)
        manager.set_params(self.arg_params, self.aux_params)
        updater = None if on_store else get_updater(optimizer)
        if store is not None:
            if on_store:
                store.set_optimizer(optimizer)
            _initialize_kvstore(store, manager.param_arrays, self.arg_params, param_names, on_store)

        def update() -> None:
            if updater is None:
                _update_params_on_kvstore(manager.param_arrays, manager.grad_arrays, store, param_names)
            else:
                _update_params(manager.param_arrays, manager.grad_arrays, updater, len(self.ctx), store, param_names)

        with compiling_logged(logger):
            self._run_epochs(data, manager, update, eval_data, eval_metric, monitor, logger, epoch_end_callback,
                             batch_end_callback, eval_end_callback, eval_batch_end_callback)

    # many parameters: most are the callbacks of `fit`, which hands them on
    def _run_epochs(self, train_data: Any, manager: Any, update: Callable[[], None], eval_data: Any, eval_metric: Any,
                    monitor: Any, logger: Any, epoch_end_callback: Any, batch_end_callback: Any, eval_end_callback: Any,
                    eval_batch_end_callback: Any) -> None:
        if self.num_epoch is None:
            raise ArgumentError("fit needs num_epoch: give it to FeedForward")
        train_data.reset()
        batches = iter(train_data)
        for epoch in range(self.begin_epoch, self.num_epoch):
            tic = time.time()
            eval_metric.reset()
            nbatch, seen = 0, True
            while nbatch != self.epoch_size:
                data_batch = next(batches, None)
                if data_batch is None:  # with an epoch_size the data begin anew within an epoch
                    if not seen:
                        raise ArgumentError("fit: the training data have no batch after their reset")
                    logger.info("Epoch[%d] Resetting Data Iterator", epoch)
                    train_data.reset()
                    batches, seen = iter(train_data), False
                    if self.epoch_size is None:
                        break
                    continue
                seen = True
                manager.load_data_batch(data_batch)
                if monitor is not None:
                    monitor.tic()
                manager.forward(is_train=True)
                manager.backward()
                update()
                if monitor is not None:
                    monitor.toc_print()
                manager.update_metric(eval_metric, data_batch.label)
                nbatch += 1
                if batch_end_callback is not None:
                    _multiple_callbacks(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - tic)
            if epoch_end_callback or epoch + 1 == self.num_epoch:
                manager.copy_to(self.arg_params, self.aux_params)
            _multiple_callbacks(epoch_end_callback, epoch, self.symbol, self.arg_params, self.aux_params)
            if eval_data is None:
                continue
            eval_metric.reset()
            eval_data.reset()
            count = 0
            for eval_batch in eval_data:
                manager.load_data_batch(eval_batch)
                manager.forward(is_train=False)
                manager.update_metric(eval_metric, eval_batch.label)
                if eval_batch_end_callback is not None:
                    _multiple_callbacks(eval_batch_end_callback, BatchEndParam(epoch, count, eval_metric, locals()))
                count += 1
            _multiple_callbacks(eval_end_callback, BatchEndParam(epoch, count, eval_metric, locals()))
            eval_data.reset()  # as MXNet's once more: it draws the orders of later epochs

    # -- files

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Save a checkpoint, see `save_checkpoint`; of the last epoch when None."""
        number = self.num_epoch if epoch is None else epoch
        if number is None:
            raise ArgumentError("save needs the number of an epoch: give it, or num_epoch to FeedForward")
        save_checkpoint(prefix, number, self.symbol, self.arg_params or {}, self.aux_params or {}, remove_amp_cast)

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """The model of a checkpoint; training goes on with that epoch. kwargs: see FeedForward."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx=ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)

    # MXNet's signature
    @staticmethod
    def create(symbol: Any, X: Any, y: Any = None, ctx: Any = None, num_epoch: int | None = None,
               epoch_size: int | None = None, optimizer: Any = "sgd",
               initializer: Any = Uniform(0.01), eval_data: Any = None, eval_metric: Any = "acc",  # noqa: B008
               epoch_end_callback: Any = None, batch_end_callback: Any = None, kvstore: Any = "local",
               logger: Any = None, work_load_list: Sequence[float] | None = None,
               eval_end_callback: Any = LogValidationMetricsCallback(),  # noqa: B008  a constant
               eval_batch_end_callback: Any = None, **kwargs: Any) -> FeedForward:
        """Make a model and fit it; see FeedForward and its `fit`."""
        model = FeedForward(symbol, ctx=ctx, num_epoch=num_epoch, epoch_size=epoch_size, optimizer=optimizer,
                            initializer=initializer, **kwargs)
        model.fit(X, y, eval_data=eval_data, eval_metric=eval_metric, epoch_end_callback=epoch_end_callback,
                  batch_end_callback=batch_end_callback, kvstore=kvstore, logger=logger, work_load_list=work_load_list,
                  eval_end_callback=eval_end_callback, eval_batch_end_callback=eval_batch_end_callback)
        return model
