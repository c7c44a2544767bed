"""An update (ops/updates.py) as a kernel: one pass over weight, gradient and states, or over some of their rows."""
from __future__ import annotations

from collections.abc import Sequence

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import LoopKernel, Store
from mxc.compiler.kernel.scalar import ValueReading
from mxc.compiler.kernel.simplify_index import index
from mxc.compiler.ops.operator import Operator
from mxc.compiler.ops.updates import OUT, compute_dtype, number_names, results


def update_kernel(op: Operator, dtypes: Sequence[str], sizes: Sequence[int], out: str | None) -> LoopKernel:
    """The kernel that runs over the elements of the weight, which is the first input.

    dtypes, sizes: those of the inputs, in elements. out: the dtype of the result, or None to write it over the weight.
    The kernel's buffers are the inputs, the numbers (in the computing dtype), and the result unless it is the weight.
    """
    compute = compute_dtype(dtypes)
    buffers = (*dtypes, compute, *([] if out is None else [out]))
    count, here = len(dtypes), ir.axis(0)
    values = [ir.load(i, here if size == sizes[0] else index(0), dtype)
              for i, (dtype, size) in enumerate(zip(dtypes, sizes, strict=True))]
    given = [ir.load(count, index(i), compute) for i in range(len(number_names(op)))]
    places = {spec.name: i for i, spec in enumerate(op.inputs)} | {OUT: 0 if out is None else count + 1}
    found = results(op, ValueReading(compute), values, given, lambda value: ir.cast(value, compute))
    stores = [Store(places[name], here, ir.cast(value, buffers[places[name]])) for name, value in found.items()]
    return LoopKernel(op.name, buffers, (sizes[0],), (), (), tuple(stores))


def rows_update_kernel(op: Operator, dtypes: Sequence[str], count: int, inner: int) -> LoopKernel:
    """The kernel that updates `count` rows, of `inner` elements, by a gradient that has these rows alone.

    dtypes: of the inputs, the weight first, the gradient second. The kernel's buffers are the inputs, the numbers (in
    the computing dtype), and the numbers of the rows, int64; it writes the result over the weight.
    """
    compute, numbers = compute_dtype(dtypes), len(dtypes)
    row = ir.cast(ir.load(numbers + 1, ir.axis(0), "int64"), ir.INDEX)
    stored, there = (ir.apply("add", ir.apply("mul", line, index(inner)), ir.axis(1)) for line in (ir.axis(0), row))
    values = [ir.load(i, stored if i == 1 else there, dtype) for i, dtype in enumerate(dtypes)]
    given = [ir.load(numbers, index(i), compute) for i in range(len(number_names(op)))]
    places = {spec.name: i for i, spec in enumerate(op.inputs)} | {OUT: 0}
    found = results(op, ValueReading(compute), values, given, lambda value: ir.cast(value, compute))
    stores = [Store(places[name], there, ir.cast(value, dtypes[places[name]])) for name, value in found.items()]
    return LoopKernel(op.name, (*dtypes, compute, "int64"), (count, inner), (), (), tuple(stores))
