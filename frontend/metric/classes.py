"""Metrics of classes that are predicted, by scores of all classes."""
from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentIndexError, ArgumentTypeError
from mxc.compiler.ops.dtypes import widened
from mxc.metric.base import EvalMetric, Names, alias, check_label_shapes, checked, pairs, register
from mxc.ndarray.ndarray import NDArray, apply
from mxc.runtime import engine
from mxc.runtime.array import LARGE, Array


def _whole(values: np.ndarray) -> np.ndarray:
    """Numbers as classes, in one axis."""
    return values.ravel().astype("int32", copy=False)


def _best_class(pred: NDArray, axis: int | None) -> NDArray:
    """The class of the highest score, the first of equal ones."""
    if pred.ndim < 2 or axis not in (-1, pred.ndim - 1):
        return apply("argmax", [pred], {"axis": axis})
    scores, made = pred._array, Array.empty(pred.shape[:-1], "int32", pred.context)

    def choose() -> None:
        made.memory[...] = widened(scores.read()).argmax(axis=-1)

    engine.push(choose, (scores.variable,), (made.variable,), "argmax", scores.size < LARGE)
    return NDArray(made)


def _check_sizes(label: NDArray, pred: NDArray, name: str) -> None:
    if label.size != pred.size:
        raise ArgumentError(f"metric {name}: {label.size} labels, of shape {label.shape}, do not match {pred.size} "
                            f"predictions, of shape {pred.shape}")


@register
@alias("acc")
class Accuracy(EvalMetric):
    """The share of right predictions. axis: the axis of the classes' scores. A prediction with the label's shape holds
    no scores but classes."""

    def __init__(self, axis: int = 1, name: str = "accuracy", output_names: Names = None, label_names: Names = None):
        super().__init__(name, output_names, label_names, axis=axis, has_global_stats=True)
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in. Raises ArgumentError when labels and predictions are not equally many."""
        for label, pred in pairs(labels, preds):
            classes = pred if pred.shape == label.shape else _best_class(pred, self.axis)
            _check_sizes(label, classes, self.name)
            self._later(self._count, label, classes)

    def _count(self, label: np.ndarray, classes: np.ndarray) -> None:
        self._add(float((_whole(label) == _whole(classes)).sum()), label.size)


@register
@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The share of labels that are among the `top_k` classes of the highest scores; of equal scores the first count.
    The metric's name is NAME_K."""

    def __init__(self, top_k: int = 1, name: str = "top_k_accuracy", output_names: Names = None,
                 label_names: Names = None):
        if not isinstance(top_k, (int, np.integer)):
            raise ArgumentTypeError(f"top_k must be a whole number, got {top_k!r}")
        if top_k <= 1:
            raise ArgumentError(f"top_k must be larger than 1, got {top_k}; use Accuracy for the best class alone")
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k, has_global_stats=True)
        self.top_k = top_k

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in: scores of shape (samples, classes). Raises ArgumentError for another shape, for fewer
        classes than top_k, and for another number of labels."""
        for label, pred in pairs(labels, preds):
            check_label_shapes(label, pred)
            if pred.ndim != 2:
                raise ArgumentError(f"metric {self.name}: scores have the shape (samples, classes), got {pred.shape}")
            if pred.shape[1] < self.top_k:
                raise ArgumentError(f"metric {self.name}: there are only {pred.shape[1]} classes")
            if label.size != pred.shape[0]:
                raise ArgumentError(f"metric {self.name}: {label.size} labels, of shape {label.shape}, do not match "
                                    f"scores of shape {pred.shape}")
            self._later(self._count, label, pred)

    def _count(self, label: np.ndarray, pred: np.ndarray) -> None:
        classes, scores = _whole(label)[:, None], np.where(np.isnan(pred), np.inf, pred)
        own = np.take_along_axis(scores, np.clip(classes, 0, pred.shape[1] - 1).astype("int64"), axis=1)
        before = (scores > own) | ((scores == own) & (np.arange(pred.shape[1]) < classes))
        is_class = (classes >= 0) & (classes < pred.shape[1])
        self._add(float((is_class[:, 0] & (before.sum(axis=1) < self.top_k)).sum()), label.size)


class _Binary(EvalMetric):
    """A score of the classes 0 and 1, by how often each was predicted for each.

    average: "macro" for the mean of the batches' scores, otherwise the score of all batches together.
    """

    def __init__(self, name: str, output_names: Names, label_names: Names, average: str):
        self.average = average
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def reset(self) -> None:
        """Begin anew."""
        super().reset()
        self._counts, self._global_counts = np.zeros(4), np.zeros(4)

    def reset_local(self) -> None:
        """Begin anew; the global value stays."""
        super().reset_local()
        self._counts = np.zeros(4)

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in: scores with classes along axis 1. Raises ArgumentError for other shapes, or when more than
        two classes occur among the labels."""
        for label, pred in pairs(labels, preds):
            check_label_shapes(label, pred)
            if pred.ndim < 2:
                raise ArgumentError(f"metric {self.name}: scores have the shape (samples, classes), got {pred.shape}")
            classes = _best_class(pred, 1)
            try:
                np.broadcast_shapes(label.shape, classes.shape)
            except ValueError:
                raise ArgumentError(f"metric {self.name}: labels of shape {label.shape} do not match scores of shape "
                                    f"{pred.shape}") from None
            self._later(self._count, label, classes)
        self._later(self._close)

    def _count(self, label: np.ndarray, classes: np.ndarray) -> None:
        label, classes = label.astype("int32", copy=False), classes.astype("int32", copy=False)
        if not ((label == 0) | (label == 1)).all() and len(np.unique(label)) > 2:
            raise ArgumentError(f"metric {self.name} is for two classes, the labels have {len(np.unique(label))}")
        is_one, said = label == 1, classes == 1
        counts = [(said & is_one).sum(), (said & ~is_one).sum(), (~said & is_one).sum(), (~said & ~is_one).sum()]
        self._counts = self._counts + counts
        self._global_counts = self._global_counts + counts

    def _close(self) -> None:
        if self.average == "macro":
            self._add(self._score(*self._counts.tolist()), 1)
            self._counts = np.zeros(4)
        else:
            self._num_inst, self._global_num_inst = int(self._counts.sum()), int(self._global_counts.sum())
            self._sum_metric = self._score(*self._counts.tolist()) * self._num_inst
            self._global_sum_metric = self._score(*self._global_counts.tolist()) * self._global_num_inst

    def _score(self, true_ones: float, false_ones: float, false_zeros: float, true_zeros: float) -> float:
        raise NotImplementedError


