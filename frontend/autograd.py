"""Automatic differentiation of imperative programs: `mx.autograd`."""
from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops.operator import Params
from mxc.ndarray.ndarray import NDArray
from mxc.runtime import backward as runtime
from mxc.runtime import tape
from mxc.runtime.array import Array
from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.python_gradients import HostBackward, HostOperator
from mxc.symbol.symbol import Symbol

__getattr__, _names = elsewhere(__name__, {
    "": "ctypes traceback", "array": "array", "ctypes": "CFUNCTYPE POINTER c_int c_void_p cast", "threading": "Lock",
    "mxc.base": "MXCallbackList NDArrayHandle SymbolHandle _LIB c_array c_array_buf c_handle_array check_call mx_uint "
                "string_types",
    "mxc.codes": "_GRAD_REQ_MAP"})
__all__ = ["Function", "NDArray", "Symbol", "backward", "get_symbol", "grad", "is_recording", "is_training",
           "mark_variables", "pause", "predict_mode", "record", "set_recording", "set_training", "train_mode", *_names]


def set_recording(is_recording: bool) -> bool:
    """Record from now on in this thread, or stop; what it did before."""
    before, tape.state.recording = tape.state.recording, bool(is_recording)
    return before


def set_training(train_mode: bool) -> bool:
    """Run operators in training mode from now on in this thread, or in inference mode; what it did before."""
    before, tape.state.training = tape.state.training, bool(train_mode)
    return before


def is_recording() -> bool:
    """Whether this thread records."""
    return tape.state.recording


def is_training() -> bool:
    """Whether operators run in training mode in this thread."""
    return tape.state.training


class _Scope:
    """`with`: recording and training as given (None: as they are), then as they were."""

    def __init__(self, recording: bool | None, training: bool | None):
        self._wanted = recording, training
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        state, (recording, training) = tape.state, self._wanted
        self._before.append((state.recording, state.training))
        if recording is not None:
            state.recording = recording
        if training is not None:
            state.training = training

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        tape.state.recording, tape.state.training = self._before.pop()


def record(train_mode: bool | None = True) -> _Scope:
    """A scope in which operators on arrays of the graph are recorded, by default in training mode."""
    return _Scope(True, train_mode)


def pause(train_mode: bool | None = False) -> _Scope:
    """A scope in which nothing is recorded, by default in inference mode."""
    return _Scope(False, train_mode)


def train_mode() -> _Scope:
    """A scope in which operators run in training mode; recording goes on as it is."""
    return _Scope(None, True)


def predict_mode() -> _Scope:
    """A scope in which operators run in inference mode; recording goes on as it is."""
    return _Scope(None, False)


def mark_variables(variables: Any, gradients: Any, grad_reqs: Any = "write") -> None:
    """Begin graphs at these arrays: backward writes their gradients to `gradients`, of the same shapes.

    grad_reqs: "write", "add" or "null", one for all or one for each.
    Raises KeyError for another request, MXNetError when numbers or shapes do not fit.
    """
    variables, gradients = _listed(variables), _listed(gradients)
    requests = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(requests):
        raise MXNetError(f"mark_variables: {len(variables)} variables, {len(gradients)} gradients and {len(requests)} "
                         "requests; there must be one of each for each variable")
    for variable, gradient, request in zip(variables, gradients, requests, strict=True):
        if request not in tape.REQUESTS:
            raise KeyError(request)
        if variable.shape != gradient.shape:
            raise MXNetError(f"mark_variables: a gradient has the shape {gradient.shape}, its variable "
                             f"{variable.shape}; they must be the same")
        tape.mark(variable._array, gradient._array, request)


