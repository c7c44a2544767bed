"""Updates of weights where the gradient, the weight or a state is row_sparse.

By a row_sparse gradient an operator that has such a form changes only the rows that the gradient has ("lazily"): others
keep their values, momenta and means. All other operators get a dense copy of the gradient. A row_sparse weight or state
stores all of its rows from its first update on, and is changed where it lies.
"""
from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Node
from mxc.compiler.ops import table
from mxc.compiler.ops import updates as lines
from mxc.compiler.ops.infer import infer_node
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.storage import DEFAULT, Rows, dense
from mxc.runtime import engine, runner, tape, updates
from mxc.runtime.array import LARGE, Array
from mxc.runtime.eager import quiet
from mxc.runtime.sparse_array import SparseArray
from mxc.runtime.step_table import StepTable

COMPILED = 1 << 11  # elements of a gradient from which on its rows are updated by a kernel
# Kernels update so many rows at once: how many there are differs from step to step, and a kernel for each number would
# take longer to prepare than to run.
BLOCKS = (4096, 256, 16, 1)


def update(name: str, arrays: Sequence[Array], params: Mapping[str, object], out: Sequence[Array] | None = None,
           ) -> list[Array]:
    """As `updates.update`, of arrays of any storage types, of a single weight."""
    op = table.get(name)
    if op.many or op.along:
        raise MXNetError(f"operator {name} takes dense arrays: update a weight whose gradient is row_sparse by itself")
    made, weight = op.make_params(params), arrays[0]
    updates.check_count(op, arrays, op.input_names(made))
    infer_node(Node(op, "", None, made), [a.shape for a in arrays], [a.dtype for a in arrays])
    target = weight.copied() if out is None else out[0]
    if out is not None and target is not weight:
        if (target.shape, target.dtype) != (weight.shape, weight.dtype):
            raise MXNetError(f"operator {name}: the result is {weight.dtype} of shape {weight.shape}, out is "
                             f"{target.dtype} of shape {target.shape}; they must be the same")
        target.copy_from(weight)
    changed, gradient = [target, *arrays[2:]], arrays[1]
    if tape.state.recording:
        tape.check_writes(name, changed)
    rule = op.rule("sparse")
    is_lazy = rule is not None and rule(op, made, tuple([a.stype for a in arrays])) is not None

    def work() -> None:
        memory, slope = [_whole(array) for array in changed], gradient.given()
        if is_lazy:
            assert isinstance(slope, Rows)
            _by_rows(op, made, memory, slope)
        else:
            given = [Array(m, weight.context, engine.Variable()) for m in (memory[0], dense(slope), *memory[1:])]
            updates.update(name, given, params, given[:1])

    variables = [array.variable for array in changed]
    engine.push(work, [gradient.variable], variables, name, gradient.stype == DEFAULT and gradient.size < LARGE)
    return [target]


def _whole(array: Array) -> np.ndarray:
    """The memory of all elements of an array, in the middle of work that writes it."""
    if not isinstance(array, SparseArray):
        return array.memory
    parts = array.given()
    if not isinstance(parts, Rows):
        raise MXNetError(f"an update takes dense and row_sparse arrays, got a {array.stype} one")
    if len(parts.rows) < parts.shape[0] or not parts.values.flags.c_contiguous:
        parts = Rows(np.ascontiguousarray(dense(parts)), np.arange(parts.shape[0]), parts.shape)
        array.holder.put(parts)
    return parts.values


def _by_rows(op: Operator, params: Params, memory: Sequence[np.ndarray], slope: Rows) -> None:
    """Update the rows of weight and states that a gradient has."""
    count, inner = len(slope.rows), prod(slope.shape[1:])
    changes = op.rule("changes")
    if count * inner >= COMPILED and changes is None:
        _by_kernel(op, params, memory, slope, count, inner)
    elif count:
        here = [array[slope.rows] for array in memory]
        given = [here[0], slope.values, *here[1:]]
        if changes is not None:
            here[0] = quiet.run(changes, params, given)[0]
        else:
            here = _by_numpy(op, params, given)
        for array, values in zip(memory, here, strict=True):
            array[slope.rows] = values


def _by_numpy(op: Operator, params: Params, given: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The new weight and states."""
    compute = np.dtype(lines.compute_dtype([array.dtype.name for array in given]))
    numbers = updates.numbers_of(op, params).astype(compute)
    values = dict(zip([*lines.states(op), lines.OUT], quiet.run(
        updates.function_of(op, compute.name), *[array.astype(compute) for array in given], *numbers), strict=True))
    names = [spec.name for spec in op.inputs]
    return [values[lines.OUT], *[values.get(name, array) for name, array in zip(names[2:], given[2:], strict=True)]]


def _by_kernel(op: Operator, params: Params, memory: Sequence[np.ndarray], slope: Rows, count: int, inner: int) -> None:
    weight, *states = memory
    values = np.ascontiguousarray(slope.values)
    dtypes = tuple([array.dtype.name for array in (weight, values, *states)])
    numbers = updates.numbers_of(op, params).astype(lines.compute_dtype(dtypes))
    addresses = [_address(array) for array in (weight, values, *states, numbers, slope.rows)]
    gradient, rows = 1, len(addresses) - 1  # the addresses that move on from block to block
    steps, first = [], 0
    for block in BLOCKS:
        while count - first >= block:
            address, integers, units = _code(op, dtypes, block, inner)
            here = list(addresses)
            here[gradient] += first * inner * values.itemsize
            here[rows] += first * slope.rows.itemsize
            steps.append((address, [*here, *integers], units))
            first += block
    runner.run(StepTable(steps))


@functools.lru_cache(maxsize=1024)
def _code(op: Operator, dtypes: tuple[str, ...], block: int, inner: int) -> tuple[int, tuple[int, ...], int]:
    from mxc.compiler.api import compile_rows_update  # only now: small weights need no compiler

    return compile_rows_update(op, dtypes, block, inner)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]
