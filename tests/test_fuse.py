"""Fusion: which operators end in one kernel, in small graphs and in whole networks."""
from __future__ import annotations

import groups
import networks
import pytest
from models import NAMES, program
from pass_checks import options
from programs import lowered

from mxc.compiler.graph.graph import Entry
from mxc.compiler.graph.text import parse_graph
from mxc.compiler.lowering.fuse import MAX_BUFFERS, MAX_NODES, Group, Grouping, alone, fuse
from mxc.compiler.lowering.fuse_forms import is_view

X = "graph(x: float32[16,32], y: float32[16,32], w: float32[32,32], v: float32[1,32])\n"
BIG = "graph(x: float32[1,100000], i: float32[1,4,8,8])\n"
IMAGE = "graph(i: float32[2,4,8,8], k: float32[2,4,4,4], c: float32[1,4,1,1])\n"
POOL = "Pooling({}, kernel=(2, 2), stride=(2, 2), pool_type=max)"


def labels(text: str, static: frozenset[str] = frozenset()) -> list[str]:
    """The labels of the kernels of the graph that `text` describes."""
    made = fuse(parse_graph(text), options(static=static))
    return [g.label for g in made if not all(map(is_view, g.nodes))]


ONE_KERNEL = {
    "map: a chain": (X + "a = exp(x)\n b = tanh(a)\n c = elemwise_add(b, y)\n return c", "exp+tanh+elemwise_add"),
    "map: a value with two readers, both there": (
        X + "a = exp(x)\n b = tanh(a)\n c = elemwise_add(a, b)\n return c, a", "exp+tanh+elemwise_add"),
    "map: a broadcast of a cheap value": (X + "a = relu(v)\n b = broadcast_add(x, a)\n return b", "relu+broadcast_add"),
    "map: a costly value spread no further": (X + "a = exp(x)\n b = transpose(a)\n return b", "exp+transpose"),
    "map: a cheap value between which a node interpolates, but not often": (
        "graph(i: float32[2,4,8,8])\n r = relu(i)\n b = _contrib_BilinearResize2D(r, height=4, width=4)\n return b",
        "relu+_contrib_BilinearResize2D"),
    "map: rearranged twice": (X + "a = transpose(x)\n b = slice_axis(a, axis=1, begin=2, end=9)\n return b",
                              "transpose+slice_axis"),
    "map: a view with more axes of extent 1": (
        X + "a = exp(x)\n b = Reshape(a, shape=(16, 1, 32))\n c = tanh(b)\n return c", "exp+tanh"),
    "map: a view whose reader rearranges anyway": (
        X + "a = exp(x)\n b = Reshape(a, shape=(4, 4, 32))\n c = transpose(b)\n return c", "exp+transpose"),
    "reduce: what goes in and what follows at the domain": (
        X + "a = exp(x)\n s = sum(a, axis=(1,))\n r = sqrt(s)\n return r", "exp+sum+sqrt"),
    "reduce: spread back over the space": (
        X + "m = max(x, axis=(1,), keepdims=True)\n d = broadcast_sub(x, m)\n e = exp(d)\n"
        " s = sum(e, axis=(1,), keepdims=True)\n q = broadcast_div(e, s)\n return q",
        "max+broadcast_sub+exp+sum+broadcast_div"),
    "reduce: over all axes, read by nobody here": (X + "a = square(x)\n s = sum(a)\n return s", "square+sum"),
    "reduce: a window, and what follows": (IMAGE + f"p = {POOL.format('i')}\n r = elemwise_add(p, k)\n return r",
                                           "Pooling+elemwise_add"),
    "reduce: a costly value for each point of the domain, read before the reduction": (
        IMAGE + "r = rsqrt(c)\n b = broadcast_mul(k, r)\n s = sum(b, axis=(0, 2, 3))\n return s",
        "rsqrt+broadcast_mul+sum"),
    "reduce: siblings share a sweep": (
        X + "s = sum(x, axis=(1,))\n m = max(x, axis=(1,))\n return s, m", "sum+max"),
    "anchor: with its epilogue": (
        X + "d = dot(x, w)\n b = broadcast_add(d, v)\n r = relu(b)\n e = elemwise_mul(r, y)\n return e",
        "dot+broadcast_add+relu+elemwise_mul"),
    "anchor: what its epilogue broadcasts": (
        X + "d = dot(x, w)\n u = relu(v)\n b = broadcast_add(d, u)\n return b", "dot+relu+broadcast_add"),
    "anchor: results before and after the epilogue": (X + "d = dot(x, w)\n r = relu(d)\n return d, r", "dot+relu"),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name):
    text, expected = ONE_KERNEL[name]
    assert [sorted(label.split("+")) for label in labels(text)] == [sorted(expected.split("+"))]


