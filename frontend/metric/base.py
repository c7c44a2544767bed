"""What all metrics share: names, sums and counts, and how they are kept without waiting for each batch.

The work of `update` on a batch's values goes through the engine, like that of operators: it is done when the arrays
have their values, and code that asks for a sum or a count waits for it. Errors of shapes and types are raised by the
call. Errors of values, such as a label that is no class, are raised by the call if the values are there, or else by the
next call on the metric.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mxc import registry
from mxc.compiler.error import ArgumentError, ArgumentKeyError, ArgumentTypeError, nearest
from mxc.compiler.ops.dtypes import widened
from mxc.ndarray.ndarray import NDArray
from mxc.runtime import engine
from mxc.runtime.array import LARGE

Work = Callable[..., None]
Names = Sequence[str] | None  # names of outputs or labels; None for all


class _Number:
    """A sum or a count of a metric: to read or to set it waits for the work on batches that is under way.

    It is read as NumPy's float64, so that a program's sum with a float32 is a float64; with Python's float it would be
    a float32.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = f"_{name}"

    def __get__(self, metric: EvalMetric | None, owner: type | None = None) -> Any:
        if metric is None:
            return self
        metric._settle()
        value = getattr(metric, self.slot)
        return np.float64(value) if type(value) is float else value

    def __set__(self, metric: EvalMetric, value: Any) -> None:
        metric._settle()
        setattr(metric, self.slot, plain(value))


def plain(value: Any) -> Any:
    """A number of NumPy as one of Python; sums are kept in these."""
    return value.item() if isinstance(value, np.generic) else value


