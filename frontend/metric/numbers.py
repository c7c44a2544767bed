"""Metrics of numbers that are predicted, of losses, and of a program's own function."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from mxc.compiler.error import ArgumentError, ArgumentTypeError
from mxc.compiler.ops.dtypes import widened
from mxc.metric.base import EvalMetric, Names, alias, check_label_shapes, checked, pairs, plain, register
from mxc.ndarray.ndarray import NDArray, apply


def _column(values: numpy.ndarray) -> numpy.ndarray:
    return values.reshape(-1, 1) if values.ndim == 1 else values


class _Difference(EvalMetric):
    """The mean over batches of a number that `_mean` computes from a batch's differences."""

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in: arrays of numbers, where a vector is a column. Raises ArgumentError when the shapes do not
        broadcast."""
        for label, pred in pairs(labels, preds):
            shapes = [(*array.shape, 1) if array.ndim == 1 else array.shape for array in (label, pred)]
            try:
                numpy.broadcast_shapes(*shapes)
            except ValueError:
                raise ArgumentError(f"metric {self.name}: labels of shape {label.shape} and predictions of shape "
                                    f"{pred.shape} have no difference") from None
            self._later(self._take, label, pred)

    def _take(self, label: numpy.ndarray, pred: numpy.ndarray) -> None:
        self._add(float(self._mean(_column(label) - _column(pred))), 1)

    def _mean(self, difference: numpy.ndarray) -> Any:
        raise NotImplementedError


@register
class MAE(_Difference):
    """The mean absolute error."""

    def __init__(self, name: str = "mae", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _mean(self, difference: numpy.ndarray) -> Any:
        return numpy.abs(difference).mean()


@register
class MSE(_Difference):
    """The mean squared error."""

    def __init__(self, name: str = "mse", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _mean(self, difference: numpy.ndarray) -> Any:
        return (difference ** 2.0).mean()


@register
class RMSE(_Difference):
    """The root of the mean squared error of each batch."""

    def __init__(self, name: str = "rmse", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _mean(self, difference: numpy.ndarray) -> Any:
        return numpy.sqrt((difference ** 2.0).mean())


@register
@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation of labels and predictions, which have equal shapes.

    average: "macro" for the mean over batches, "micro" for the correlation over all elements since `reset` or
    `reset_micro`, whatever `reset_local` does. It is NaN where all labels or all predictions are equal.
    """

    def __init__(self, name: str = "pearsonr", output_names: Names = None, label_names: Names = None,
                 average: str = "macro"):
        if average not in ("macro", "micro"):
            raise ArgumentError(f"average must be 'macro' or 'micro', got {average!r}")
        self.average = average
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def reset_micro(self) -> None:
        """Forget all elements."""
        self._settle()
        self._pred_nums = self._label_nums = 0  # how many elements there were
        self._mean_p = self._mean_l = 0.0
        self._sse_p = self._sse_l = self._conv = 0.0  # sums of squares, and of products, of distances from the means

    def reset(self) -> None:
        """Begin anew."""
        self.reset_micro()
        super().reset()

    def update_variance(self, new_values: Any, *aggregate: Any) -> tuple[int, float, float]:
        """(count, mean, sum of squared distances from the mean) of some elements and new ones. aggregate: these three
        for the elements without the new ones."""
        count, mean, squares = aggregate
        values = numpy.asarray(new_values, "float64")
        total = count + values.size
        center = float(values.mean())
        squares += float(((values - center) ** 2).sum()) + (center - mean) ** 2 * count * values.size / total
        return total, float(mean + (center - mean) * values.size / total), squares

    def update_cov(self, label: Any, pred: Any) -> None:
        """Add the elements' products of distances from the means; the means are those of the elements before."""
        label, pred = numpy.asarray(label, "float64"), numpy.asarray(pred, "float64")
        old, new = self._label_nums, label.size
        center_l, center_p = float(label.mean()), float(pred.mean())
        self._conv += float(((label - center_l) * (pred - center_p)).sum())
        self._conv += (center_l - self._mean_l) * (center_p - self._mean_p) * old * new / (old + new)

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in. Raises ArgumentError when the shapes differ."""
        for label, pred in pairs(labels, preds):
            check_label_shapes(label, pred, False, True)
            self._later(self._take_all if self.average == "micro" else self._take_batch, label, pred)

    def _take_batch(self, label: numpy.ndarray, pred: numpy.ndarray) -> None:
        self._add(float(numpy.corrcoef(pred.ravel(), label.ravel())[0, 1]) if label.size > 1 else math.nan, 1)

    def _take_all(self, label: numpy.ndarray, pred: numpy.ndarray) -> None:
        self._add(0.0, 1)
        if not label.size:
            return
        self.update_cov(label, pred)
        self._label_nums, self._mean_l, self._sse_l = self.update_variance(
            label, self._label_nums, self._mean_l, self._sse_l)
        self._pred_nums, self._mean_p, self._sse_p = self.update_variance(
            pred, self._pred_nums, self._mean_p, self._sse_p)

    def get(self) -> tuple[str, float]:
        """Name and value."""
        return super().get() if self.average == "macro" else (self.name, self._correlation(self.num_inst))

    def get_global(self) -> tuple[str, float]:
        """Name and value since `reset`."""
        return super().get_global() if self.average == "macro" else (self.name, self._correlation(self.global_num_inst))

    def _correlation(self, count: int) -> float:
        scale = self._sse_p * self._sse_l
        return self._conv / math.sqrt(scale) if count and scale > 0 else math.nan


@register
class Loss(EvalMetric):
    """The mean of all outputs' elements, for networks whose outputs are losses. Labels are not looked at."""

    def __init__(self, name: str = "loss", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _: Any, preds: Any) -> None:
        """Take a batch in."""
        if not isinstance(preds, (NDArray, list, tuple)):
            raise ArgumentTypeError(f"outputs are arrays or lists of arrays, got {preds!r}")
        for pred in [preds] if isinstance(preds, NDArray) else preds:
            count = checked(pred).size
            if count:
                total = apply("sum", [pred], {})
                self._later(lambda total, count=count: self._add(float(total.ravel()[0]), count), total)


