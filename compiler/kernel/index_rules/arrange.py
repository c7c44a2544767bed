"""Index rules of operators that rearrange, cut and join."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rules.context import Context, Index, flatten, replaced, unflatten
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.shapes.arrange import slice_bounds
from mxc.compiler.ops.table import Params


def reshape(c: Context, params: Params, index: Index) -> Value:
    """Same elements in row-major order: Reshape, Flatten, expand_dims and the like."""
    return c.load(0, unflatten(flatten(index, c.out_shape), c.shape(0)))


def transpose(c: Context, params: Params, index: Index) -> Value:
    """Axis i of the output is axis axes[i] of the data; without `axes` all are reversed."""
    rank = len(index)
    axes = params.axes or tuple(reversed(range(rank)))
    return c.load(0, [index[list(axes).index(i)] for i in range(rank)])


def slice_axis(c: Context, params: Params, index: Index) -> Value:
    """Elements from `begin` on; negative ones count from the end."""
    axis = params.axis % len(index)
    begin, _ = slice_bounds(params, c.shape(0)[axis])
    return c.load(0, replaced(index, axis, ir.apply("add", index[axis], number(begin))))


def concat(c: Context, params: Params, index: Index) -> Value:
    """Inputs one after the other along `dim`: each guarded by its stretch."""
    axis = params.dim % len(index)
    here, start = index[axis], 0
    result = ir.const(0, c.out_dtype)
    for k in range(c.count):
        stop = start + c.shape(k)[axis]
        inside = ir.apply("and", ir.apply("ge", here, number(start)), ir.apply("lt", here, number(stop)))
        moved = ir.apply("sub", here, number(start))
        result = c.load(k, replaced(index, axis, moved), inside, result)
        start = stop
    return result


def slice_channel(c: Context, params: Params, index: Index) -> Value:
    """Equal parts along `axis`; with `squeeze_axis` parts of size 1 without that axis."""
    shape = c.shape(0)
    axis = params.axis % len(shape)
    first = number(c.output * (shape[axis] // params.num_outputs))
    if params.squeeze_axis:
        return c.load(0, (*index[:axis], first, *index[axis:]))
    return c.load(0, replaced(index, axis, ir.apply("add", index[axis], first)))


def pack_rows(c: Context, params: Params, index: Index) -> Value:
    """(G, R, K) -> (G, ceil(R / block), K, block): rows in blocks, the last block filled up with zeros."""
    group, block, depth, row = index
    source = ir.apply("add", ir.apply("mul", block, number(params.block)), row)
    inside = ir.apply("lt", source, number(c.shape(0)[1]))
    return c.load(0, (group, source, depth), inside, ir.const(0, c.out_dtype))
