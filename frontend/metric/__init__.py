"""Metrics, which say how good predictions are. Programs make them by name, as `mx.metric.create("acc")`.

Begin with `base.py` (what a metric is); `classes.py` and `numbers.py` have the metrics, `composite.py` several as one.
Programs and other modules import the names below.
"""
# ruff: noqa: F401 (what is imported is what the module gives)
from __future__ import annotations

from mxc.metric.base import EvalMetric, alias, check_label_shapes, register
from mxc.metric.base import create_by_name as _create
from mxc.metric.classes import (
    F1,
    MCC,
    PCC,
    Accuracy,
    CrossEntropy,
    NegativeLogLikelihood,
    Perplexity,
    TopKAccuracy,
)
from mxc.metric.composite import CompositeEvalMetric, create
from mxc.metric.numbers import MAE, MSE, RMSE, Caffe, CustomMetric, Loss, PearsonCorrelation, Torch, np
from mxc.runtime.elsewhere import elsewhere

__getattr__, _names = elsewhere(__name__, {
    "": "math ndarray=mxc.ndarray numpy registry=mxc.registry", "collections": "OrderedDict",
    "mxc.base": "numeric_types string_types"})
__all__ = ["F1", "MAE", "MCC", "MSE", "PCC", "RMSE", "Accuracy", "Caffe", "CompositeEvalMetric", "CrossEntropy",
           "CustomMetric", "EvalMetric", "Loss", "NegativeLogLikelihood", "PearsonCorrelation", "Perplexity",
           "TopKAccuracy", "Torch", "alias", "check_label_shapes", "create", "np", "register", *_names]
