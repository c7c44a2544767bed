"""Calling a graph's node on arrays, of whatever storage types they are."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.graph.graph import Node
from mxc.compiler.ops.sparse_form import makes_parts
from mxc.compiler.ops.storage import DEFAULT
from mxc.runtime import specializations, tape
from mxc.runtime.array import Array


def apply(node: Node, inputs: Sequence[Array], is_train: bool | None = None) -> list[Array]:
    """All outputs, hidden ones too, of a graph's node on the values of its inputs; names of operators play no part."""
    train = tape.state.training if is_train is None else is_train
    assert node.op is not None
    if any(a.stype != DEFAULT for a in inputs) or makes_parts(node.op, node.params, len(inputs)):
        from mxc.runtime import sparse_invoke  # only now: most programs have no such arrays

        return sparse_invoke.invoke(node.op, node.params, inputs, None, train, hidden=True)
    shapes, dtypes = tuple([a.shape for a in inputs]), tuple([a.dtype for a in inputs])
    special = specializations.special_of(node, shapes, dtypes, train)
    return specializations.run(special, inputs, None, None, hidden=True)


def densified(array: Array) -> Array:
    """The array, or a dense copy of one that is kept in parts, recorded where the thread records."""
    if array.stype == DEFAULT:
        return array
    made = Array.empty(array.shape, array.dtype, array.context)
    made.copy_from(array)
    return tape.record_view("cast_storage", {"stype": DEFAULT}, array, made)
