"""Executors of one symbol on several devices, each of which works on its part of every batch."""
from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mxc import ndarray
from mxc.compiler.error import ArgumentError, MXNetError, nearest
from mxc.io import DataDesc
from mxc.io.slices import _split_input_slice
from mxc.kvstore.sums import total
from mxc.module.checks import ModuleStateError, require
from mxc.ndarray import NDArray

Batch = Any  # a DataBatch, or a list of them, one for each device


class DataParallelExecutorGroup:
    """One executor on each of several devices, all with the same parameters.

    symbol: what is run. contexts: the devices. workload: the part of a batch that each gets, in proportion.
    data_shapes, label_shapes: DataDescs of whole batches. param_names: the arguments that are learned.
    for_training: gradients are wanted; inputs_need_grad: those of the data too. shared_group: one whose parameters and
    memory this one uses. fixed_param_names: parameters without gradients. grad_req: "write", "add" or "null", for all,
    by position or by name. state_names: arguments that run from batch to batch. group2ctxs: for each device, or for
    all, the devices of the groups that `ctx_group` names.

    execs: the executors. slices: the rows that each gets. param_arrays, grad_arrays, aux_arrays: for each name a list
    of the devices' arrays; None for gradients that are not wanted.
    """

    # MXNet's signature
    def __init__(self, symbol: Any, contexts: Sequence[Any], workload: Sequence[float], data_shapes: list[DataDesc],
                 label_shapes: list[DataDesc] | None, param_names: Sequence[str], for_training: bool,
                 inputs_need_grad: bool, shared_group: DataParallelExecutorGroup | None = None, logger: Any = logging,
                 fixed_param_names: Sequence[str] | None = None, grad_req: Any = "write",
                 state_names: Sequence[str] | None = None, group2ctxs: Any = None):
        self.symbol, self.contexts, self.workload = symbol, list(contexts), list(workload)
        self.param_names, self.for_training, self.inputs_need_grad = list(param_names), for_training, inputs_need_grad
        self.arg_names, self.aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.fixed_param_names, self.state_names = list(fixed_param_names or ()), list(state_names or ())
        self.logger = logger
        self.group2ctxs = _prepare_group2ctxs(group2ctxs, len(self.contexts))
        self.grad_req = self._modes(grad_req, [desc.name for desc in data_shapes])
        self.output_layouts = [DataDesc.get_batch_axis(symbol[i].attr("__layout__"))
                               for i in range(len(self.output_names))]
        self.num_outputs = len(self.output_names)
        self.batch_size = 0
        self.execs: list[Any] = []
        self._default_execs: list[Any] = []
        self.bind_exec(data_shapes, label_shapes, shared_group)

    def _modes(self, grad_req: Any, data_names: Sequence[str]) -> dict[str, str]:
        """The grad_req of each argument."""
        if not self.for_training:
            return dict.fromkeys(self.arg_names, "null")
        if isinstance(grad_req, (list, tuple)):
            if len(grad_req) != len(self.arg_names):
                raise ArgumentError(f"grad_req has {len(grad_req)} entries for {len(self.arg_names)} arguments: "
                                    f"{', '.join(self.arg_names)}")
            return dict(zip(self.arg_names, grad_req, strict=True))
        if not isinstance(grad_req, (str, Mapping)):
            raise ArgumentError(f"grad_req must be a string, a list or a dict, got {type(grad_req)}")
        common = grad_req if isinstance(grad_req, str) else "write"
        modes = dict.fromkeys(self.arg_names, "null")
        modes.update({name: common for name in self.param_names if name not in self.fixed_param_names})
        if self.inputs_need_grad:
            modes.update(dict.fromkeys(data_names, common))
        return modes if isinstance(grad_req, str) else {**modes, **grad_req}

    # -- binding

    def decide_slices(self, data_shapes: Sequence[DataDesc]) -> list[int]:
        """The batch axis of each; sets batch_size and slices. Raises ModuleStateError when batch sizes differ."""
        axes = [DataDesc.get_batch_axis(desc.layout) for desc in data_shapes]
        for desc, axis in zip(data_shapes, axes, strict=True):
            if axis == -1:
                continue
            if not axis < len(desc.shape):
                raise ArgumentError(f"{desc.name} has the shape {desc.shape}, in which the layout {desc.layout!r} "
                                    "finds no batch axis")
            size = desc.shape[axis]
            if self.batch_size and size != self.batch_size:
                raise ModuleStateError(f"all data must have the same batch size: batch_size = {self.batch_size}, but "
                                       f"{desc.name} has shape {desc.shape}")
            self.batch_size = size
            self.slices = _split_input_slice(size, self.workload)
        return axes

    def bind_exec(self, data_shapes: list[DataDesc], label_shapes: list[DataDesc] | None,
                  shared_group: DataParallelExecutorGroup | None = None, reshape: bool = False) -> None:
        """Bind an executor on each device. reshape: make them from the present executors, which lend their memory."""
        self.batch_size = 0
        self.data_layouts = self.decide_slices(data_shapes)
        self.label_layouts = self.decide_slices(label_shapes) if label_shapes is not None else []
        self.data_shapes, self.label_shapes = data_shapes, label_shapes
        self.data_names = [desc.name for desc in data_shapes]
        self.label_names = [desc.name for desc in label_shapes or ()]
        for name in (*self.data_names, *self.label_names):
            if name not in self.arg_names:
                raise ArgumentError(f"{name!r} is provided, but is no argument of the symbol; those are "
                                    f"{', '.join(self.arg_names)}{nearest(name, self.arg_names)}")
        made = [self._reshaped_exec(i) if reshape else self._bind_ith_exec(i, shared_group)
                for i in range(len(self.contexts))]
        self.execs = made
        if not reshape:
            self._default_execs = list(made)
        self._collect_arrays()

    def _bind_ith_exec(self, i: int, shared_group: DataParallelExecutorGroup | None) -> Any:
        relative = shared_group.execs[i] if shared_group is not None else None
        types = {desc.name: desc.dtype for desc in (*self.data_shapes, *(self.label_shapes or ()))}
        return self.symbol.simple_bind(
            ctx=self.contexts[i], grad_req=self.grad_req, type_dict=types, group2ctx=self.group2ctxs[i],
            shared_arg_names=self.param_names if relative is not None else None, shared_exec=relative,
            **self._sliced_shapes(i))

    def _reshaped_exec(self, i: int) -> Any:
        """The executor of a device for the present shapes, made by `reshape` of the first one. An argument that is no
        parameter and whose shape follows from the data's, such as a label that is not fed, changes its shape with
        them."""
        shapes = self._sliced_shapes(i)
        free = set(self.arg_names) - set(self.param_names) - set(shapes)
        if free:
            found, _, _ = self.symbol.infer_shape_partial(**shapes)
            shapes.update({name: shape for name, shape in zip(self.arg_names, found or (), strict=False)
                           if name in free and shape and 0 not in shape})
        return self._default_execs[i].reshape(allow_up_sizing=True, **shapes)

    def _sliced_shapes(self, i: int) -> dict[str, tuple[int, ...]]:
        """What a device gets of the data and labels, by name."""
        shapes = {}
        axes = (*self.data_layouts, *self.label_layouts)
        for desc, axis in zip((*self.data_shapes, *(self.label_shapes or ())), axes, strict=True):
            shape = list(desc.shape)
            if axis >= 0:
                shape[axis] = self.slices[i].stop - self.slices[i].start
            shapes[desc.name] = tuple(shape)
        return shapes

    def _collect_arrays(self) -> None:
        def arrays(names: Sequence[str], kind: str) -> list[list[NDArray]]:
            return [[getattr(each, kind)[name] for each in self.execs] for name in names]

        self.param_arrays = arrays([n for n in self.param_names if n in self.arg_names], "arg_dict")
        self.grad_arrays = [list(a) for a in arrays([n for n in self.param_names if n in self.arg_names], "grad_dict")]
        self.aux_arrays, self.state_arrays = arrays(self.aux_names, "aux_dict"), arrays(self.state_names, "arg_dict")
        self.data_arrays = [list(zip(self.slices, each, strict=True)) for each in arrays(self.data_names, "arg_dict")]
        self.label_arrays = [list(zip(self.slices, each, strict=True)) for each in arrays(self.label_names, "arg_dict")]
        self.input_grad_arrays = arrays(self.data_names, "grad_dict") if self.inputs_need_grad else []

    def reshape(self, data_shapes: list[DataDesc], label_shapes: list[DataDesc] | None) -> None:
        """Bind for other shapes; parameters stay."""
        if (data_shapes, label_shapes) != (self.data_shapes, self.label_shapes):
            old = self.data_shapes, self.label_shapes
            try:
                self.bind_exec(data_shapes, label_shapes, reshape=True)
            except BaseException:
                self.bind_exec(*old, reshape=True)
                raise

    # -- parameters

    def set_params(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray],
                   allow_extra: bool = False) -> None:
        """Copy values to every device. Raises ValueError for one that the symbol lacks, unless allow_extra."""
        for each in self.execs:
            each.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> None:
        """Write the means over the devices to the arrays of these dicts."""
        names = [n for n in self.param_names if n in self.arg_names]
        for targets, known, blocks in ((arg_params, names, self.param_arrays),
                                       (aux_params, self.aux_names, self.aux_arrays)):
            for name, block in zip(known, blocks, strict=True):
                mean = block[0] if len(block) == 1 else total(block) / len(block)
                mean.copyto(targets[name])

    # -- running

    def forward(self, data_batch: Batch, is_train: bool | None = None) -> None:
        """Compute the outputs. is_train: the mode; None: as bound.

        Raises ArgumentError for a batch with other arrays than are bound.
        """
        mode = self.for_training if is_train is None else is_train
        data = _joined(data_batch, "data")
        if len(data) != len(self.data_names):
            raise ArgumentError(f"the batch has {len(data)} data arrays; {len(self.data_names)} are bound: "
                                f"{', '.join(self.data_names)}")
        pairs = [*zip(self.data_names, data, self.data_layouts, strict=True)]
        labels = _joined(data_batch, "label")
        if labels and self.label_names:
            if len(labels) != len(self.label_names):
                raise ArgumentError(f"the batch has {len(labels)} label arrays; {len(self.label_names)} are bound: "
                                    f"{', '.join(self.label_names)}")
            pairs += zip(self.label_names, labels, self.label_layouts, strict=True)
        for i, each in enumerate(self.execs):
            each.forward(mode, **{name: self._part(source, axis, i) for name, source, axis in pairs})

    def _part(self, source: Any, axis: int, i: int) -> Any:
        """What device i gets of an array, or of the list of the devices' arrays."""
        if isinstance(source, (list, tuple)):
            return source[i]
        if axis < 0 or len(self.execs) == 1:
            return source
        rows = self.slices[i]
        return source[rows] if axis == 0 else ndarray.slice_axis(source, axis=axis, begin=rows.start, end=rows.stop)

    def backward(self, out_grads: NDArray | Sequence[NDArray] | None = None) -> None:
        """Compute the gradients. out_grads: those of the outputs, for whole batches."""
        require(self.for_training, "re-bind with for_training=True to run backward")
        grads = [out_grads] if isinstance(out_grads, NDArray) else list(out_grads or ())
        for i, each in enumerate(self.execs):
            each.backward([self._part(grad, axis, i).as_in_context(self.contexts[i])
                           for grad, axis in zip(grads, self.output_layouts, strict=False)] or None)

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Pairs (name, shape) of the outputs of a whole batch."""
        shapes: list[tuple[str, tuple[int, ...]]] = []
        for name, output, axis in zip(self.output_names, self.execs[0].outputs, self.output_layouts, strict=True):
            shape = list(output.shape)
            if axis >= 0 and len(self.execs) > 1:
                shape[axis] = sum(each.outputs[len(shapes)].shape[axis] for each in self.execs)
            shapes.append((name, tuple(shape)))
        return shapes

    def get_outputs(self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None) -> list[Any]:
        """The outputs from `begin` to `end`, joined over the devices; else for each a list of the devices' arrays."""
        outputs = [[each.outputs[i] for each in self.execs]
                   for i in range(self.num_outputs)][begin:self.num_outputs if end is None else end]
        return _merge_multi_context(outputs, self.output_layouts[begin:]) if merge_multi_context else outputs

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states, in the form of `get_outputs`."""
        require(not merge_multi_context, "merge_multi_context=True is not supported for get_states yet.")
        return self.state_arrays

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Write the states. states: what get_states or get_outputs gave, not merged; value: one number for all."""
        if states is not None:
            require(value is None, "Only one of states & value can be specified.")
            for block, targets in zip(states, self.state_arrays, strict=True):
                for source, target in zip(block, targets, strict=True):
                    source.copyto(target)
        else:
            require(value is not None, "At least one of states & value must be specified.")
            for targets in self.state_arrays:
                for target in targets:
                    target[:] = value

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the data, in the form of `get_outputs`."""
        require(self.inputs_need_grad, "the gradients of the inputs are not computed: bind with inputs_need_grad=True")
        return (_merge_multi_context(self.input_grad_arrays, self.data_layouts) if merge_multi_context
                else self.input_grad_arrays)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Tell a metric each device's outputs and labels. pre_sliced: labels is a list of the labels of each device."""
        for i, each in enumerate(self.execs):
            parts = labels[i] if pre_sliced else [self._part(label, axis, i) for label, axis in
                                                  zip(labels or (), self.label_layouts, strict=False)]
            eval_metric.update_dict(dict(zip(self.label_names, parts, strict=False)),
                                    dict(zip(self.output_names, each.outputs, strict=True)))

    def install_monitor(self, mon: Any) -> None:
        """Let a Monitor see the executors' values."""
        for each in self.execs:
            mon.install(each)


