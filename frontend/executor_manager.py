"""What splits batches over devices and runs an executor on each; programs use modules, which do the same."""
from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mxc.compiler.error import ArgumentError
from mxc.io.slices import _split_input_slice as _split_input_slice  # where MXNet's programs find it


def _check_arguments(symbol: Any) -> None:
    """Raise ValueError when two arguments, or two auxiliary states, have one name: arrays are given by name."""
    for kind, names in (("argument", symbol.list_arguments()), ("auxiliary param", symbol.list_auxiliary_states())):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ArgumentError(f'Find duplicated {kind} name "{twice[0]}", please make the weight name non-duplicated '
                                f"(using name arguments), {kind}s are {names}")


class DataParallelExecutorManager:
    """Executors of a symbol on several devices, each for a part of every batch.

    symbol: what is run. ctx: the devices. train_data: an iterator, whose shapes are bound. arg_names, param_names,
    aux_names: of the symbol; found there when they are None. work_load_list: the part of each device, in proportion.
    sym_gen: a function that gives the symbol of a bucket key; batches then have keys.
    """

    # MXNet's signature
    def __init__(self, symbol: Any, ctx: Sequence[Any], train_data: Any, arg_names: Sequence[str] | None = None,
                 param_names: Sequence[str] | None = None, aux_names: Sequence[str] | None = None,
                 work_load_list: Sequence[float] | None = None, logger: Any = None, sym_gen: Any = None):
        _check_arguments(symbol)
        inputs = {desc[0] for desc in (*train_data.provide_data, *(train_data.provide_label or ()))}
        self.arg_names = list(arg_names) if arg_names is not None else symbol.list_arguments()
        self.param_names = (list(param_names) if param_names is not None
                            else [name for name in self.arg_names if name not in inputs])
        self.aux_names = list(aux_names) if aux_names is not None else symbol.list_auxiliary_states()
        self.ctx, self.symbol, self.sym_gen = list(ctx), symbol, sym_gen
        self._loads = list(work_load_list) if work_load_list is not None else [1.0] * len(self.ctx)
        if len(self._loads) != len(self.ctx):
            raise ArgumentError(f"work_load_list has {len(self._loads)} loads for {len(self.ctx)} devices")
        self._logger = logger if logger is not None else logging
        self._monitor: Any = None
        self._first = self._current = self._bound(symbol, train_data, None)
        self.slices = self._first.slices
        self._by_key = {train_data.default_bucket_key: self._first} if sym_gen is not None else {}
        self._batch: Any = None

    def _bound(self, symbol: Any, source: Any, relative: Any) -> Any:
        from mxc.module.checks import parse_data_desc
        from mxc.module.executor_group import DataParallelExecutorGroup

        data = [desc[0] for desc in source.provide_data]
        labels = [desc[0] for desc in source.provide_label or ()]
        descriptions = parse_data_desc(data, labels, source.provide_data, source.provide_label or None)
        return DataParallelExecutorGroup(symbol, self.ctx, self._loads, *descriptions, self.param_names, True, False,
                                         relative, self._logger)

    def install_monitor(self, monitor: Any) -> None:
        """Let a Monitor see the executors' values."""
        self._monitor = monitor
        self._first.install_monitor(monitor)

    def set_params(self, arg_params: Any, aux_params: Any) -> None:
        """Copy values to the parameters and states of every device."""
        for group in {id(g): g for g in (self._first, *self._by_key.values())}.values():
            group.set_params(arg_params, aux_params, allow_extra=True)

    def copy_to(self, arg_params: Any, aux_params: Any) -> None:
        """Write the parameters and states, means over the devices, to the arrays of these dicts."""
        self._first.get_params(arg_params, aux_params)

    @property
    def param_arrays(self) -> list[Any]:
        """For each parameter the arrays of the devices."""
        return self._first.param_arrays

    @property
    def grad_arrays(self) -> list[Any]:
        """For each parameter the gradients of the devices."""
        return self._first.grad_arrays

    @property
    def aux_arrays(self) -> list[Any]:
        """For each auxiliary state the arrays of the devices."""
        return self._first.aux_arrays

    def load_data_batch(self, data_batch: Any) -> None:
        """Take the batch that the next run is for."""
        if self.sym_gen is not None:
            key = data_batch.bucket_key
            if key not in self._by_key:
                group = self._by_key[key] = self._bound(self.sym_gen(key), data_batch, self._first)
                if self._monitor is not None:
                    group.install_monitor(self._monitor)
            self._current = self._by_key[key]
        self._batch = data_batch

    def forward(self, is_train: bool = False) -> None:
        """Compute the outputs for the batch that was taken."""
        self._current.forward(self._batch, is_train)

    def backward(self) -> None:
        """Compute the gradients."""
        self._current.backward()

    def update_metric(self, metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Tell a metric the outputs and their labels."""
        self._current.update_metric(metric, labels, pre_sliced)
