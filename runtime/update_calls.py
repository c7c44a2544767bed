"""Calling operators that change arrays in place, on arrays of any storage types."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from mxc.compiler.ops.storage import DEFAULT
from mxc.runtime import updates
from mxc.runtime.array import Array
from mxc.runtime.context import Context


def update(name: str, arrays: Sequence[Array], params: Mapping[str, object], out: Sequence[Array] | None = None,
           context: Context | None = None) -> list[Array]:
    """See `updates.update`."""
    if are_dense(arrays):
        return updates.update(name, arrays, params, out, context)
    from mxc.runtime import sparse_updates  # only now: most programs have no such arrays

    return sparse_updates.update(name, arrays, params, out)


def are_dense(arrays: Sequence[Array]) -> bool:
    """Whether none of the arrays is kept in parts."""
    return all([array.stype == DEFAULT for array in arrays])  # noqa: C419  a list takes half the time
