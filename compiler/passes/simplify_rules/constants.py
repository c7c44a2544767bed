"""Rules that compute at compile time. An array of one value everywhere is a `_full` node: it takes no memory."""
from __future__ import annotations

import math

import numpy as np

from mxc.compiler.graph.building import filled
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.graph.purity import is_pure
from mxc.compiler.ops.dtypes import converted, numpy_dtype, widened
from mxc.compiler.ops.expr import as_dtype
from mxc.compiler.ops.operator import Kind
from mxc.compiler.passes.simplify_rules.rule import Site, rule

LARGEST = 65536  # elements of inputs and result together: with more, nothing is computed at compile time


def fill_value(entry: Entry) -> float | None:
    """The value that an array holds everywhere, or None when it is not known to be such."""
    node = entry.node
    return float(node.params.value) if node.op is not None and node.op.name == "_full" else None


@rule("_zeros", "_ones", "zeros_like", "ones_like")
def as_fill(site: Site, node: Node) -> Entry | None:
    """zeros, ones, zeros_like(x), ones_like(x) -> _full"""
    assert node.op is not None
    own = Entry(node)
    value = 1.0 if "ones" in node.op.name else 0.0
    return filled(site.builder, site.graph.shape(own), value, site.graph.dtype(own))


@rule("Reshape", "transpose", "broadcast_to", "slice_axis")
def fill_moved(site: Site, node: Node) -> Entry | None:
    """A constant array reshaped, transposed, broadcast, sliced -> a constant array of that shape"""
    value, own = fill_value(node.inputs[0]), Entry(node)
    return None if value is None else filled(site.builder, site.graph.shape(own), value, site.graph.dtype(own))


@rule()
def fill_computed(site: Site, node: Node) -> Entry | None:
    """f(constant arrays) -> a constant array, where all of the result's elements are equal"""
    assert node.op is not None
    values = [fill_value(e) for e in node.inputs]
    own = Entry(node)
    if not values or None in values or not is_pure(node):
        return None
    shapes = [site.graph.shape(e) for e in node.inputs]
    if node.op.kind <= Kind.BROADCAST:
        shapes = [(1,) * len(shape) for shape in shapes]
    if sum(math.prod(shape) for shape in [*shapes, site.graph.shape(own)]) > LARGEST:
        return None
    arrays = [converted(np.full(shape, value), numpy_dtype(site.graph.dtype(entry)))
              for shape, value, entry in zip(shapes, values, node.inputs, strict=True)]
    dtypes = [site.graph.dtype(own)]
    return _as_fill(site, own, node.op.reference(node.params, arrays, dtypes, site.options.is_train)[0])


def _as_fill(site: Site, own: Entry, array: np.ndarray) -> Entry | None:
    """A `_full` node for `array`, the value of the old graph's `own`; None unless one float64 says it all."""
    shape, dtype = site.graph.shape(own), site.graph.dtype(own)
    array = widened(as_dtype(array, numpy_dtype(dtype)))
    first = array.reshape(-1)[:1]
    if not np.array_equal(array, np.broadcast_to(first, array.shape), equal_nan=array.dtype.kind == "f"):
        return None
    value = float(first[0])
    exact = np.asarray(value).astype(array.dtype) == first[0] or math.isnan(value)
    return filled(site.builder, shape, value, dtype) if exact else None
