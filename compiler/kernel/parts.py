"""Sums in parts: the template that sums a part of another one's depth, and the sizes that this is decided by."""
from __future__ import annotations

import math

from mxc.compiler.kernel import calls, geometry, ir
from mxc.compiler.kernel.geometry import Geometry
from mxc.compiler.kernel.ir import CallKernel, Store

_SUMS = geometry.Convolution, geometry.ConvolutionDataGrad, geometry.ConvolutionWeightGrad


def parts(whole: Geometry[int], part: int) -> geometry.Parts[int]:
    """The sums of another template over parts of its depth, of `part` elements each but for the last one; output axes
    (part, then those of `whole`, merged where it is `flat`). Operands: those of `whole`.

    The depth of a product is k. That of a convolution, in row-major order, is its taps and its channels (of the
    gradient to its data: the filters), that of the gradient to its weight the images and pixels of the results.
    """
    return geometry.Parts(dtype=whole.dtype, whole=whole, part=part)


def sums(g: Geometry[int]) -> tuple[int, int, int, int] | None:
    """Of a template that `parts` may divide: how many matrices of results it has, of how many rows and columns, and the
    depth of their sums. None for others."""
    if isinstance(g, geometry.Gemm):
        return None if g.packed_b else (g.batch, g.m, g.n, g.k)
    if not isinstance(g, _SUMS) or (not isinstance(g, geometry.ConvolutionWeightGrad) and g.block):
        return None
    w = g.window
    taps, out = math.prod(w.kernel), w.batch * math.prod(w.out)
    if isinstance(g, geometry.Convolution):
        return w.groups, w.filters, out, taps * w.channels
    if isinstance(g, geometry.ConvolutionDataGrad):
        return w.groups, w.channels, w.batch * math.prod(w.data), taps * w.filters
    return w.groups, w.filters, w.channels * taps, out


def output_axes(g: Geometry[int]) -> tuple[int, ...]:
    """The extents of the output axes of a template that `sums` knows, or of its parts."""
    if isinstance(g, geometry.Parts):
        known = sums(g.whole)
        assert known is not None
        return (-(-known[3] // g.part), *output_axes(g.whole))
    if isinstance(g, geometry.Gemm):
        return g.batch, g.m, g.n
    assert isinstance(g, _SUMS)
    w = g.window
    axes = {geometry.Convolution: (w.batch, w.groups * w.filters, *w.out),
            geometry.ConvolutionDataGrad: (w.batch, w.groups * w.channels, *w.data),
            geometry.ConvolutionWeightGrad: (w.groups * w.filters, w.channels, *w.kernel)}[type(g)]
    if not g.flat:
        return axes
    first, merged = g.merged()
    return (*axes[:first], math.prod(merged))


def dense(kernel: CallKernel, made: Geometry[int], dtype: str) -> CallKernel:
    """A kernel with the operands of another one that stores what a geometry computes, as it is, in a dense array."""
    axes = output_axes(made)
    strides = {axis: math.prod(axes[axis + 1:]) for axis in range(len(axes))}
    store = Store(kernel.operands, calls.linear(strides), ir.acc(0, dtype))
    return CallKernel(kernel.name, made, (*kernel.buffers[:kernel.operands], dtype), (store,))
