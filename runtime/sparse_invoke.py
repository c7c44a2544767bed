"""Eager operators on arrays that are kept in parts: an operator's sparse form, or dense copies where it has none."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence

import numpy as np

from mxc.compiler.graph.graph import Node
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import Form, form_of
from mxc.compiler.ops.storage import CSR, DEFAULT, Given, Shape, with_values
from mxc.compiler.system import env
from mxc.runtime import compressed, engine, runner, specializations, tape
from mxc.runtime.array import LARGE, Array
from mxc.runtime.context import Context
from mxc.runtime.eager import quiet
from mxc.runtime.sparse_array import SparseArray, like


class StorageFallbackWarning(UserWarning):
    """An operator has no sparse form for its arrays: it is computed on dense copies."""


class _Call:
    """See compiler.ops.sparse_form.Call."""

    def __init__(self, op: Operator, params: Params, inputs: Sequence[Given], shapes: Sequence[tuple[int, ...]],
                 dtypes: Sequence[str], result: Array):
        self.op, self.params, self.inputs, self.shapes, self.dtypes = op, params, inputs, shapes, dtypes
        self._context, self.threads = result.context, runner.num_threads()
        self._memory = result.memory if result.stype == DEFAULT else None

    def run(self, routine: str, arrays: Sequence[np.ndarray], integers: Sequence[int], **constants: object) -> None:
        compressed.run(routine, arrays, integers, **constants)

    def empty(self, shape: tuple[int, ...], dtype: str | np.dtype) -> np.ndarray:
        memory = self._memory
        if memory is not None and memory.shape == shape and memory.dtype == dtype:  # usually it is for the result
            self._memory = None
            return memory
        return Array.empty(shape, dtype, self._context).memory

    def of(self, *arrays: np.ndarray) -> np.ndarray:
        return self.op.reference(self.params, arrays, self.dtypes[:1])[0]


def invoke(op: Operator, params: Params, inputs: Sequence[Array], out: Sequence[Array] | None, is_train: bool,
           context: Context | None = None, hidden: bool = False) -> list[Array]:
    """The outputs of an operator on arrays of any storage types, or `out`, filled with them; recorded when the thread
    records. context: where they are made where there is no input. hidden: all outputs.

    Raises MXNetError when the inputs do not fit the operator.
    """
    if tape.state.recording and out is not None:
        tape.check_writes(op.name, out, inputs)
    form = form_of(op, params, tuple([a.stype for a in inputs]))
    if form.compute is None:
        made = _by_copies(op, params, inputs, form, is_train, context)
    else:
        shapes, dtypes = _inferred(op, params, tuple([a.shape for a in inputs]), tuple([a.dtype for a in inputs]))
        made = _by_parts(op, params, inputs, form, shapes, dtypes)
    if out is not None:
        for target, value in zip(out, made, strict=False):
            target.copy_from(value)
        made = [*out, *made[len(out):]]
    if tape.state.recording:
        tape.record(op, params, inputs, made, is_train)
    return made if hidden else made[:op.num_visible(params)]


@functools.lru_cache(maxsize=4096)
def _inferred(op: Operator, params: Params, shapes: tuple[Shape, ...], dtypes: tuple[str, ...],
              ) -> tuple[list[Shape], list[str]]:
    """Shapes and dtypes of all outputs."""
    return infer_node(Node(op, "", None, params), list(shapes), list(dtypes))


def _by_parts(op: Operator, params: Params, inputs: Sequence[Array], form: Form, shapes: Sequence[Shape],
              dtypes: Sequence[str]) -> list[Array]:
    where = inputs[0].context.computing
    results = [like(s, shape, dtype, where) for s, shape, dtype in zip(form.outs, shapes, dtypes, strict=True)]
    compute = form.compute
    assert compute is not None

    def work() -> None:
        given = [array.given() for array in inputs]
        call = _Call(op, params, given, shapes, dtypes, results[0])
        read = [array if isinstance(array, np.ndarray) else array.values for array in given]
        for result, value in zip(results, quiet.run(compute, call), strict=True):
            result.have(_own(value, read))

    engine.push(work, [a.variable for a in inputs], [a.variable for a in results], op.name, _is_small(inputs, results))
    return results


def _is_small(inputs: Sequence[Array], results: Sequence[Array]) -> bool:
    """Whether work takes less than a hand-over to another thread: by what the inputs store now, which may be something
    else when it runs. A dense input beside such ones is read at their places alone."""
    out, work = results[0], sum(array.size for array in results if array.stype == DEFAULT)
    kept = [array for array in inputs if isinstance(array, SparseArray)]
    for array in kept:
        is_product = array.stype == CSR != out.stype and len(out.shape) == 2
        work += array.holder.parts.values.size * (out.shape[1] if is_product else 1)
    return work + (0 if kept else sum(array.size for array in inputs)) < LARGE


def _own(value: Given, read: Sequence[np.ndarray]) -> Given:
    """Parts whose values are no input's: an update of a weight changes them where they lie."""
    if isinstance(value, np.ndarray) or not any(np.may_share_memory(value.values, array) for array in read):
        return value
    return with_values(value, value.values.copy())


def _by_copies(op: Operator, params: Params, inputs: Sequence[Array], form: Form, is_train: bool,
               context: Context | None) -> list[Array]:
    if form.is_told and any(a.stype != DEFAULT for a in inputs):
        _tell(op, tuple(a.stype for a in inputs), form.outs)
    copies = [a if a.stype == DEFAULT else densified(a) for a in inputs]
    special = specializations.special_of(Node(op, "", None, params), tuple([a.shape for a in copies]),
                                         tuple([a.dtype for a in copies]), is_train)
    with tape.mode(False, tape.state.training):
        made = specializations.run(special, copies, None, context, hidden=True)
    return [value if stype == DEFAULT else kept_as(value, stype) for value, stype in zip(made, form.outs, strict=True)]


def densified(array: Array) -> Array:
    """A dense copy, which is not recorded."""
    made = Array.empty(array.shape, array.dtype, array.context)
    made.copy_from(array)
    return made


def kept_as(array: Array, stype: str) -> Array:
    """A copy in another storage type, which is not recorded."""
    made = like(stype, array.shape, array.dtype, array.context)
    made.copy_from(array)
    return made


_told: set[tuple[str, tuple[str, ...]]] = set()


def _tell(op: Operator, stypes: tuple[str, ...], outs: tuple[str, ...]) -> None:
    """Warn, once for each operator and storage types, that copies are made."""
    if (op.name, stypes) in _told or env.text("MXNET_STORAGE_FALLBACK_LOG_VERBOSE") == "0":
        return
    _told.add((op.name, stypes))
    warnings.warn(f"operator {op.name} has no form for arrays of the storage types {', '.join(stypes)}: it is computed "
                  f"on dense copies, to {', '.join(outs)}. The result is right, but takes the time and memory of dense "
                  "arrays; MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0 ends this message", StorageFallbackWarning,
                  stacklevel=4)
