"""Short expressions over graph entries that passes and operators' rules write."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Entry, GraphBuilder, Node, Shape
from mxc.compiler.ops.dtypes import NARROW
from mxc.compiler.plan import OFFSETS_PER_RUN


def widened(builder: GraphBuilder, entry: Entry) -> Entry:
    """`entry` in float32 where it is narrower: composites keep their inner steps in the wider type."""
    return builder.make("Cast", entry, dtype="float32") if builder.dtype(entry) in NARROW else entry


def as_dtype(builder: GraphBuilder, entry: Entry, dtype: str) -> Entry:
    """`entry` in `dtype`."""
    return entry if builder.dtype(entry) == dtype else builder.make("Cast", entry, dtype=dtype)


def as_shape(builder: GraphBuilder, entry: Entry, shape: Sequence[int]) -> Entry:
    """`entry` with as many elements arranged in `shape` (no empty axis)."""
    shape = tuple(shape)
    if not shape and builder.shape(entry):  # Reshape takes () as "no shape given".
        return builder.make("SliceChannel", as_shape(builder, entry, (1,)), num_outputs=1, axis=0, squeeze_axis=True)
    return entry if builder.shape(entry) == shape else builder.make("Reshape", entry, shape=shape)


def geometry(node: Node) -> dict[str, object]:
    """The parameters of a convolution's window, for another operator over the same one."""
    return {name: node.params[name] for name in ("kernel", "stride", "dilate", "pad")}


def along(builder: GraphBuilder, vector: Entry, axis: int, ndim: int) -> Entry:
    """A vector of C elements shaped to broadcast along `axis` of an array with `ndim` axes."""
    shape = [1] * ndim
    shape[axis] = builder.shape(vector)[0]
    return as_shape(builder, vector, shape)


def filled(builder: GraphBuilder, shape: Sequence[int], value: float, dtype: str) -> Entry:
    """An array of `shape` that holds `value` everywhere."""
    return builder.make("_full", shape=tuple(shape), value=float(value), dtype=dtype)


def random_numbers(builder: GraphBuilder, shape: Sequence[int], dtype: str = "float32") -> Entry:
    """Uniform float32 or float64 numbers in [0, 1); no other call for this builder's graph gives the same ones.

    Raises MXNetError when a run's offsets are used up: the next run would draw the same numbers.
    """
    return builder.make("_mxc_rand", shape=tuple(shape), offset=_stream(builder), dtype=dtype)


def random_key(builder: GraphBuilder) -> Entry:
    """Seed and offset (int64) of numbers that a routine draws; they differ from those of all other calls, as in
    `random_numbers`."""
    return builder.make("_mxc_key", offset=_stream(builder))


def _stream(builder: GraphBuilder) -> int:
    offset = builder.streams
    if offset == OFFSETS_PER_RUN:
        raise MXNetError(f"the graph draws random numbers in more than {OFFSETS_PER_RUN} places; split it")
    builder.streams += 1
    return offset


def other_axes(ndim: int, axis: int) -> tuple[int, ...]:
    """All axes of an array with `ndim` axes but `axis`."""
    return tuple(i for i in range(ndim) if i != axis % ndim)


def own_shape(builder: GraphBuilder, node: Node) -> Shape:
    assert builder.old is not None
    return builder.old.shape(Entry(node))


def finished(builder: GraphBuilder, node: Node, outputs: list[Entry]) -> list[Entry]:
    """`outputs` with the shapes and dtypes of the node's own."""
    assert builder.old is not None
    facts = builder.old
    return [as_dtype(builder, as_shape(builder, entry, facts.shape(Entry(node, i))), facts.dtype(Entry(node, i)))
            for i, entry in enumerate(outputs)]
