"""Rules about reshaping, transposing and broadcasting."""
from __future__ import annotations

from mxc.compiler.graph.building import as_shape
from mxc.compiler.graph.graph import Entry, Node
from mxc.compiler.passes.simplify_rules.rule import Site, rule


def permutation(node: Node, ndim: int) -> tuple[int, ...]:
    """The axes of a transpose: given, or all of them reversed."""
    return tuple(node.params.axes) or tuple(reversed(range(ndim)))


@rule("Reshape")
def reshape_to_same(site: Site, node: Node) -> Entry | None:
    """Reshape(x) with x's own shape -> x"""
    (data,) = node.inputs
    return site.new(data) if site.graph.shape(data) == site.graph.shape(Entry(node)) else None


@rule("Reshape")
def reshape_of_reshape(site: Site, node: Node) -> Entry | None:
    """Reshape(Reshape(x)) -> Reshape(x)"""
    inner = site.producer(node.inputs[0], "Reshape")
    if inner is None:
        return None
    return as_shape(site.builder, site.new(inner.inputs[0]), site.graph.shape(Entry(node)))


@rule("transpose")
def transpose_of_transpose(site: Site, node: Node) -> Entry | None:
    """transpose(transpose(x, p), q) -> transpose(x, p[q])"""
    inner = site.producer(node.inputs[0], "transpose")
    if inner is None:
        return None
    ndim = len(site.graph.shape(Entry(node)))
    first, second = permutation(inner, ndim), permutation(node, ndim)
    return site.builder.make("transpose", site.new(inner.inputs[0]), axes=tuple(first[a] for a in second))


@rule("transpose")
def transpose_as_reshape(site: Site, node: Node) -> Entry | None:
    """transpose that moves only axes of one element (or none) -> Reshape, or nothing at all"""
    (data,) = node.inputs
    shape = site.graph.shape(data)
    long = [a for a in permutation(node, len(shape)) if shape[a] != 1]
    if long != sorted(long):
        return None
    return as_shape(site.builder, site.new(data), site.graph.shape(Entry(node)))


@rule("broadcast_to", "slice_axis", "tile", "repeat", "Concat", "add_n")
def takes_all(site: Site, node: Node) -> Entry | None:
    """broadcast_to, slice_axis, tile or repeat that changes no shape, Concat or add_n of one -> x"""
    data = node.inputs[0]
    same = site.graph.shape(data) == site.graph.shape(Entry(node))
    return site.new(data) if same and len(node.inputs) == 1 else None


ELEMENTWISE = {
    "broadcast_add": "elemwise_add", "broadcast_sub": "elemwise_sub", "broadcast_mul": "elemwise_mul",
    "broadcast_div": "elemwise_div", "broadcast_mod": "_mod", "broadcast_power": "_power",
    "broadcast_maximum": "_maximum", "broadcast_minimum": "_minimum", "broadcast_hypot": "_hypot",
    "broadcast_equal": "_equal", "broadcast_not_equal": "_not_equal", "broadcast_greater": "_greater",
    "broadcast_greater_equal": "_greater_equal", "broadcast_lesser": "_lesser",
    "broadcast_lesser_equal": "_lesser_equal", "broadcast_logical_and": "_logical_and",
    "broadcast_logical_or": "_logical_or", "broadcast_logical_xor": "_logical_xor",
}


@rule(*ELEMENTWISE)
def broadcast_of_equal_shapes(site: Site, node: Node) -> Entry | None:
    """broadcast_OP(x, y) with x and y of one shape -> the elementwise operator"""
    assert node.op is not None
    left, right = node.inputs
    if site.graph.shape(left) != site.graph.shape(right):
        return None
    return site.builder.make(ELEMENTWISE[node.op.name], site.new(left), site.new(right), name=node.name)


@rule("dot", "batch_dot")
def transpose_into_product(site: Site, node: Node) -> Entry | None:
    """dot(transpose(x), y) -> dot(x, y, transpose_a), and likewise for y and in batches of matrices"""
    assert node.op is not None
    inputs, flips = list(node.inputs), [node.params.transpose_a, node.params.transpose_b]
    for i, entry in enumerate(node.inputs):
        inner, ndim = site.producer(entry, "transpose"), len(site.graph.shape(entry))
        swapped = (*range(ndim - 2), ndim - 1, ndim - 2)
        if inner is not None and ndim == (2 if node.op.name == "dot" else 3) and permutation(inner, ndim) == swapped:
            inputs[i], flips[i] = inner.inputs[0], not flips[i]
    if inputs == node.inputs:
        return None
    return site.builder.make(node.op.name, *map(site.new, inputs), name=node.name, transpose_a=flips[0],
                             transpose_b=flips[1])