@register
class F1(_Binary):
    """The harmonic mean of precision and recall of the class 1; 0 where both are 0."""

    def __init__(self, name: str = "f1", output_names: Names = None, label_names: Names = None,
                 average: str = "macro"):
        super().__init__(name, output_names, label_names, average)

    def _score(self, true_ones: float, false_ones: float, false_zeros: float, true_zeros: float) -> float:
        precision = true_ones / (true_ones + false_ones) if true_ones else 0.0
        recall = true_ones / (true_ones + false_zeros) if true_ones else 0.0
        return 2 * precision * recall / (precision + recall) if true_ones else 0.0


@register
class MCC(_Binary):
    """Matthews' correlation of two classes; 0 where one of them is never a label, or never predicted."""

    def __init__(self, name: str = "mcc", output_names: Names = None, label_names: Names = None,
                 average: str = "macro"):
        super().__init__(name, output_names, label_names, average)

    def _score(self, true_ones: float, false_ones: float, false_zeros: float, true_zeros: float) -> float:
        scale = ((true_ones + false_ones) * (true_ones + false_zeros) * (true_zeros + false_ones)
                 * (true_zeros + false_zeros))
        return (true_ones * true_zeros - false_ones * false_zeros) / math.sqrt(scale) if scale else 0.0


@register
class PCC(EvalMetric):
    """Matthews' correlation of any number of classes, of all batches together; NaN where all labels, or all
    predictions, are one class."""

    def __init__(self, name: str = "pcc", output_names: Names = None, label_names: Names = None,
                 has_global_stats: bool = True):
        self.k = 2
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    @property
    def sum_metric(self) -> float:  # type: ignore[override]
        """The value, times how many batches there were."""
        return _correlation(self.lcm) * self.num_inst

    @property
    def global_sum_metric(self) -> float:  # type: ignore[override]
        """The global value, times how many batches there were."""
        return _correlation(self.gcm) * self.global_num_inst

    @property
    def lcm(self) -> np.ndarray:
        """How often each class (row) was predicted for each (column), since `reset` or `reset_local`."""
        self._settle()
        return self._counts

    @property
    def gcm(self) -> np.ndarray:
        """How often each class (row) was predicted for each (column), since `reset`."""
        self._settle()
        return self._global_counts

    def reset(self) -> None:
        """Begin anew."""
        super().reset()
        self._counts, self._global_counts = np.zeros((self.k, self.k)), np.zeros((self.k, self.k))

    def reset_local(self) -> None:
        """Begin anew; the global value stays."""
        super().reset_local()
        self._counts = np.zeros((self.k, self.k))

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in: classes in the labels' shape, or their scores along axis 1. Raises ArgumentError when labels
        and predictions are not equally many."""
        for label, pred in pairs(labels, preds):
            check_label_shapes(label, pred)
            classes = pred if pred.shape == label.shape else _best_class(pred, 1)
            _check_sizes(label, classes, self.name)
            self._later(self._count, label, classes)
        self._later(lambda: self._add(0.0, 1))

    def _count(self, label: np.ndarray, classes: np.ndarray) -> None:
        label, classes = _whole(label).astype("int64"), _whole(classes).astype("int64")
        if not label.size:
            return
        grown = max(0, int(max(label.max(), classes.max())) + 1 - self.k)
        if min(label.min(), classes.min()) < -self.k - grown:
            raise ArgumentIndexError(f"metric {self.name}: the class {min(label.min(), classes.min())} is not one of "
                                     f"{self.k + grown}")
        if grown:
            self.k += grown
            self._counts, self._global_counts = (
                np.pad(c, (0, self.k - len(c))) for c in (self._counts, self._global_counts))
        for counts in (self._counts, self._global_counts):
            np.add.at(counts, (classes, label), 1)


def _correlation(counts: np.ndarray) -> float:
    total, said, real = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    spread = float((said * (total - said)).sum()) * float((real * (total - real)).sum())
    return float((total * counts.diagonal() - said * real).sum()) / math.sqrt(spread) if spread else math.nan


class _LogLikelihood(EvalMetric):
    """The mean of -log(probability of the label's class + eps)."""

    def __init__(self, eps: float, name: str, output_names: Names, label_names: Names):
        super().__init__(name, output_names, label_names, eps=eps, has_global_stats=True)
        self.eps = eps

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in: probabilities of shape (samples, classes). A negative label counts from the last class.

        Raises ArgumentError for another number of labels, ArgumentIndexError, an IndexError, for one that is no class.
        """
        for label, pred in pairs(labels, preds):
            if not pred.shape or label.size != pred.shape[0]:
                raise ArgumentError(f"metric {self.name}: {label.size} labels, of shape {label.shape}, do not match "
                                    f"probabilities of shape {pred.shape}")
            if pred.ndim < 2:
                raise ArgumentIndexError(f"metric {self.name}: probabilities have the shape (samples, classes), got "
                                         f"{pred.shape}")
            self._later(self._count, label, pred)

    def _count(self, label: np.ndarray, pred: np.ndarray) -> None:
        classes = label.ravel().astype("int64", copy=False)
        wrong = classes[(classes < -pred.shape[1]) | (classes >= pred.shape[1])]
        if wrong.size:
            raise ArgumentIndexError(f"metric {self.name}: the label {wrong[0]} is none of {pred.shape[1]} classes")
        found = pred[np.arange(len(classes)), classes]
        self._add(float((-np.log(found + self.eps)).sum()), len(classes))


@register
@alias("ce")
class CrossEntropy(_LogLikelihood):
    """The cross entropy of the classes' probabilities, by natural logarithms. eps: added to each probability."""

    def __init__(self, eps: float = 1e-12, name: str = "cross-entropy", output_names: Names = None,
                 label_names: Names = None):
        super().__init__(eps, name, output_names, label_names)


@register
@alias("nll_loss")
class NegativeLogLikelihood(_LogLikelihood):
    """The mean negative logarithm of the labels' probabilities. eps: added to each probability."""

    def __init__(self, eps: float = 1e-12, name: str = "nll-loss", output_names: Names = None,
                 label_names: Names = None):
        super().__init__(eps, name, output_names, label_names)


@register
class Perplexity(EvalMetric):
    """The exponential of the mean negative logarithm of the labels' probabilities.

    ignore_label: a label that is left out, such as that of padding; None for none. axis: the axis of the classes.
    """

    def __init__(self, ignore_label: int | None, axis: int = -1, name: str = "perplexity", output_names: Names = None,
                 label_names: Names = None):
        if not (ignore_label is None or isinstance(ignore_label, numbers.Real)):
            raise ArgumentTypeError(f"ignore_label must be a number or None, got {ignore_label!r}")
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, has_global_stats=True)
        self.ignore_label, self.axis = ignore_label, axis

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in: lists of labels and of probabilities, or arrays whose rows are these. Raises ArgumentError
        when labels and probabilities do not match."""
        check_label_shapes(labels, preds)
        batch = [(checked(label), checked(pred)) for label, pred in zip(labels, preds, strict=True)]
        for label, pred in batch:
            if label.size * pred.shape[-1] != pred.size:
                raise ArgumentError(f"metric {self.name}: {label.size} labels, of shape {label.shape}, do not match "
                                    f"probabilities of shape {pred.shape}")
        for label, pred in batch:
            found = apply("pick", [pred, label.reshape((label.size,))], {"axis": self.axis})
            self._later(self._count, label, found)

    def _count(self, label: np.ndarray, found: np.ndarray) -> None:
        count: float = found.size
        if self.ignore_label is not None:
            ignored = (label.reshape(found.shape) == self.ignore_label).astype(found.dtype)
            count -= float(ignored.sum())
            found = found * (1 - ignored) + ignored
        self._add(-float(np.log(np.maximum(found, found.dtype.type(1e-10))).sum()), count)

    def get(self) -> tuple[str, float]:
        """Name and value."""
        return self.name, _exponential(super().get()[1])

    def get_global(self) -> tuple[str, float]:
        """Name and value since `reset`."""
        return self.name, _exponential(super().get_global()[1])


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
