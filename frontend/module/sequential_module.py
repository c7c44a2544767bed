"""SequentialModule: modules in a row, each of which gets the outputs of the one before."""
from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any

from mxc.compiler.error import nearest
from mxc.initializer import Uniform
from mxc.io import DataBatch, DataDesc
from mxc.module.base_module import FIRST, SGD_PARAMS, BaseModule, Batch, Params
from mxc.module.checks import require
from mxc.ndarray import NDArray

__all__ = ["BaseModule", "SequentialModule", "Uniform", "copy", "logging"]


class SequentialModule(BaseModule):
    """Modules that are run one after the other; `add` adds the next one."""

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Any = logging):
        super().__init__(logger=logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, Any]] = []
        self._label_shapes: Any = None

    def add(self, module: BaseModule, **kwargs: Any) -> SequentialModule:
        """Add a module behind the others; gives this module.

        take_labels=True: it gets the labels. auto_wiring=True: the outputs of the module before are its data, whatever
        they are called. Raises ModuleStateError for other keywords.
        """
        known = (self.META_TAKE_LABELS, self.META_AUTO_WIRING)
        for key in kwargs:
            require(key in known, f'Unknown meta "{key}", a typo? There are {" and ".join(known)}{nearest(key, known)}')
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False  # The new module is not ready.
        return self

    @property
    def data_names(self) -> list[str]:
        """The names of the first module's data."""
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        """The names of the last module's outputs."""
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> list[Any]:
        """The descriptions of the first module's data."""
        self._require_bound()
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> Any:
        """The descriptions of the labels as they were bound; None where no module takes labels."""
        self._require_bound()
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the last module's outputs."""
        self._require_bound()
        return self._modules[-1].output_shapes

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Parameters and auxiliary states of all modules by name."""
        self._require_ready()
        arg_params: dict[str, NDArray] = {}
        aux_params: dict[str, NDArray] = {}
        for module in self._modules:
            args, auxs = module.get_params()
            arg_params.update(args)
            aux_params.update(auxs)
        return arg_params, aux_params

    def init_params(self, initializer: Any = FIRST, arg_params: Params | None = None, aux_params: Params | None = None,
                    allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False) -> None:
        """See BaseModule. Each module takes its own of the given ones. Raises ModuleStateError for a name that two
        modules have."""
        if self.params_initialized and not force_init:
            return
        require(self.binded, "call bind before initializing the parameters")
        for module in self._modules:
            module.init_params(initializer=initializer, arg_params=arg_params, aux_params=aux_params,
                               allow_missing=allow_missing, force_init=force_init, allow_extra=True)
        homes: dict[str, int] = {}
        for i, module in enumerate(self._modules):
            for name in (name for params in module.get_params() for name in params):
                require(name not in homes, f'Duplicated parameter names: name "{name}" in layer {i} ({type(module)}) '
                                           f"is already used in layer {homes.get(name)}")
                homes[name] = i
        self.params_initialized = True

    def bind(self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True,
             inputs_need_grad: bool = False, force_rebind: bool = False, shared_module: Any = None,
             grad_req: Any = "write") -> None:
        """Bind all modules, each to what the one before gives. See BaseModule; there is no shared_module."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        require(for_training or not inputs_need_grad, "inputs_need_grad=True needs for_training=True")
        require(shared_module is None, "Shared module is not supported")
        require(self._modules, "Attempting to bind an empty SequentialModule")
        shapes, takes_labels = data_shapes, False
        for i, (module, meta) in enumerate(zip(self._modules, self._metas, strict=True)):
            if meta.get(self.META_AUTO_WIRING):
                names = module.data_names
                require(len(names) == len(shapes), f"module {i} takes {len(names)} data arrays ({', '.join(names)}); "
                                                   f"the one before gives {len(shapes)}")
                shapes = [(name, shape[1]) for name, shape in zip(names, shapes, strict=True)]
            takes = bool(meta.get(self.META_TAKE_LABELS))
            takes_labels |= takes
            module.bind(data_shapes=shapes, label_shapes=label_shapes if takes else None, for_training=for_training,
                        inputs_need_grad=bool(for_training and (inputs_need_grad or i > 0)),
                        force_rebind=force_rebind, grad_req=grad_req)
            shapes = module.output_shapes
        self._label_shapes = label_shapes if takes_labels else None
        self.for_training, self.inputs_need_grad, self.binded = for_training, inputs_need_grad, True

    def init_optimizer(self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD_PARAMS,
                       force_init: bool = False) -> None:
        """See BaseModule: one for each module."""
        self._require_ready()
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        for module in self._modules:
            module.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params,
                                  force_init=force_init)
        self.optimizer_initialized = True

    def forward(self, data_batch: Batch, is_train: bool | None = None) -> None:
        """See BaseModule."""
        self._require_ready()
        batch = data_batch
        for i, module in enumerate(self._modules):
            module.forward(batch, is_train=is_train)
            if i + 1 < len(self._modules):
                given = [DataDesc(name, output.shape) for name, output in
                         zip(self._modules[i + 1].data_names, module.get_outputs(), strict=False)]
                batch = DataBatch(module.get_outputs(), data_batch.label, data_batch.pad, data_batch.index,
                                  provide_data=given, provide_label=data_batch.provide_label)

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """See BaseModule."""
        self._require_ready()
        for i, module in reversed(list(enumerate(self._modules))):
            module.backward(out_grads=out_grads)
            out_grads = module.get_input_grads() if i else None

    def update(self) -> None:
        """See BaseModule."""
        self._require_ready()
        require(self.optimizer_initialized, "there is no optimizer: call init_optimizer first")
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The last module's outputs."""
        self._require_ready()
        return self._modules[-1].get_outputs(merge_multi_context=merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the first module's data."""
        self._require_ready()
        require(self.inputs_need_grad, "the gradients of the inputs are not computed: bind with inputs_need_grad=True")
        return self._modules[0].get_input_grads(merge_multi_context=merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """See BaseModule: of the modules that take labels."""
        self._require_ready()
        for module, meta in zip(self._modules, self._metas, strict=True):
            if meta.get(self.META_TAKE_LABELS):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor see the values of every module."""
        self._require_bound()
        for module in self._modules:
            module.install_monitor(mon)