SEVERAL = {
    "a path leaves the group and comes back": (
        X + "a = relu(x)\n d = dot(a, w)\n e = dot(d, w)\n s = elemwise_add(a, e)\n return s",
        ["relu", "dot", "dot+elemwise_add"]),
    "a cheap value that is read several times for each of its elements, between which a node interpolates": (
        IMAGE + "r = relu(i)\n b = _contrib_BilinearResize2D(r, height=32, width=32)\n return b",
        ["relu", "_contrib_BilinearResize2D"]),
    "an anchor reads from memory": (X + "a = relu(x)\n d = dot(a, w)\n return d", ["relu", "dot"]),
    "two anchors": (X + "d = dot(x, w)\n e = dot(d, w)\n return e", ["dot", "dot"]),
    "an anchor and a reduction": (X + "d = dot(x, w)\n s = sum(d, axis=(1,))\n return s", ["dot", "sum"]),
    "what reductions alone read, and the anchor's own result": (
        X + "d = dot(x, w)\n e = elemwise_mul(d, y)\n s = sum(e, axis=(1,))\n return d, s",
        ["dot", "elemwise_mul+sum"]),
    "an epilogue rearranges nothing": (X + "d = dot(x, w)\n t = transpose(d)\n return t", ["dot", "transpose"]),
    "a costly value is not computed for each reader": (
        X + "a = exp(v)\n b = broadcast_add(x, a)\n return b", ["exp", "broadcast_add"]),
    "what is read elsewhere and stored too": (
        X + "a = relu(x)\n b = transpose(a)\n return a, b", ["relu", "transpose"]),
    "reductions over different axes": (
        X + "s = sum(x, axis=(0,))\n t = sum(x, axis=(1,))\n return s, t", ["sum", "sum"]),
    "a reduction of a reduction": (
        X + "s = sum(x, axis=(1,))\n t = max(s, axis=(0,))\n return t", ["sum", "max"]),
    "too few points of the domain to spread back": (
        BIG + "s = sum(x, axis=(1,), keepdims=True)\n d = broadcast_div(x, s)\n return d", ["sum", "broadcast_div"]),
    "a result that lines up with another axis": (
        X + "s = sum(w, axis=(1,))\n b = broadcast_add(w, s)\n return b", ["sum", "broadcast_add"]),
    "a window reads from memory": (IMAGE + f"a = relu(i)\n p = {POOL.format('a')}\n return p", ["relu", "Pooling"]),
    "a window and another reduction": (
        IMAGE + f"p = {POOL.format('i')}\n s = sum(p, axis=(1,))\n return s", ["Pooling", "sum"]),
    "a view of another shape ends a chain": (
        X + "a = exp(x)\n b = Reshape(a, shape=(4, 4, 32))\n c = tanh(b)\n return c", ["exp", "tanh"]),
    "independent maps": (X + "a = exp(x)\n b = tanh(y)\n return a, b", ["exp", "tanh"]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_kernels(name):
    text, expected = SEVERAL[name]
    assert labels(text) == expected


def test_parts_of_the_plan_share_no_kernel():
    text = X + "a = exp(v)\n b = tanh(x)\n c = broadcast_add(b, a)\n g = relu(c)\n return c, grad(x) = g"
    assert labels(text, frozenset("v")) == ["exp", "tanh+broadcast_add", "relu"]


def test_no_kernel_grows_without_bound():
    chain = "\n".join(f"a{i} = tanh({f'a{i - 1}' if i else 'x'})" for i in range(2 * MAX_NODES + 1))
    sizes = [len(label.split("+")) for label in labels(f"{X}{chain}\n return a{2 * MAX_NODES}")]
    assert sum(sizes) == 2 * MAX_NODES + 1 and max(sizes) == MAX_NODES and len(sizes) == 3


def test_no_kernel_has_too_many_buffers():
    count = 2 * MAX_BUFFERS
    head = ", ".join(f"x{i}: float32[4]" for i in range(count))
    sums = "\n".join(f"a{i} = elemwise_add({f'a{i - 1}' if i > 1 else 'x0'}, x{i})" for i in range(1, count))
    made = fuse(parse_graph(f"graph({head})\n{sums}\n return a{count - 1}"), options())
    for group in made:
        inputs = {e for n in group.nodes for e in n.inputs if e.node not in group.nodes}
        assert len(inputs) + len(group.stored) <= MAX_BUFFERS
    assert len(made) == 3


def test_unfused():
    text = ONE_KERNEL["anchor: with its epilogue"][0]
    assert [g.label for g in alone(parse_graph(text), options())] == [
        "dot", "broadcast_add", "relu", "elemwise_mul"]


# -- networks


@pytest.mark.parametrize("train", (False, True), ids=("inference", "training"))
@pytest.mark.parametrize("name", groups.NETWORKS)
def test_groups_of_networks(name, train):
    """After a change of the passes: python tests/groups.py --write, and read the difference."""
    assert groups.text_of(name, train) == groups.path_of(name, train).read_text()


def test_resnet20_is_the_saved_one():
    """networks.py builds the graph of the saved model: the same operators with the same parameters in one order."""
    ours, saved = (program(name, False) for name in ("resnet20", "cifar_resnet20_v1"))
    assert [g.label for g in ours.groups] == [g.label for g in saved.groups]
    assert [[s.shape for s in each.storages] for each in ours.launches] == \
        [[s.shape for s in each.storages] for each in saved.launches]


def test_resnet50_inference_has_no_kernels_of_layers_that_fuse():
    made = lowered(networks.resnet50().graph, {"data": (1, 3, 224, 224)})
    forward = [g for g in made.groups if g.phase == "forward" and not all(map(is_view, g.nodes))]
    assert [g.label for g in forward if g.form.kind != "anchor"] == ["Pooling", "mean"]
    assert len(forward) == 53 + 2 + 1  # convolutions, poolings, the last layer
    assert sum(g.label == "_mxc_blocked_convolution+broadcast_add+elemwise_add+relu" for g in forward) == 16


@pytest.mark.parametrize("train", (False, True), ids=("inference", "training"))
@pytest.mark.parametrize("name", NAMES)
def test_no_more_can_be_merged(name, train):
    """For any two kernels of which one reads the other's result, their union fits no form, is too large, or cannot run
    at one time: so every chain of elementwise operators between two anchors is in one kernel."""
    made = program(name, train)
    grouping = Grouping(made.graph, options())
    for group in made.groups:
        for node in group.nodes:
            grouping.group_of[node] = group
            grouping.phase[node] = group.phase
    for group in made.groups:
        for producer in producers(grouping, group):
            assert not grouping.try_merge(producer, group), f"{producer.label} could be part of {group.label}"


def producers(grouping: Grouping, group: Group) -> list[Group]:
    """The kernels whose results `group` reads, views between them left out; none for a group of views."""
    if all(map(is_view, group.nodes)):
        return []
    found = {id(g): g for node in group.nodes for e in node.inputs
             if (g := grouping.group_of.get(Entry(e.node).node)) is not None and g is not group}
    return [g for g in found.values() if not all(map(is_view, g.nodes))]
