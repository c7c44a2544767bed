"""The tape: which operators ran on which arrays, so that gradients can be asked for afterwards.

While a thread records, every operator that reads an array of the graph makes a `Step`, a node of the compiler's graph
that also keeps its outputs. An array knows its place in the graph (`Array.entry`); the graph knows no user's array, so
it goes when the last array that leads to it does, or after backward. Steps keep arrays, not copies: a value that was
overwritten since counts as it is now, as in MXNet.
"""
from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops import table
from mxc.compiler.ops.table import Operator, Params
from mxc.runtime.array import Array

REQUESTS = ("write", "add", "null")
_numbers = itertools.count()
_IN_GRAPH = ("Assigning to NDArrays that are already in a computational graph will cause undefined behavior when "
             "evaluating gradients: operator {} would overwrite one. Call backward first to clear the graph, or do "
             "this outside of a record section; in-place operations (+=, x[:] = ...) cannot be recorded")
_IN_PLACE = ("Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with autograd: operator {} "
             "would write to an array that it reads. Make a new array instead, as y = y + x")


class _State(threading.local):
    """What this thread does: record, and run operators in training mode."""

    def __init__(self) -> None:
        self.recording = self.training = False


state = _State()


@contextmanager
def mode(recording: bool, training: bool) -> Iterator[None]:
    """What this thread does within `with`."""
    before = state.recording, state.training
    state.recording, state.training = recording, training
    try:
        yield
    finally:
        state.recording, state.training = before


class Leaf(Node):
    """An array where the graph begins. grad: where its gradient goes; request: "write", "add" or "null".

    freed: as in MXNet, a graph that is freed forgets the arrays whose gradient nobody asked for.
    """

    __slots__ = ("freed", "grad", "outputs", "request")

    def __init__(self, array: Array, grad: Array | None = None, request: str = "null"):
        super().__init__(None, f"var{next(_numbers)}")
        self.outputs: list[Array] = [_plain(array)]
        self.grad, self.request, self.freed = grad, request, False

    def free(self) -> None:
        """Forget the array when no gradient is asked for; other graphs that read it keep its values."""
        self.freed = self.request == "null"


class Step(Node):
    """An operator that ran. outputs: all of its results, hidden ones too. is_train: the mode in which it ran."""

    __slots__ = ("freed", "is_train", "outputs")

    def __init__(self, op: Operator, params: Params, inputs: Sequence[Entry], outputs: Sequence[Array], is_train: bool):
        super().__init__(op, f"node_{next(_numbers)}", op.attrs_of(params), params, inputs)
        self.outputs, self.is_train, self.freed = [_plain(a) for a in outputs], is_train, False

    def free(self) -> None:
        """Let go of the values and of the graph below."""
        self.freed, self.outputs, self.inputs = True, [], []


def _plain(array: Array) -> Array:
    """The array without its place in the graph."""
    return array.reshape(array.shape)


def entry_of(array: Array) -> Entry | None:
    """The place of an array in the graph; None when it has none, or its graph was freed."""
    entry = array.entry
    if entry is None:
        return None
    assert isinstance(entry.node, (Leaf, Step))
    return None if entry.node.freed else entry


def leaf_of(array: Array) -> Leaf | None:
    """What `mark` made of the array; None when it is not marked."""
    entry = entry_of(array)
    return entry.node if entry is not None and isinstance(entry.node, Leaf) else None


def mark(array: Array, grad: Array, request: str) -> None:
    """Begin a graph at this array: its gradient goes to `grad`, as the request says. What led to it is forgotten."""
    array.entry = Entry(Leaf(array, grad, request))


def at(entry: Entry) -> Array:
    """An array on the values of an entry, at that place in the graph."""
    assert isinstance(entry.node, (Leaf, Step))
    array = _plain(entry.node.outputs[entry.index])
    array.entry = entry
    return array


def check_writes(name: str, outputs: Sequence[Array], inputs: Sequence[Array] = ()) -> None:
    """Refuse what cannot be recorded: writing to an array of the graph, or, when the operator is to be recorded, to
    one that it reads. Raises MXNetError."""
    if any(entry_of(a) is not None for a in outputs):
        raise MXNetError(_IN_GRAPH.format(name))
    if any(a is b for a in outputs for b in inputs) and any(entry_of(a) is not None for a in inputs):
        raise MXNetError(_IN_PLACE.format(name))


def record(op: Operator, params: Params, inputs: Sequence[Array], outputs: Sequence[Array],
           is_train: bool | None = None) -> None:
    """Note that an operator made `outputs` (hidden ones too) of `inputs`, when one of these is in the graph."""
    entries = [entry_of(a) for a in inputs]
    if all(e is None for e in entries):
        return
    known = [Entry(Leaf(a)) if e is None else e for a, e in zip(inputs, entries, strict=True)]
    step = Step(op, params, known, outputs, state.training if is_train is None else is_train)
    for i, output in enumerate(outputs):
        output.entry = Entry(step, i)


def record_view(name: str, params: Mapping[str, object], array: Array, view: Array) -> Array:
    """Note, while recording, that `view`, which may share memory, is what an operator makes of `array`; `view`."""
    if state.recording:
        op = table.get(name)
        record(op, op.make_params(params), [array], [view])
    return view