def _joined(batch: Batch, kind: str) -> Sequence[Any]:
    """The arrays of a batch; of a list of batches, for each array the list of the devices'."""
    if isinstance(batch, list):
        return [list(arrays) for arrays in zip(*[getattr(one, kind) or () for one in batch], strict=True)]
    return getattr(batch, kind) or ()


def _merge_multi_context(outputs: Sequence[Sequence[NDArray]], major_axis: Sequence[int]) -> list[NDArray]:
    """The devices' arrays of each output joined along its batch axis, on the first device."""
    merged = []
    for arrays, axis in zip(outputs, major_axis, strict=False):
        if axis < 0 or len(arrays) == 1:
            merged.append(arrays[0])
        else:
            home = arrays[0].context
            merged.append(ndarray.concat(*[one.as_in_context(home) for one in arrays], dim=axis))
    return merged


def _prepare_group2ctxs(group2ctxs: Any, ctx_len: int) -> list[dict[str, Any] | None]:
    """The devices of the groups, a dict for each device of the module. group2ctxs: one dict for all, a dict of lists,
    or a list of dicts."""
    if group2ctxs is None:
        return [None] * ctx_len
    if isinstance(group2ctxs, list):
        if len(group2ctxs) != ctx_len:
            raise ArgumentError(f"group2ctxs has {len(group2ctxs)} dicts for {ctx_len} devices")
        return group2ctxs
    if not isinstance(group2ctxs, Mapping):
        raise ArgumentError(f"group2ctxs must be a dict or a list of dicts, got {type(group2ctxs)}")
    parts: list[dict[str, Any] | None] = [{} for _ in range(ctx_len)]
    for name, given in group2ctxs.items():
        places = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(places) == 1:
            places *= ctx_len
        if len(places) != ctx_len:
            raise MXNetError(f"group2ctxs[{name!r}] has {len(places)} devices; {ctx_len} are needed")
        for part, place in zip(parts, places, strict=True):
            assert part is not None
            part[name] = place
    return parts
