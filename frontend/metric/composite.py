"""Several metrics as one, and metrics from whatever stands for them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mxc.compiler.error import ArgumentError
from mxc.metric.base import EvalMetric, Names, alias, create_by_name, register
from mxc.metric.numbers import CustomMetric


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """The metric that `metric` stands for: its name, a metric itself, a function of label and prediction for
    CustomMetric, or a list of these for CompositeEvalMetric.

    Other arguments are the constructor's. Raises ArgumentError, a ValueError, for a name that no metric has.
    """
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, list):
        made = CompositeEvalMetric()
        for part in metric:
            made.add(create(part, *args, **kwargs))
        return made
    return create_by_name(metric, *args, **kwargs)


@register
@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics, each updated with every batch. metrics: a list of what `create` takes.

    output_names, label_names: the only outputs and labels that `update_dict` shows them; None for all.
    """

    def __init__(self, metrics: Sequence[Any] | None = None, name: str = "composite",
                 output_names: Names = None, label_names: Names = None):
        self.metrics: list[EvalMetric] = [create(metric) for metric in metrics or ()]
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def add(self, metric: Any) -> None:
        """Add a metric, given as anything that `create` takes."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric of that place. Raises ArgumentError, a ValueError, where there is none."""
        try:
            return self.metrics[index]
        except IndexError:
            raise ArgumentError(f"there is no metric {index}: there are {len(self.metrics)}") from None

    def update_dict(self, labels: Mapping[str, Any], preds: Mapping[str, Any]) -> None:
        """Take a batch in; each metric chooses labels and outputs by its own names."""
        if self.label_names is not None:
            labels = {name: label for name, label in labels.items() if name in self.label_names}
        if self.output_names is not None:
            preds = {name: pred for name, pred in preds.items() if name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def update(self, labels: Any, preds: Any) -> None:
        """Take a batch in."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        """Begin anew with all metrics."""
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        """Begin anew with all metrics; their global values stay."""
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> tuple[list[str], list[Any]]:
        """Names and values of all metrics."""
        return _joined([metric.get() for metric in self.metrics])

    def get_global(self) -> tuple[list[str], list[Any]]:
        """Names and global values of all metrics."""
        return _joined([metric.get_global() for metric in self.metrics])

    def get_config(self) -> dict[str, Any]:
        """The arguments of which `create(**config)` makes such a metric."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


def _joined(found: Sequence[tuple[Any, Any]]) -> tuple[list[str], list[Any]]:
    names: list[str] = []
    values: list[Any] = []
    for name, value in found:
        names += name if isinstance(name, list) else [name]
        values += value if isinstance(value, list) else [value]
    return names, values