def backward(heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Compute the gradients of `heads` with respect to every marked array, and write or add them to its `grad`.

    head_grads: what flows into each head, of its shape; ones for None. retain_graph: keep the graph for another call.
    Raises MXNetError when a head is not in a graph, or its graph was freed, or nothing marked is reached.
    """
    arrays, grads = _heads(heads, head_grads)
    runtime.backward(arrays, grads, retain_graph, train_mode)


def grad(heads: Any, variables: Any, head_grads: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, train_mode: bool = True) -> list[NDArray]:
    """The gradients of `heads` with respect to marked arrays, as new arrays in a list; their own `grad` stays.

    create_graph: record how they are computed, so that they can be differentiated again. retain_graph: keep the graph
    for another call; as create_graph when None.
    Raises MXNetError as `backward`, and for a variable that is not marked or not reached.
    """
    arrays, grads = _heads(heads, head_grads)
    chosen = _listed(variables)
    if not chosen:
        raise AssertionError("variables cannot be an empty list.")
    retain = create_graph if retain_graph is None else retain_graph
    found = runtime.grad(arrays, [v._array for v in chosen], grads, retain, create_graph, train_mode)
    return [NDArray(value) for value in found]


def _heads(heads: Any, head_grads: Any) -> tuple[list[Array], list[Array | None]]:
    """Heads, and what flows into each."""
    arrays = [head._array for head in _listed(heads)]
    if head_grads is None:
        return arrays, [None] * len(arrays)
    grads = [None if g is None else g._array for g in _listed(head_grads)]
    if len(grads) != len(arrays):
        raise AssertionError(f"heads and head_grads must be lists of the same length, got {len(arrays)} and "
                             f"{len(grads)}")
    return arrays, grads


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, NDArray) else list(value)


def get_symbol(x: NDArray) -> Symbol:
    """What was recorded on the way to an array, as a symbol. Raises MXNetError when nothing was."""
    made: dict[Node, Node] = {}
    graph = runtime.graph_of(x._array)
    for node in graph.nodes:
        inputs = [Entry(made[e.node], e.index) for e in node.inputs]
        made[node] = Node(node.op, node.name, node.attrs, node.params, inputs)
    return Symbol([Entry(made[e.node], e.index) for e in graph.outputs])


class Function:
    """A function of arrays with a gradient of its own: a subclass has `forward` and `backward`.

    forward takes arrays and gives one, or several; it may keep some with `save_for_backward`, and finds them in
    `saved_tensors` when backward is called. backward takes what flows into each output and gives what flows into each
    input. Neither is recorded. An instance can be called once.
    """

    _used = False
    saved_tensors: tuple[Any, ...] = ()

    def __init__(self) -> None:  # subclasses call it, or do not
        pass

    def save_for_backward(self, *args: Any) -> None:
        """Keep arrays for backward, as `saved_tensors`."""
        self.saved_tensors = args

    def __call__(self, *inputs: Any) -> Any:
        """Run forward, and record the function as one step. Raises AssertionError for a second call."""
        if self._used:
            raise AssertionError("Each Function instance can only be called once. Please create another instance.")
        self._used = True
        self._require_arrays("forward takes NDArrays, got", inputs)
        before = set_recording(False)
        try:
            results = self.forward(*inputs)
        finally:
            set_recording(before)
        if not before:
            return results
        single = isinstance(results, NDArray)
        outputs = [results] if single else results
        self._require_arrays("forward must return an NDArray, or a list of them, got", outputs)
        made = [NDArray(NDArray.detach(output)._array) for output in outputs]
        backward = HostBackward(type(self).__name__, len(inputs), len(made), self._backward)
        tape.record(HostOperator(type(self).__name__, len(inputs), len(made), backward), Params(),
                    [x._array for x in inputs], [y._array for y in made])
        return made[0] if single else made

    def _require_arrays(self, what: str, values: Any) -> None:
        if not isinstance(values, (list, tuple)):
            raise MXNetError(f"{type(self).__name__}.{what} {type(values)}")
        for value in values:
            if not isinstance(value, NDArray):
                raise MXNetError(f"{type(self).__name__}.{what} {type(value)} among them")

    def _backward(self, arrays: Sequence[Array]) -> list[Array]:
        """What flows into each input, of what flows into each output."""
        results = self.backward(*[NDArray(a) for a in arrays])
        listed = [results] if isinstance(results, NDArray) else results
        self._require_arrays("backward must return an NDArray, or a list of them, got", listed)
        return [result._array for result in listed]

    def forward(self, *inputs: Any) -> Any:
        """The outputs; a subclass says how."""
        raise NotImplementedError

    def backward(self, *output_grads: Any) -> Any:
        """What flows into each input; a subclass says how."""
        raise NotImplementedError
