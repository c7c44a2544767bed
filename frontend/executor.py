"""MXNet's `mx.executor`: a symbol bound to arrays; made by `Symbol.bind` and `Symbol.simple_bind`."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.compiler.graph.graph import Entry, Graph
from mxc.compiler.graph.text import graph_text
from mxc.compiler.ops.dtypes import is_number
from mxc.compiler.passes.infer import with_facts
from mxc.compiler.passes.infer_dtype import infer_dtype
from mxc.compiler.passes.infer_shape import infer_shape
from mxc.compiler.passes.infer_storage import is_dense
from mxc.ndarray import NDArray, zeros
from mxc.ndarray.ndarray import wrapped
from mxc.runtime.array import Array
from mxc.runtime.context import Context
from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.executor import BoundArrays, GraphExecutor
from mxc.symbol.inference import whole_shape
from mxc.util import is_np_shape

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import KernelTarget
    from mxc.runtime.taped_executor import TapedExecutor

    Core = GraphExecutor | TapedExecutor

__getattr__, _names = elsewhere(__name__, {
    "": "copy ctypes ndarray=mxc.ndarray", "array": "py_array=array",
    "mxc.base": "ExecutorHandle NDArrayHandle SymbolHandle _LIB c_array_buf c_handle_array c_str_array check_call "
                "mx_int mx_uint py_str"}, {"mxc.executor_manager": "_check_arguments _split_input_slice"})
__all__ = ["Executor", "NDArray", "np", *_names]


class Executor:
    """A symbol with arrays for its arguments, gradients, auxiliary states and outputs.

    arrays: of its arguments, gradients and auxiliary states. shared_exec: an executor whose memory this one uses too;
    the two run one at a time. groups: the devices of the groups that `ctx_group` names. typed: the symbol's graph with
    shapes and dtypes, where whoever made the arrays has inferred them.

    arg_arrays, grad_arrays (None where no gradient is wanted), aux_arrays: in the order of the symbol's lists.
    outputs: the arrays that every run writes. Raises MXNetError when shapes or dtypes do not fit.
    """

    def __init__(self, symbol: Any, ctx: Context, arrays: BoundArrays[NDArray], shared_exec: Executor | None = None,
                 groups: Mapping[str, Context] | None = None, typed: Graph | None = None):
        self._symbol, self._ctx, self._args, self._aux = symbol, ctx, dict(arrays.args), dict(arrays.aux)
        self._groups = groups
        self._grads = {name: arrays.grads.get(name) for name in self._args}
        relative: Core | None = None if shared_exec is None else shared_exec._core
        graph: Graph = symbol.graph
        if shared_exec is not None and shared_exec._symbol is symbol:
            graph = shared_exec._core.source  # and with it what was compiled for it
        given = [*self._args.values(), *self._aux.values(), *(g for g in self._grads.values() if g is not None)]
        self._core: Core = core_of(graph, [a._array for a in given], ctx, groups)(
            graph, ctx,
            BoundArrays({n: a._array for n, a in self._args.items()},
                        {n: None if g is None else g._array for n, g in self._grads.items()}, arrays.grad_req,
                        {n: a._array for n, a in self._aux.items()}),
            relative.memory if relative is not None else None, relative.compiler if relative is not None else None,
            groups, relative.blocks if relative is not None else None, typed)
        self.arg_arrays, self.aux_arrays = list(self._args.values()), list(self._aux.values())
        self.grad_arrays = list(self._grads.values())
        self.outputs = [wrapped(a) for a in self._core.outputs]

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """The arguments by name."""
        return self._args

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """The gradients by argument; None where none is wanted."""
        return self._grads

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """The auxiliary states by name."""
        return self._aux

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """The outputs by name. Raises ArgumentError when two have the same name."""
        names = self._symbol.list_outputs()
        if len(set(names)) != len(names):
            raise ArgumentError(f"outputs have the same name, so there is no dict of them: {names}")
        return dict(zip(names, self.outputs, strict=True))

    def forward(self, is_train: bool = False, **kwargs: NDArray | np.ndarray) -> list[NDArray]:
        """Compute the outputs; `kwargs` are copied into the arguments of those names first.

        is_train: run operators in training mode and keep what backward needs. Returns `outputs`: a large run, or one
        with custom operators, goes on meanwhile, and raises where they are waited for.
        Raises ArgumentTypeError for an unknown name, ArgumentError for a value of another shape or kind.
        """
        self._core.forward(bool(is_train), self._checked(kwargs) if kwargs else None)
        return self.outputs

    def _checked(self, given: Mapping[str, NDArray | np.ndarray]) -> dict[str, Array | np.ndarray]:
        values: dict[str, Array | np.ndarray] = {}
        for name, value in given.items():
            target = self._args.get(name)
            if target is None:
                raise ArgumentTypeError(f"Unknown argument {name}: the symbol's arguments are {', '.join(self._args)}")
            if not isinstance(value, (NDArray, np.ndarray)):
                raise ArgumentError(f"only accept keyword argument of NDArrays and numpy.ndarray, not {type(value)} "
                                    f"for {name}")
            if isinstance(value, np.ndarray) and not is_number(value.dtype):
                raise ArgumentTypeError(f"argument {name} needs numbers, got an array of dtype {value.dtype}")
            if value.shape != target.shape:
                raise ArgumentError(f"Shape not match! Argument {name}, need: {target.shape}, received: {value.shape}")
            values[name] = value._array if isinstance(value, NDArray) else value
        return values

    def backward(self, out_grads: NDArray | Sequence[NDArray] | Mapping[str, NDArray] | None = None,
                 is_train: bool = True) -> None:
        """Compute the gradients into `grad_arrays` as grad_req says, and new auxiliary states.

        out_grads: the gradient of each output (one, a list, or a dict by output name); loss outputs need none.
        is_train: False goes through the operators in inference mode.
        Raises MXNetError when one that is needed is missing or has another shape.
        """
        if out_grads is None:
            given: list[Any] = []
        elif isinstance(out_grads, Mapping):
            names = self._symbol.list_outputs()
            missing = [name for name in names if name not in out_grads]
            if missing:
                raise ArgumentError(f"out_grads lacks the output {missing[0]!r}; the outputs are {', '.join(names)}")
            given = [out_grads[name] for name in names]
        else:
            given = [out_grads] if isinstance(out_grads, NDArray) else list(out_grads)
        for grad in given:
            if not isinstance(grad, NDArray):
                raise ArgumentTypeError(f"out_grads must be NDArrays, not {type(grad)}")
        self._core.backward([g._array for g in given], bool(is_train))

    def copy_params_from(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray] | None = None,
                         allow_extra_params: bool = False) -> None:
        """Copy values by name into arguments and auxiliary states.

        Raises ArgumentError for a name that the executor lacks (unless `allow_extra_params`), MXNetError for a shape
        that differs.
        """
        for kind, given, targets in (("arguments", arg_params, self._args),
                                     ("auxiliary states", aux_params or {}, self._aux)):
            if not isinstance(given, Mapping):
                raise ArgumentTypeError(f"{kind} must be a dict of str to NDArray, not {type(given)}")
            for name, value in given.items():
                if not isinstance(value, (NDArray, np.ndarray)):
                    raise ArgumentTypeError(f"{name!r} must be an NDArray, not {type(value)}")
                if name in targets:
                    if value.shape != targets[name].shape:
                        raise MXNetError(f"{name!r} has the shape {value.shape} in the parameters; the executor's "
                                         f"has {targets[name].shape}")
                    targets[name][:] = value
                elif not allow_extra_params:
                    raise ArgumentError(f'Find name "{name}" that is not in the {kind}: {", ".join(targets) or "none"}')

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False,
                **kwargs: Sequence[int]) -> Executor:
        """An executor for other shapes of the named arguments; it shares memory with this one.

        Arrays that keep their shape are shared; smaller ones lie in the memory of the old; larger ones are new, which
        needs `allow_up_sizing`. Outputs lie in the memory of the old ones too, where they fit: a run of either executor
        overwrites them. partial_shaping: allow arguments that are not named to change their shapes.
        """
        core = self._core
        unknown = [name for name in kwargs if name not in self._args and name not in self._aux]
        if unknown:
            raise MXNetError(f"reshape: {unknown[0]!r} is no argument; they are {', '.join(self._args)}")
        typed = _reshaped(core.source, kwargs, {**core.args, **core.aux})
        shapes = {node.name: typed.shape(Entry(node)) for node in typed.variables}

        def resized(name: str, old: NDArray, kind: str) -> NDArray:
            shape = shapes[name]
            if shape == old.shape:
                return old
            if name not in kwargs and not partial_shaping:
                raise MXNetError(f"Shape of unspecified {kind} {name!r} changed from {old.shape} to {shape}, so the "
                                 "executors cannot share it. If that is meant, set partial_shaping=True")
            if old.stype != "default":
                return zeros(shape, old.context, old.dtype, old.stype)
            if math.prod(shape) <= old.size:
                return NDArray(old._array.prefix(shape))
            if not allow_up_sizing:
                raise MXNetError(f"New shape {shape} of {kind} {name!r} is larger than the old one, {old.shape}. Make "
                                 "the largest executor first and reshape it down, or set allow_up_sizing=True")
            return zeros(shape, old.context, old.dtype)

        args = {name: resized(name, a, "argument") for name, a in self._args.items()}
        aux = {name: resized(name, a, "auxiliary state") for name, a in self._aux.items()}
        grads = {name: None if g is None else resized(name, g, "argument") for name, g in self._grads.items()}
        arrays = BoundArrays(args, grads, core.grad_req, aux)
        return Executor(self._symbol, self._ctx, arrays, self, self._groups, typed)

    def set_monitor_callback(self, callback: Callable[[str, NDArray], None] | None, monitor_all: bool = False) -> None:
        """Call `callback(name, array)` for each operator's outputs (NODE_OUTPUT) in every forward run, hidden ones too,
        and in backward for the gradients that are wanted: what flows into each input (NODE_backward_output<i>, without
        the number where there is one input) and sums of several (sum_grad_output).

        monitor_all: before an operator's outputs for its inputs (NODE_INPUT) and the variables among these (by their
        own name). Such runs go node by node and are slow. None ends it.
        """
        self._core.monitor_all = monitor_all
        told = None if callback is None else lambda name, array: callback(name, wrapped(array, writable=False))
        self._core.monitor = told

    def compiled(self, is_train: bool = False) -> Any:
        """What was compiled for forward in that mode: `.plan` (steps, bytes), `.groups`, `.library` (cache hits and
        misses), `.seconds`. Compiles it when that has not happened yet."""
        return self._core.compiled(is_train)

    def compiled_for(self, target: KernelTarget, is_train: bool = False) -> Any:
        """As `compiled`, for a target that need not be here (compiler.targets.kernel_target)."""
        return self._core.compiled_for(target, is_train)

    def _release(self, names: Iterable[str]) -> None:
        """Give back the memory of those of the arguments and states `names` that are not read any more once inference
        has been prepared. The executor has them no more, and runs inference alone. For those who made the arrays, which
        nobody else holds."""
        from mxc.runtime.storage import release_free

        gone = self._core.release({*names})
        self._args, self._aux = ({name: array for name, array in held.items() if name not in gone}
                                 for held in (self._args, self._aux))
        self._grads = {name: self._grads[name] for name in self._args}
        self.arg_arrays, self.aux_arrays = list(self._args.values()), list(self._aux.values())
        self.grad_arrays = list(self._grads.values())
        release_free()

    def debug_str(self) -> str:
        """The graph as text, and how much memory the executor holds."""
        held = self._core.memory.nbytes + sum(a.nbytes for a in self._core.outputs)
        return f"{graph_text(self._core.graph)}\nTotal {held >> 20} MB allocated\n"

    def get_optimized_symbol(self) -> Any:
        """The symbol that is bound."""
        return self._symbol


def core_of(graph: Graph, arrays: Sequence[Array], ctx: Context, groups: Mapping[str, Context] | None) -> type[Core]:
    """The runtime's executor for a graph on these arrays: another one where some are kept in parts, or where groups of
    nodes are on several devices of which not all are the host's."""
    is_one = not groups or len({place.gpu_number for place in (ctx, *groups.values())}) == 1
    are_dense = all(array.stype == "default" for array in arrays) and is_dense(graph)
    if is_one and are_dense:
        return GraphExecutor
    from mxc.runtime.taped_executor import PlacedExecutor, SparseExecutor  # Only now: most programs need neither.

    return PlacedExecutor if are_dense else SparseExecutor


def _reshaped(graph: Graph, wanted: Mapping[str, Sequence[int]], old: Mapping[str, Array]) -> Graph:
    """The graph with its facts for variables of the wanted shapes; the others' follow from these, or else stay as those
    of the old arrays, as the dtypes do."""
    given = {name: whole_shape(name, shape) for name, shape in wanted.items()}
    numpy = is_np_shape()
    unknown = -1 if numpy else 0
    found = infer_shape(graph, given, partial=True, numpy=numpy)
    for i, node in enumerate(graph.nodes):
        shape = found[i][0]
        if node.is_variable and (shape is None or unknown in shape):
            if node.name in wanted:
                raise MXNetError(f"reshape: the shape {given[node.name]} of {node.name!r} is not complete: "
                                 f"{'-1 stands' if numpy else '0 and -1 stand'} for unknown dimensions, and nothing "
                                 "tells them")
            given[node.name] = old[node.name].shape
    if any(shape is None or unknown in shape for shapes in found for shape in shapes):
        found = infer_shape(graph, given, numpy=numpy)
    return with_facts(graph, found, infer_dtype(graph, {name: array.dtype for name, array in old.items()}))
