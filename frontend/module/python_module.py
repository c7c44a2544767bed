"""PythonModule: for steps of a network that programs write in Python; PythonLossModule: for a loss."""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mxc import ndarray as nd
from mxc.initializer import Uniform
from mxc.module.base_module import FIRST, SGD_PARAMS, BaseModule, Batch, Params
from mxc.module.checks import require
from mxc.ndarray import NDArray

__all__ = ["BaseModule", "PythonLossModule", "PythonModule", "Uniform", "logging", "nd"]


class PythonModule(BaseModule):
    """A module without parameters. Subclasses define forward, backward, get_outputs, get_input_grads and
    `_compute_output_shapes`, and more of BaseModule where they have parameters.

    data_names, label_names, output_names: of what it takes and gives.
    """

    def __init__(self, data_names: Sequence[str], label_names: Sequence[str] | None, output_names: Sequence[str],
                 logger: Any = logging):
        super().__init__(logger=logger)
        self._data_names = list(data_names)
        self._label_names = list(label_names) if label_names is not None else None
        self._output_names = list(output_names)
        self._data_shapes: Any = None
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    @property
    def data_names(self) -> list[str]:
        """The names of the inputs that data are for."""
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> list[Any]:
        """The descriptions of the data as they were bound."""
        return self._data_shapes

    @property
    def label_shapes(self) -> Any:
        """The descriptions of the labels as they were bound."""
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the outputs."""
        return self._output_shapes

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """No parameters."""
        return {}, {}

    def init_params(self, initializer: Any = FIRST, arg_params: Params | None = None, aux_params: Params | None = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """There is nothing to initialize."""
        self.params_initialized = True

    def update(self) -> None:
        """There is nothing to update."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Tell a metric the outputs and their labels, if the module takes labels."""
        if self._label_shapes is None:
            return
        require(not pre_sliced, "PythonModule does not take labels that are cut for devices")
        eval_metric.update_dict(dict(zip(self._label_names or (), labels, strict=False)),
                                dict(zip(self._output_names, self.get_outputs(), strict=False)))

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Take the shapes. See BaseModule."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        require(grad_req == "write", "Python module only support write gradient")
        names = [desc[0] for desc in data_shapes]
        require(names == self._data_names, f"the data are {names}; this module takes {self._data_names}")
        if label_shapes is not None:
            labels = [desc[0] for desc in label_shapes]
            require(labels == self._label_names, f"the labels are {labels}; this module takes {self._label_names}")
        self._data_shapes, self._label_shapes = data_shapes, label_shapes
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._output_shapes = self._compute_output_shapes()
        self.binded = True

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the outputs, from the shapes that are bound."""
        raise NotImplementedError

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD_PARAMS,
                       force_init: bool = False) -> None:
        """No optimizer is needed."""
        self.optimizer_initialized = True


class PythonLossModule(PythonModule):
    """A loss: forward hands the scores on, backward gives their gradient.

    grad_func: a function of (scores, labels) that gives it, as an NDArray or a NumPy array; without one a subclass
    defines `_backward_impl`, which sets `_scores_grad`.
    """

    def __init__(self, name: str = "pyloss", data_names: Sequence[str] = ("data",),
                 label_names: Sequence[str] = ("softmax_label",), logger: Any = logging,
                 grad_func: Callable[[NDArray, Any], Any] | None = None):
        super().__init__(data_names, label_names, [f"{name}_output"], logger=logger)
        require(len(self._data_names) == len(label_names) == 1, "a loss takes one array of scores and one of labels")
        require(grad_func is None or callable(grad_func), f"grad_func must be a function, got {type(grad_func)}")
        self._name, self._grad_func = name, grad_func
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: Any = None

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The scores' shape."""
        return [(f"{self._name}_output", self._data_shapes[0][1])]

    def forward(self, data_batch: Batch, is_train: bool | None = None) -> None:
        """Take the scores and, in training, the labels."""
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The scores."""
        require(merge_multi_context, "a PythonLossModule has one device")
        return [self._scores]

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """Compute the gradient of the scores."""
        require(out_grads is None, "For a loss module, out_grads should be None")
        require(self.for_training, "re-bind with for_training=True to run backward")
        self._backward_impl()

    def _backward_impl(self) -> None:
        if self._grad_func is None:
            raise NotImplementedError("PythonLossModule needs grad_func, or a subclass that defines _backward_impl")
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, NDArray) else nd.array(np.asarray(grad))

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradient of the scores."""
        require(merge_multi_context, "a PythonLossModule has one device")
        return [self._scores_grad]

    def install_monitor(self, mon: Any) -> None:
        """There is no executor to see."""
        raise NotImplementedError("a PythonLossModule has no executor that a monitor could see")
