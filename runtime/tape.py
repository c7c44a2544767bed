"""The tape: which operators ran on which arrays, so that gradients can be asked for afterwards.

While a thread records, every operator that reads an array of the graph makes a `RecordedOperator`, a node of the
compiler's graph that also keeps its outputs. An array knows its place in the graph (`Array.entry`); the graph knows no
user's array, so it goes when the last array that leads to it does, or after backward. Steps keep arrays, not copies: a
value that was overwritten since counts as it is now, as in MXNet.
"""
from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator, Params
from mxc.runtime.array import Array

REQUESTS = ("write", "add", "null")
_numbers = itertools.count()
_NONE = Params()  # of every leaf
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


class Recorded(Node):
    """A node of the tape.

    outputs: the arrays that it stands for. number: nodes are numbered as they are made, so what a node reads has a
    smaller number. freed: whether its graph was freed. fresh: whether a leaf's gradient was written. Its name,
    attributes and subgraphs, which only passes ask for, are made when they are asked for.
    """

    __slots__ = ("freed", "fresh", "number", "outputs")
    outputs: list[Array]
    fresh: bool

    def __getattr__(self, key: str) -> Any:  # only of attributes that are not there yet
        made: Any
        if key == "name":
            made = f"{'var' if self.op is None else 'node_'}{self.number}"
        elif key == "attrs":
            made = {} if self.op is None else self.op.attrs_of(self.params)
        elif key == "subgraphs":
            made = []
        elif key == "fresh":
            made = False
        else:
            raise AttributeError(key)
        setattr(self, key, made)
        return made


class Leaf(Recorded):
    """An array where the graph begins. grad: where its gradient goes; request: "write", "add" or "null".

    freed: as in MXNet, a graph that is freed forgets the arrays whose gradient nobody asked for.
    """

    __slots__ = ("grad", "request")

    def __init__(self, array: Array, grad: Array | None = None, request: str = "null"):
        self.op, self.params, self.inputs, self.outputs = None, _NONE, [], [plain(array)]
        self.number, self.freed, self.grad, self.request = next(_numbers), False, grad, request

    def free(self) -> None:
        """Forget the array when no gradient is asked for; other graphs that read it keep its values."""
        self.freed = self.request == "null"


class RecordedOperator(Recorded):
    """An operator that ran. outputs: all of its results, hidden ones too. is_train: the mode in which it ran. key:
    stands for operator, parameters and mode where graphs are compared; None: compare these themselves.
    kept: what its gradient needs besides (cached_op.py), if anything."""

    __slots__ = ("is_train", "kept", "key")

    def __init__(self, op: Operator, params: Params, inputs: list[Entry], outputs: Sequence[Array], is_train: bool,
                 key: Hashable, kept: object = None):
        self.op, self.params, self.inputs, self.outputs = op, params, inputs, [plain(a) for a in outputs]
        self.number, self.freed, self.is_train, self.key, self.kept = next(_numbers), False, is_train, key, kept

    def free(self) -> None:
        """Let go of the values and of the graph below."""
        self.freed, self.outputs, self.inputs, self.kept = True, [], [], None


def plain(array: Array) -> Array:
    """The array without its place in the graph."""
    return array.twin()


def entry_of(array: Array) -> Entry | None:
    """The place of an array in the graph; None when it has none, or its graph was freed."""
    entry = array.entry
    if entry is None:
        return None
    assert isinstance(entry.node, Recorded)
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
    assert isinstance(entry.node, Recorded)
    array = plain(entry.node.outputs[entry.index])
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
           is_train: bool | None = None, key: Hashable = None, kept: object = None) -> None:
    """Note that an operator made `outputs` (hidden ones too) of `inputs`, when one of these is in the graph.

    key, kept: see Step.
    """
    for array in inputs:
        if array.entry is not None and entry_of(array) is not None:
            break
    else:
        return
    known = [Entry(Leaf(a)) if a.entry is None else entry_of(a) or Entry(Leaf(a)) for a in inputs]
    train = state.training if is_train is None else is_train
    step = RecordedOperator(op, params, known, outputs, train, key, kept)
    for i, output in enumerate(outputs):
        output.entry = Entry(step, i)


def record_view(name: str, params: Mapping[str, object], array: Array, view: Array) -> Array:
    """Note, while recording, that `view`, which may share memory, is what an operator makes of `array`; `view`."""
    if state.recording:
        op = table.get(name)
        record(op, op.make_params(params), [array], [view])
    return view