class EvalMetric:
    """A metric. Derived classes have `update`, which adds to `sum_metric` and `num_inst`; the value is their quotient.

    name: what the value is called. output_names, label_names: which outputs and labels `update_dict` takes, in this
    order; None for all. has_global_stats: derived classes whose `update` also adds to `global_sum_metric` and
    `global_num_inst`, which `reset_local` leaves as they are. Other keywords are kept for `get_config`.
    """

    sum_metric, num_inst, global_sum_metric, global_num_inst = _Number(), _Number(), _Number(), _Number()
    _sum_metric: Any = 0.0
    _num_inst: Any = 0
    _global_sum_metric: Any = 0.0
    _global_num_inst: Any = 0
    _variable: engine.Variable | None = None  # the engine's variable that all work on this metric's numbers writes
    _failure: Exception | None = None  # the error that work has raised, until a call raises it

    def __init__(self, name: str, output_names: Names = None, label_names: Names = None, **kwargs: Any):
        self.name = str(name)
        self.output_names, self.label_names = output_names, label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self._variable = engine.Variable()
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """The arguments of which `create(**config)` makes such a metric."""
        return {**self._kwargs, "metric": type(self).__name__, "name": self.name, "output_names": self.output_names,
                "label_names": self.label_names}

    def update_dict(self, label: Mapping[str, NDArray], pred: Mapping[str, NDArray]) -> None:
        """Take a batch in: `update` with the labels and outputs that the metric's names choose. Raises
        ArgumentKeyError, a KeyError, when one of them is not there."""
        self.update(self._chosen("label", label, self.label_names), self._chosen("output", pred, self.output_names))

    def _chosen(self, kind: str, given: Mapping[str, NDArray], names: Names) -> list[NDArray]:
        missing = [name for name in names or () if name not in given]
        if missing:
            raise ArgumentKeyError(f"metric {self.name}: there is no {kind} {missing[0]!r}; there are "
                                   f"{', '.join(given) or 'none'}{nearest(missing[0], given)}")
        return list(given.values()) if names is None else [given[name] for name in names]

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in; derived classes define this. labels, preds: lists of arrays, or one array each."""
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def reset(self) -> None:
        """Begin anew."""
        self._settle()
        self._sum_metric, self._num_inst = 0.0, 0
        self._global_sum_metric, self._global_num_inst = 0.0, 0

    def reset_local(self) -> None:
        """Begin anew; the global value stays."""
        self._settle()
        self._sum_metric, self._num_inst = 0.0, 0

    def get(self) -> tuple[Any, Any]:
        """Name and value since `reset` or `reset_local`: NaN when there was nothing."""
        count = self.num_inst
        return self.name, plain(self.sum_metric / count) if count else math.nan

    def get_global(self) -> tuple[Any, Any]:
        """Name and value since `reset`; the same as `get` for a metric that keeps no global value."""
        if not self._has_global_stats:
            return self.get()
        count = self.global_num_inst
        return self.name, plain(self.global_sum_metric / count) if count else math.nan

    def get_name_value(self) -> list[tuple[str, Any]]:
        """(name, value) of each value of `get`."""
        return _paired(self.get())

    def get_global_name_value(self) -> list[tuple[str, Any]]:
        """(name, value) of each value of `get_global`."""
        return _paired(self.get_global())

    # -- for derived classes here

    def _add(self, value: float, count: float) -> None:
        """Add to the sums and to the counts. Only work (see `_later`) calls this."""
        self._sum_metric += value
        self._global_sum_metric += value
        self._num_inst += count
        self._global_num_inst += count

    def _later(self, work: Work, *arrays: NDArray) -> None:
        """Call `work` with the values of these arrays as soon as they are there; it must not change them. After an
        error nothing is counted until a call has raised it."""
        if self._failure is not None:
            self._settle()
        if self._variable is None:
            self._variable = engine.Variable()
        inputs = [array._array for array in arrays]

        def run() -> None:
            if self._failure is None:
                try:
                    with np.errstate(all="ignore"):
                        work(*[widened(array.read()) for array in inputs])
                except Exception as error:
                    self._failure = error

        engine.push(run, [self._variable, *(array.variable for array in inputs)], (self._variable,), "metric",
                    all(array.size < LARGE for array in inputs))
        if self._failure is not None:
            self._settle()

    def _settle(self) -> None:
        """Return when all work on this metric is done; raises what it has raised."""
        if self._variable is not None and self._variable.busy is not None:
            try:
                engine.wait_to_read(self._variable)
            except Exception:  # The work that should have computed the batch failed, so the batch is left out.
                self._variable = None
                raise
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return {**self.__dict__, "_variable": None}


def _paired(found: tuple[Any, Any]) -> list[tuple[str, Any]]:
    name, value = found
    return list(zip(name if isinstance(name, list) else [name], value if isinstance(value, list) else [value],
                    strict=False))


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Check that labels and predictions are equally many, or with `shape` that these two arrays have equal shapes.

    Returns both; with `wrap` each in a list where it is one array. Raises ArgumentError, a ValueError, when they
    differ.
    """
    if shape:
        if labels.shape != preds.shape:
            raise ArgumentError(f"labels and predictions must have equal shapes, got {labels.shape} and {preds.shape}")
    else:
        for given in (labels, preds):
            if not hasattr(given, "__len__"):
                raise ArgumentTypeError(f"labels and predictions are arrays or lists of arrays, got {given!r}")
        if len(labels) != len(preds):
            raise ArgumentError(f"each prediction needs a label: there are {len(labels)} labels and {len(preds)} "
                                "predictions")
    if wrap:
        labels, preds = ([given] if isinstance(given, NDArray) else given for given in (labels, preds))
    return labels, preds


def pairs(labels: Any, preds: Any) -> Iterator[tuple[NDArray, NDArray]]:
    """Label and prediction of each output. Raises ArgumentError when they are not equally many, ArgumentTypeError where
    one is no array."""
    labels, preds = check_label_shapes(labels, preds, True)
    return ((checked(label), checked(pred)) for label, pred in zip(labels, preds, strict=True))


def checked(array: Any) -> NDArray:
    """The array, dense. Raises ArgumentTypeError for anything else."""
    if not isinstance(array, NDArray):
        raise ArgumentTypeError(f"metrics take NDArrays, got {type(array).__name__}")
    return array if array.stype == "default" else array.tostype("default")


register = registry.get_register_func(EvalMetric, "metric")
alias = registry.get_alias_func(EvalMetric, "metric")
create_by_name = registry.get_create_func(EvalMetric, "metric")