@register
class Torch(Loss):
    """Loss under another name."""

    def __init__(self, name: str = "torch", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names)


@register
class Caffe(Loss):
    """Loss under another name."""

    def __init__(self, name: str = "caffe", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names)


@register
class CustomMetric(EvalMetric):
    """A function of label and prediction, as NumPy arrays: it gives a number for a batch, or (sum, count).

    name: by default the function's. allow_extra_outputs: outputs behind the last label are left out; otherwise there is
    a label for each.
    """

    def __init__(self, feval: Callable[[numpy.ndarray, numpy.ndarray], Any], name: str | None = None,
                 allow_extra_outputs: bool = False, output_names: Names = None, label_names: Names = None):
        if not callable(feval):
            raise ArgumentTypeError(f"feval must be a function of label and prediction, got {feval!r}")
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            name = f"custom({name})" if "<" in name else name
        super().__init__(name, output_names, label_names, has_global_stats=True)
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in. This waits for the batch's values, because the function is called now."""
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds, strict=False):
            found = self._feval(*(widened(checked(each).asnumpy()) for each in (label, pred)))
            value, count = found if isinstance(found, tuple) else (found, 1)
            self._settle()
            self._add(plain(value), plain(count))

    def get_config(self) -> dict[str, Any]:
        """Raises NotImplementedError: no text can say how to make the function again."""
        raise NotImplementedError(f"{self.name}: a function cannot be told in a configuration")


def np(numpy_feval: Callable[[numpy.ndarray, numpy.ndarray], Any], name: str | None = None,
       allow_extra_outputs: bool = False) -> CustomMetric:
    """The metric of a function of label and prediction, as NumPy arrays; see CustomMetric."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
