"""The part of arrays that concerns gradients: marking, backward, and reading and writing elements while recording."""
from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops import table
from mxc.ndarray.index_keys import INTEGERS, array_of, parse
from mxc.runtime import tape
from mxc.runtime.array import Array
from mxc.runtime.sparse_array import zeros


class Differentiable:
    """A part of NDArray. A subclass is made of an Array, which `_array` holds."""

    __slots__ = ()
    _array: Array

    def __init__(self, array: Array):
        raise NotImplementedError

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Begin a graph at this array: backward writes or adds to `grad`, now zeros; "null" for no gradient.

        stype: the storage type of the gradient; None for the array's own. What led to the array is forgotten. Raises
        KeyError for another request, MXNetError for another storage type.
        """
        if grad_req not in tape.REQUESTS:
            raise KeyError(grad_req)
        array = self._array
        tape.mark(array, zeros(stype or array.stype, array.shape, array.dtype, array.context.computing), grad_req)

    @property
    def grad(self) -> Any:
        """The array that backward writes the gradient to; None when `attach_grad` was not called."""
        leaf = tape.leaf_of(self._array)
        return None if leaf is None or leaf.grad is None else self._wrapped(leaf.grad)

    def _wrapped(self, array: Array) -> Any:
        """The NDArray on an array."""
        raise NotImplementedError

    @property
    def _fresh_grad(self) -> bool:
        """Whether `grad` was written since this was last set to False: a training loop sets it when it has used `grad`.

        True after any backward that reached this array. Setting it raises MXNetError for an array of no graph, and
        TypeError for what is no number.
        """
        entry = tape.entry_of(self._array)
        return entry is not None and entry.node.fresh  # type: ignore[attr-defined]  # a node of the tape

    @_fresh_grad.setter
    def _fresh_grad(self, state: bool) -> None:
        entry = tape.entry_of(self._array)
        if entry is None:
            raise MXNetError("NDArray has not been marked as a variable and does not have gradient state: call "
                             "attach_grad() first")
        entry.node.fresh = bool(operator.index(state))  # type: ignore[attr-defined]

    def backward(self, out_grad: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """The gradients of this array, with respect to all marked arrays that it was computed from.

        out_grad: what flows into it, of its shape; ones when None. Raises MXNetError as `autograd.backward`.
        """
        from mxc.runtime.backward import backward  # This import loads the compiler's passes.

        backward([self._array], [None if out_grad is None else out_grad._array], retain_graph, train_mode)


def record_selection(array: Array, key: Any, selected: Array) -> Array:
    """Note, while recording, that `selected` has the elements of `array` under a key; returns `selected`."""
    if not tape.state.recording or tape.entry_of(array) is None:
        return selected
    if not selected.size:
        return _record_places(array, np.zeros(selected.shape, np.int64), selected)
    if isinstance(key, bool):  # A key that is True or False alone is the index 1 or 0.
        key = int(key)
    elif isinstance(key, tuple) and len(key) == len(array.shape) and all(isinstance(k, INTEGERS) for k in key):
        key = tuple(map(int, key))
    found = parse(key, array.shape)
    if found.advanced:
        places = np.arange(array.size).reshape(array.shape)[found.parts]
        part = _record_places(array, places, selected.reshape(places.shape))
    else:
        spans = [_span(p, n) for p, n in zip(found.without_new_axes, array.shape, strict=False)]
        begin, end, step = zip(*spans, strict=True) if spans else ((), (), ())
        shape = (*(len(range(b, -1 if e is None else e, s)) for b, e, s in spans), *array.shape[len(spans):])
        part = tape.record_view("slice", {"begin": begin, "end": end, "step": step}, array, selected.reshape(shape))
    return record_reshape(part, selected)


def record_reshape(array: Array, view: Array) -> Array:
    """Note, while recording, that `view` has the elements of `array` in another shape; returns `view`."""
    if view.shape or not tape.state.recording:
        return tape.record_view("Reshape", {"shape": view.shape}, array, view)
    return _record_places(array, np.zeros((), np.int64), view)  # Reshape takes () as "no shape given".


def _record_places(array: Array, places: np.ndarray, selected: Array) -> Array:
    """Note that `selected` has the elements of `array` at these row-major positions; returns `selected`."""
    flat = tape.record_view("Reshape", {"shape": (-1,)}, array, array.reshape((-1,)))
    op = table.get("take")
    tape.record(op, op.make_params({"mode": "clip"}), [flat, Array.of(places, "int64", array.context)], [selected])
    return selected


def _span(part: Any, extent: int) -> tuple[int, int | None, int]:
    """Begin, end and step of the operator slice for an integer or a slice; a negative step may end before 0: None."""
    if not isinstance(part, slice):
        begin = int(part) % extent
        return begin, begin + 1, 1
    begin, end, step = part.indices(extent)
    return begin, None if end < 0 else end, step


def is_whole(key: Any) -> bool:
    """Whether a key selects all elements as they are."""
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))


def _takes_all(key: Any, shape: tuple[int, ...]) -> bool:
    """Whether a key, however it is written, selects all elements of an array of that shape in their order."""
    found = parse(key, shape)
    return not found.advanced and all(isinstance(part, slice) and part.indices(extent) == (0, extent, 1)
                                      for part, extent in zip(found.without_new_axes, shape, strict=True))


def check_assignment(array: Array, key: Any, value: Any) -> None:
    """Refuse to write elements while recording, when the array or the value is in the graph. Raises MXNetError.

    A NumPy array may replace all elements, as new data for the same graph.
    """
    if isinstance(value, np.ndarray) and _takes_all(key, array.shape):
        return
    source = array_of(value)
    tape.check_writes("_slice_assign", [array], [array] if source is None else [array, source])
