"""BaseModule: what all modules can do, made of the few steps that each kind does in its own way."""
from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mxc import metric, ndarray
from mxc.base import _as_list
from mxc.compiler.error import ArgumentError, ArgumentTypeError, ModelFileError
from mxc.compiling import compiling_logged
from mxc.context import cpu
from mxc.initializer import Uniform
from mxc.io import DataBatch, DataDesc, DataIter
from mxc.model import BatchEndParam
from mxc.module.checks import check_input_names as _check_input_names
from mxc.module.checks import check_names_match as _check_names_match
from mxc.module.checks import parse_data_desc as _parse_data_desc
from mxc.module.checks import require
from mxc.ndarray import NDArray

__all__ = ["BaseModule", "BatchEndParam", "DataBatch", "DataDesc", "DataIter", "Uniform", "cpu", "logging", "metric",
           "ndarray", "np", "time", "warnings"]
_PRIVATE = _check_input_names, _check_names_match, _parse_data_desc  # Programs import these names from this module.

Params = Mapping[str, NDArray]
Batch = Any  # a DataBatch, or a list of them, one for each device
SGD_PARAMS = (("learning_rate", 0.01),)
FIRST = Uniform(0.01)  # the initializer where a program gives none; MXNet's default too


class BaseModule:
    """A unit that computes: it is bound to shapes, its parameters are initialized, and it is run and trained.

    logger: where the loops say what they do. binded, params_initialized, optimizer_initialized: whether that was done.
    for_training, inputs_need_grad: how it was bound.
    """

    def __init__(self, logger: Any = logging):
        self.logger = logger
        self.binded = self.for_training = self.inputs_need_grad = False
        self.params_initialized = self.optimizer_initialized = False
        self._symbol: Any = None

    def _require_bound(self) -> None:
        require(self.binded, "this module is not bound: call bind first")

    def _require_ready(self) -> None:
        self._require_bound()
        require(self.params_initialized, "the parameters are not initialized: call init_params or set_params first")

    # -- loops

    def forward_backward(self, data_batch: Batch) -> None:
        """One forward run in training mode and the backward run."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def score(self, eval_data: Any, eval_metric: Any, num_batch: int | None = None,
              batch_end_callback: Any = None, score_end_callback: Any = None, reset: bool = True, epoch: int = 0,
              sparse_row_id_fn: Callable[..., Any] | None = None) -> list[tuple[str, float]]:
        """The values of a metric over the data of an iterator, as pairs (name, value).

        num_batch: how many batches at most. reset: begin the iterator anew. epoch: what callbacks are told.
        """
        eval_metric = _metric_of(eval_metric)
        eval_metric.reset()
        count = 0
        for nbatch, eval_batch in self._inferred(eval_data, num_batch, reset, sparse_row_id_fn):
            self._update_metric_of(eval_metric, eval_batch)
            if batch_end_callback is not None:
                _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            count = nbatch + 1
        if score_end_callback is not None:
            _call(score_end_callback, BatchEndParam(epoch, count, eval_metric, locals()))
        return eval_metric.get_name_value()

    def _inferred(self, eval_data: Any, num_batch: int | None, reset: bool,
                  sparse_row_id_fn: Callable[..., Any] | None) -> Iterator[tuple[int, Batch]]:
        """The batches of an iterator with their numbers, each when its forward run in inference mode has begun."""
        self._require_ready()
        if reset:
            eval_data.reset()
        for nbatch, batch in enumerate(eval_data):
            if nbatch == num_batch:
                return
            self.prepare(batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(batch, is_train=False)
            yield nbatch, batch

    def _update_metric_of(self, eval_metric: Any, batch: Batch) -> None:
        if isinstance(batch, list):
            self.update_metric(eval_metric, [one.label for one in batch], pre_sliced=True)
        else:
            self.update_metric(eval_metric, batch.label)

    def iter_predict(self, eval_data: Any, num_batch: int | None = None, reset: bool = True,
                     sparse_row_id_fn: Callable[..., Any] | None = None) -> Iterator[tuple[list[NDArray], int, Batch]]:
        """Yield (outputs, number, batch) for each batch; rows of padding are cut off the outputs.

        The outputs hold until the next batch is asked for.
        """
        for nbatch, eval_batch in self._inferred(eval_data, num_batch, reset, sparse_row_id_fn):
            pad = eval_batch.pad or 0
            yield [out[:out.shape[0] - pad] if pad else out for out in self.get_outputs()], nbatch, eval_batch

    def predict(self, eval_data: Any, num_batch: int | None = None, merge_batches: bool = True, reset: bool = True,
                always_output_list: bool = False, sparse_row_id_fn: Callable[..., Any] | None = None) -> Any:
        """The outputs for all data of an iterator, or for one batch given as an array.

        merge_batches: whether to join the batches of each output; else the result is a list of lists, one for each
        batch. A single output is given as its array, or with always_output_list as a list of it. num_batch: how many
        batches at most.
        Raises ValueError when eval_data is neither an array nor an iterator, and when batches cannot be joined.
        """
        self._require_ready()
        if isinstance(eval_data, (NDArray, np.ndarray)):
            data = eval_data if isinstance(eval_data, NDArray) else ndarray.array(eval_data)
            self.forward(DataBatch([data]), is_train=False)
            return self.get_outputs()[0]
        if not isinstance(eval_data, DataIter):
            raise ArgumentError(f"eval_data must be of type NDArray or DataIter, got {type(eval_data)}")
        found = [[out.copy() for out in outputs] for outputs, _, _ in
                 self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)]
        if not found or not merge_batches:
            return found
        if len({len(outputs) for outputs in found}) > 1:
            raise ArgumentError("Cannot merge batches, as num of outputs is not the same in mini-batches. Maybe "
                                "bucketing is used? Set merge_batches=False")
        merged = [outputs[0] if len(outputs) == 1 else ndarray.concatenate(list(outputs))
                  for outputs in zip(*found, strict=True)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    # MXNet's signature
    def fit(self, train_data: Any, eval_data: Any = None, eval_metric: Any = "acc", epoch_end_callback: Any = None,
            batch_end_callback: Any = None, kvstore: Any = "local", optimizer: Any = "sgd",
            optimizer_params: Any = SGD_PARAMS, eval_end_callback: Any = None, eval_batch_end_callback: Any = None,
            initializer: Any = FIRST, arg_params: Params | None = None, aux_params: Params | None = None,
            allow_missing: bool = False, force_rebind: bool = False, force_init: bool = False, begin_epoch: int = 0,
            num_epoch: int | None = None, validation_metric: Any = None, monitor: Any = None,
            sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Train for the epochs from begin_epoch to num_epoch.

        train_data, eval_data: iterators; after each epoch the module is scored on the latter. eval_metric,
        validation_metric: a metric, its name, a function or a list of these. epoch_end_callback: functions of (epoch,
        symbol, arg_params, aux_params); the other callbacks take a BatchEndParam. arg_params, aux_params: the first
        values, in place of the initializer's. allow_missing: these may lack some. force_rebind, force_init: also where
        the module is bound and initialized. monitor: a Monitor of the executors.

        A batch is loaded while the one before is computed: only code that reads values waits for them. A compilation of
        more than a few seconds logs how far it is.
        """
        require(num_epoch is not None, "please specify number of epochs")
        assert num_epoch is not None
        if not hasattr(train_data, "provide_data"):
            raise ArgumentTypeError("fit: train_data must be an iterator of batches, as mx.io.NDArrayIter, which tells "
                                    f"their shapes by provide_data; got {type(train_data)}")
        eval_metric = _metric_of(eval_metric)
        self.bind(train_data.provide_data, train_data.provide_label, for_training=True, force_rebind=force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        self.init_params(initializer, arg_params, aux_params, allow_missing=allow_missing, force_init=force_init)
        self.init_optimizer(kvstore, optimizer, optimizer_params)
        for epoch in range(begin_epoch, num_epoch):
            start = time.time()
            with compiling_logged(self.logger):
                values = self._fit_epoch(epoch, train_data, eval_metric, monitor, batch_end_callback, sparse_row_id_fn)
            self._log(epoch, "Train", values)
            self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - start)
            trained = self.get_params()
            self.set_params(*trained)  # Now all devices have the same values.
            for callback in _as_list(epoch_end_callback) if epoch_end_callback is not None else ():
                callback(epoch, self.symbol, *trained)
            if eval_data:
                scores = self.score(eval_data, eval_metric if validation_metric is None else validation_metric,
                                    score_end_callback=eval_end_callback, batch_end_callback=eval_batch_end_callback,
                                    epoch=epoch)
                self._log(epoch, "Validation", scores)
            train_data.reset()

    def _log(self, epoch: int, what: str, values: list[tuple[str, float]]) -> None:
        for name, value in values:
            self.logger.info("Epoch[%d] %s-%s=%f", epoch, what, name, value)

    def _fit_epoch(self, epoch: int, train_data: Any, eval_metric: Any, monitor: Any, batch_end_callback: Any,
                   sparse_row_id_fn: Callable[..., Any] | None) -> list[tuple[str, float]]:
        """Train on every batch of an epoch; returns the metric's values at its end."""
        eval_metric.reset()
        batches = iter(train_data)
        data_batch, nbatch = next(batches, None), 0
        if data_batch is None:
            raise ArgumentError(f"fit: the training data have no batch in epoch {epoch}: does reset begin anew?")
        values: list[tuple[str, float]] = []
        while data_batch is not None:
            if monitor is not None:
                monitor.tic()
            self.forward_backward(data_batch)
            self.update()
            self._update_metric_of(eval_metric, data_batch)
            following = next(batches, None)  # The next batch is loaded while the engine computes.
            if following is None:
                values = eval_metric.get_global_name_value()  # The callbacks below may reset the metric.
            else:
                self.prepare(following, sparse_row_id_fn=sparse_row_id_fn)
            if monitor is not None:
                monitor.toc_print()
            if batch_end_callback is not None:
                _call(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            data_batch, nbatch = following, nbatch + 1
        return values

    # -- facts

    @property
    def data_names(self) -> list[str]:
        """The names of the inputs that data are for."""
        raise NotImplementedError

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        raise NotImplementedError

    @property
    def data_shapes(self) -> list[DataDesc]:
        """A description of each input."""
        raise NotImplementedError

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """A description of each label; None, or an empty list, without them."""
        raise NotImplementedError

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the outputs."""
        raise NotImplementedError

    @property
    def symbol(self) -> Any:
        """The module's symbol; None where it has none."""
        return self._symbol

    # -- parameters

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Parameters and auxiliary states by name: copies, of the devices' values as they are now."""
        raise NotImplementedError

    def init_params(self, initializer: Any = FIRST, arg_params: Params | None = None, aux_params: Params | None = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """Give the parameters and states their first values: those given, else the initializer's.

        allow_missing: given ones may lack some, which the initializer fills. allow_extra: there may be others too.
        force_init: also where they have values. Raises MXNetError, which is a RuntimeError, for one that is missing.
        """
        raise NotImplementedError

    def set_params(self, arg_params: Params | None, aux_params: Params | None, allow_missing: bool = False,
                   force_init: bool = True, allow_extra: bool = False) -> None:
        """Give the parameters and states values; see init_params."""
        self.init_params(initializer=None, arg_params=arg_params, aux_params=aux_params, allow_missing=allow_missing,
                         force_init=force_init, allow_extra=allow_extra)

    def save_params(self, fname: str) -> None:
        """Save the parameters and states to a .params file; it appears whole or not at all."""
        arg_params, aux_params = self.get_params()
        ndarray.save(fname, {**{f"arg:{name}": value for name, value in arg_params.items()},
                             **{f"aux:{name}": value for name, value in aux_params.items()}})

    def load_params(self, fname: str) -> None:
        """Read what `save_params` or `save_checkpoint` wrote.

        Raises ModelFileError when the file cannot be read or its arrays are called otherwise.
        """
        loaded = ndarray.load(fname)
        kinds: dict[str, dict[str, NDArray]] = {"arg": {}, "aux": {}}
        for key, value in loaded.items() if isinstance(loaded, dict) else ():
            kind, _, name = key.partition(":")
            if kind not in kinds or not name:
                raise ModelFileError(str(fname), f"an array is called {key!r}; expected arg:NAME or aux:NAME")
            kinds[kind][name] = value
        if not isinstance(loaded, dict):
            raise ModelFileError(str(fname), "the arrays have no names; expected arg:NAME and aux:NAME")
        self.set_params(kinds["arg"], kinds["aux"])

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states that run from batch to batch."""
        self._require_ready()
        require(not merge_multi_context, "this module has no states to merge: pass merge_multi_context=False")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Give the states values."""
        self._require_ready()
        require(not states and not value, "this module has no states")

    # -- steps

    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor see the executors' values."""
        raise NotImplementedError

    def prepare(self, data_batch: Batch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Called with each batch before it is run, as soon as it is there; does nothing unless a subclass does.

        sparse_row_id_fn: gives for a batch which rows of row_sparse parameters it reads, {name: row numbers}; None: all
        may be read.
        """

    def forward(self, data_batch: Batch, is_train: bool | None = None) -> None:
        """Compute the outputs. is_train: the mode; None: as the module was bound."""
        raise NotImplementedError

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """Compute the gradients. out_grads: those of the outputs, where these are no losses."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last forward run, joined over devices; else a list of the devices' for each."""
        raise NotImplementedError

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the inputs, in the form of `get_outputs`; the module must be bound with inputs_need_grad."""
        raise NotImplementedError

    def update(self) -> None:
        """Update the parameters by the optimizer from the gradients of the last backward run."""
        raise NotImplementedError

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Tell a metric the outputs of the last forward run and their labels.

        pre_sliced: labels is a list of the labels for each device.
        """
        raise NotImplementedError

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Make the executors for these shapes.

        data_shapes, label_shapes: lists of DataDesc or (name, shape). for_training: gradients are wanted;
        inputs_need_grad: those of the data too. force_rebind: also where the module is bound. shared_module: a module
        whose parameters and memory this one uses. grad_req: "write", "add" or "null", for all or by name.
        """
        raise NotImplementedError

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD_PARAMS,
                       force_init: bool = False) -> None:
        """Install an optimizer, given as one or by name and parameters; kvstore: what sums the devices' gradients."""
        raise NotImplementedError


def _metric_of(eval_metric: Any) -> Any:
    """A metric as it is, or one made of a name, a function or a list of these."""
    return eval_metric if isinstance(eval_metric, metric.EvalMetric) else metric.create(eval_metric)


def _call(callbacks: Any, param: BatchEndParam) -> None:
    for callback in _as_list(callbacks):
        callback(param)
