"""Index rules of operators that rearrange or repeat elements."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode, flatten, replaced, unflatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.operator import Params


def reshape(c: IndexNode, params: Params, index: Index) -> Value:
    """Same elements in row-major order: Reshape, Flatten, expand_dims and the like."""
    return c.load(0, unflatten(flatten(index, c.out_shape), c.shape(0)))


def transpose(c: IndexNode, params: Params, index: Index) -> Value:
    """Axis i of the output is axis axes[i] of the data; without `axes` all are reversed."""
    rank = len(index)
    axes = params.axes or tuple(reversed(range(rank)))
    return c.load(0, [index[list(axes).index(i)] for i in range(rank)])


def tile(c: IndexNode, params: Params, index: Index) -> Value:
    """The index within one of the copies; axes that the data does not have are dropped."""
    shape = c.shape(0)
    own = index[len(index) - len(shape):]
    return c.load(0, [ir.apply("mod", i, number(extent)) for i, extent in zip(own, shape, strict=True)])


def repeat(c: IndexNode, params: Params, index: Index) -> Value:
    """The place along `axis` (without one: among all elements in a row), divided by the number of repeats."""
    times = number(params.repeats)
    if params.axis is None:
        return c.load(0, unflatten(ir.apply("div", flatten(index, c.out_shape), times), c.shape(0)))
    axis = params.axis % len(index)
    return c.load(0, replaced(index, axis, ir.apply("div", index[axis], times)))


def depth_to_space(c: IndexNode, params: Params, index: Index) -> Value:
    """The data's element; the place within the block is the slower part of its channel's number."""
    n, channel, row, column = index
    size = number(params.block_size)
    block = flatten((ir.apply("mod", row, size), ir.apply("mod", column, size)), (params.block_size,) * 2)
    place = ir.apply("add", ir.apply("mul", block, number(c.out_shape[1])), channel)
    return c.load(0, (n, place, ir.apply("div", row, size), ir.apply("div", column, size)))


def space_to_depth(c: IndexNode, params: Params, index: Index) -> Value:
    """The inverse of depth_to_space."""
    n, channel, row, column = index
    size, channels = number(params.block_size), number(c.shape(0)[1])
    down, right = unflatten(ir.apply("div", channel, channels), (params.block_size,) * 2)
    return c.load(0, (n, ir.apply("mod", channel, channels), ir.apply("add", ir.apply("mul", row, size), down),
                      ir.apply("add", ir.apply("mul", column, size), right)))
