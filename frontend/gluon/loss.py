"""Losses: blocks that give one number for each example."""
from __future__ import annotations

import math
from typing import Any

from mxc.compiler.error import AssertedError
from mxc.gluon.hybrid_block import HybridBlock
from mxc.ndarray import NDArray
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {}, {
    "": "ndarray=mxc.ndarray np=numpy", "mxc.base": "numeric_types", "mxc.util": "is_np_array"})
__all__ = ["CTCLoss", "CosineEmbeddingLoss", "HingeLoss", "HuberLoss", "KLDivLoss", "L1Loss", "L2Loss",
           "LogisticLoss", "Loss", "PoissonNLLLoss", "SDMLLoss", "SigmoidBCELoss", "SigmoidBinaryCrossEntropyLoss",
           "SoftmaxCELoss", "SoftmaxCrossEntropyLoss", "SquaredHingeLoss", "TripletLoss"]


def _apply_weighting(F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """The loss times the weights of examples, which are broadcast, and times a number."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is not None:
        if not isinstance(weight, (int, float)):
            raise AssertedError(f"weight is a number, got {type(weight).__name__}")
        loss = loss * weight
    return loss


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    """x in the shape of y."""
    return x.reshape(y.shape) if isinstance(y, NDArray) else F.reshape_like(x, y)


def _logistic(F: Any, x: Any) -> Any:
    """log(1 + exp(-|x|)), which does not overflow."""
    return F.Activation(-F.abs(x), act_type="softrelu")


class Loss(HybridBlock):
    """A loss. weight: a number that it is multiplied by. batch_axis: of the examples; over the others is the mean."""

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._weight, self._batch_axis = weight, batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def _mean(self, F: Any, loss: Any) -> Any:
        return F.mean(loss, axis=self._batch_axis, exclude=True)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The loss; a subclass says it."""
        raise NotImplementedError


class L2Loss(Loss):
    """weight / 2 * (label - pred)^2."""

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        loss = F.square(_reshape_like(F, label, pred) - pred)
        assert self._weight is not None
        return self._mean(F, _apply_weighting(F, loss, self._weight / 2, sample_weight))


class L1Loss(Loss):
    """|label - pred|."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        loss = F.abs(_reshape_like(F, label, pred) - pred)
        return self._mean(F, _apply_weighting(F, loss, self._weight, sample_weight))


class SigmoidBinaryCrossEntropyLoss(Loss):
    """-label log(p) - (1 - label) log(1 - p), where p is sigmoid(pred), or pred itself with from_sigmoid.

    pos_weight: what the first term is multiplied by.
    """

    def __init__(self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        """See the class."""
        label = _reshape_like(F, label, pred)
        if not self._from_sigmoid:
            if pos_weight is None:
                loss = F.relu(pred) - pred * label + _logistic(F, pred)
            else:
                factor = 1 + F.broadcast_mul(pos_weight - 1, label)
                loss = pred - pred * label + factor * (_logistic(F, pred) + F.relu(-pred))
        else:
            eps = 1e-12  # keeps the logarithm finite
            positive = F.log(pred + eps) * label
            if pos_weight is not None:
                positive = F.broadcast_mul(positive, pos_weight)
            loss = -(positive + F.log(1. - pred + eps) * (1. - label))
        return self._mean(F, _apply_weighting(F, loss, self._weight, sample_weight))


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """The negative logarithm of the probability that softmax(pred) gives the label.

    axis: of the classes. sparse_label: labels are numbers of classes; else probabilities of each. from_logits: pred are
    logarithms of probabilities already.
    """

    def __init__(self, axis: int = -1, sparse_label: bool = True, from_logits: bool = False,
                 weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._axis, self._sparse_label, self._from_logits = axis, sparse_label, from_logits

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        if self._sparse_label:
            loss = -F.pick(pred, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(pred * _reshape_like(F, label, pred), axis=self._axis, keepdims=True)
        return self._mean(F, _apply_weighting(F, loss, self._weight, sample_weight))


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """label * (log(label) - pred), its sum over all axes but the batch's. pred are logarithms of probabilities, or with
    from_logits=False what softmax makes probabilities of along `axis`."""

    def __init__(self, from_logits: bool = True, axis: int = -1, weight: float | None = None, batch_axis: int = 0,
                 **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._axis = from_logits, axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        if not self._from_logits:
            pred = F.log_softmax(pred, self._axis)
        loss = _apply_weighting(F, label * (F.log(label + 1e-12) - pred), self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


class CTCLoss(Loss):
    """Connectionist temporal classification: label sequences against sequences of predictions, not aligned.

    layout: "NTC" or "TNC", of the predictions (unnormalized); label_layout: "NT" or "TN". Labels are numbers from 0;
    the last class is the blank; padding is -1. Raises AssertionError for other layouts.
    """

    def __init__(self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None, **kwargs: Any):
        if layout not in ("NTC", "TNC"):
            raise AssertedError(f"layout is {layout!r}; expected 'NTC' or 'TNC'")
        if label_layout not in ("NT", "TN"):
            raise AssertedError(f"label_layout is {label_layout!r}; expected 'NT' or 'TN'")
        self._layout, self._label_layout = layout, label_layout
        super().__init__(weight, label_layout.find("N"), **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, pred_lengths: Any = None, label_lengths: Any = None,
                       sample_weight: Any = None) -> Any:
        """See the class. pred_lengths, label_lengths: of each example, where it is shorter than the arrays."""
        if self._layout == "NTC":
            pred = F.swapaxes(pred, 0, 1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, 0, 1)
        lengths = [length for length in (pred_lengths, label_lengths) if length is not None]
        loss = F.CTCLoss(pred, label, *lengths, use_data_lengths=pred_lengths is not None,
                         use_label_lengths=label_lengths is not None, blank_label="last")
        return _apply_weighting(F, loss, self._weight, sample_weight)


class HuberLoss(Loss):
    """(label - pred)^2 / (2 rho) up to a distance of rho, and the distance less rho / 2 beyond."""

    def __init__(self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        distance = F.abs(_reshape_like(F, label, pred) - pred)
        loss = F.where(distance > self._rho, distance - 0.5 * self._rho, (0.5 / self._rho) * F.square(distance))
        return self._mean(F, _apply_weighting(F, loss, self._weight, sample_weight))


class HingeLoss(Loss):
    """max(0, margin - pred * label), for labels -1 and 1."""

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        loss = F.relu(self._margin - pred * _reshape_like(F, label, pred))
        return self._mean(F, _apply_weighting(F, loss, self._weight, sample_weight))


class SquaredHingeLoss(HingeLoss):
    """max(0, margin - pred * label)^2, for labels -1 and 1."""

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        loss = F.square(F.relu(self._margin - pred * _reshape_like(F, label, pred)))
        return self._mean(F, _apply_weighting(F, loss, self._weight, sample_weight))


class LogisticLoss(Loss):
    """log(1 + exp(-pred * label)). label_format: "signed" for labels -1 and 1, "binary" for 0 and 1.

    Raises ValueError for another format.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._label_format = label_format
        if label_format not in ("signed", "binary"):
            raise ValueError(f"label_format is {label_format!r}; expected 'signed' or 'binary'")

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        label = _reshape_like(F, label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = F.relu(pred) - pred * label + _logistic(F, pred)
        return self._mean(F, _apply_weighting(F, loss, self._weight, sample_weight))


class TripletLoss(Loss):
    """max(0, |positive - pred|^2 - |negative - pred|^2 + margin), squares summed over all axes but the batch's."""

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any) -> Any:
        """See the class."""
        distance = F.square(_reshape_like(F, positive, pred) - pred) - F.square(_reshape_like(F, negative, pred) - pred)
        loss = F.relu(F.sum(distance, axis=self._batch_axis, exclude=True) + self._margin)
        return _apply_weighting(F, loss, self._weight)


class PoissonNLLLoss(Loss):
    """The negative logarithm of the likelihood of `target` under Poisson distributions: exp(pred) - target * pred, or
    with from_logits=False pred - target * log(pred + epsilon); its mean over everything.

    compute_full: with Stirling's approximation of the term that does not depend on pred, for targets above 1.
    """

    def __init__(self, weight: float | None = None, from_logits: bool = True, batch_axis: int = 0,
                 compute_full: bool = False, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits, self._compute_full = from_logits, compute_full

    def hybrid_forward(self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-8) -> Any:
        """See the class."""
        target = _reshape_like(F, target, pred)
        loss = F.exp(pred) - target * pred if self._from_logits else pred - target * F.log(pred + epsilon)
        if self._compute_full:
            stirling = target * F.log(target) - target + 0.5 * F.log(2 * target * math.pi)
            loss = loss + stirling * (target > 1)
        return F.mean(_apply_weighting(F, loss, self._weight, sample_weight))


class CosineEmbeddingLoss(Loss):
    """1 - cos(input1, input2) where the label is 1, and max(0, cos(input1, input2) - margin) where it is -1."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        """See the class."""
        input1 = _reshape_like(F, input1, input2)
        cosine, label = self._cosine(F, input1, input2), F.reshape(label, shape=(-1, 1))
        apart = F.broadcast_maximum(F.zeros((1, 1)), cosine - self._margin)
        loss = F.where(label == 1, 1 - cosine, apart)
        return _apply_weighting(F, loss, self._weight, sample_weight)

    @staticmethod
    def _cosine(F: Any, x: Any, y: Any, axis: int = -1) -> Any:
        x_norm = F.norm(x, axis=axis).reshape((-1, 1))
        y_norm = F.norm(y, axis=axis).reshape((-1, 1))
        product = F.sum(x * y, axis=axis).reshape((-1, 1))
        return product / F.broadcast_maximum(x_norm * y_norm, F.full((1, 1), 1e-12))


class SDMLLoss(Loss):
    """Batchwise smoothed deep metric learning (arXiv 1905.12786): pairs in the same row belong together, and the rest
    of the batch does not.

    smoothing_parameter: the probability that is spread over the rest.
    """

    def __init__(self, smoothing_parameter: float = 0.3, weight: float | None = 1.0, batch_axis: int = 0,
                 **kwargs: Any):
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        """See the class."""
        count = x1.shape[0]
        distances = F.sum(F.square(F.broadcast_sub(F.expand_dims(x1, 1), F.expand_dims(x2, 0))), axis=2)
        own = F.one_hot(F.arange(count), count)
        labels = own * (1 - self.smoothing_parameter) + (1 - own) * self.smoothing_parameter / (count - 1)
        return self.kl_loss(F.log_softmax(-distances, axis=1), labels)
