"""Kernels of compressed rows: routines and updates of rows, by their definition and compiled, against NumPy."""
from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from instruction_sets import InstructionSet

from mxc.compiler.kernel import compressed, interpret
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import RoutineKernel
from mxc.compiler.kernel.routines import spec
from mxc.compiler.kernel.updates import rows_update_kernel
from mxc.compiler.ops import table
from mxc.compiler.ops import updates as lines
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.storage import Csr, csr_of, dense
from mxc.runtime import updates

Case = tuple[str, list[np.ndarray], list[int], dict[str, object], np.ndarray]  # a routine, what it is given, its result


def matrix(rng: np.random.Generator, rows: int, columns: int, dtype: str) -> Csr:
    """Random, with rows that store nothing."""
    kept = (rng.random((rows, columns)) < 0.4) & (rng.random((rows, 1)) < 0.8)
    numbers, places = np.nonzero(kept)
    return csr_of(rng.integers(-4, 5, len(numbers)).astype(dtype), numbers, places, (rows, columns))


def cases(dtype: str) -> list[Case]:
    rng, found = np.random.default_rng(0), []

    def numbers(*shape: int) -> np.ndarray:
        return rng.integers(-4, 5, shape).astype(dtype)

    for rows, columns, inner, block in ((7, 5, 1, 3), (13, 40, 6, 4), (1, 9, 37, 1), (6, 0, 4, 6), (5, 3, 64, 2)):
        csr, right, left = matrix(rng, rows, columns, dtype), numbers(columns, inner), numbers(rows, inner)
        parts, whole = [csr.values, csr.columns, csr.starts], dense(csr)
        for fixed, stretches in ((0, 3), (inner, 1)):
            constants: dict[str, object] = {"real": dtype, "fixed": fixed}
            found.append(("csr_dot", [*parts, right], [rows, inner, block], constants, whole @ right))
            found.append(("csr_transposed_dot", [*parts, left], [rows, columns, inner, stretches], constants,
                          whole.T @ left))
        wide = {False: left.T.copy(), True: right.T.copy()}
        for transposed, lhs in wide.items():
            found.append(("dot_csr", [lhs, *parts], [inner, rows, columns], {"real": dtype, "transposed": transposed},
                          lhs @ (whole.T if transposed else whole)))
        data, places = numbers(rows, inner), rng.integers(-1, rows, 2 * rows)
        picked = np.where(places[:, None] < 0, 0, data[places]).astype(dtype)
        found.append(("pick_rows", [data, places], [2 * rows, inner, block], {"zero": dtype}, picked))
        order, starts = rng.permutation(rows), np.sort(rng.integers(0, rows + 1, 4))
        starts[0], starts[-1] = 0, rows
        sums = np.stack([data[order[a:b]].sum(0, dtype) for a, b in itertools.pairwise(starts)])
        found.append(("sum_groups", [data, order, starts], [3, inner, block], {"real": dtype}, sums))
    return found


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow), "int32"])
def test_routines(dtype: str, instructions: InstructionSet) -> None:
    seen = set()
    for name, arrays, integers, constants, expected in cases(dtype):
        seen.add(name)
        kernel = RoutineKernel(name, name, tuple(sorted(constants.items())),
                               (*(a.dtype.name for a in arrays), expected.dtype.name), tuple(integers), len(arrays))
        for run in (spec.run, instructions.run):
            out = np.full(expected.shape, 77, expected.dtype)
            run(kernel, [a.ravel() for a in (*arrays, out)])
            np.testing.assert_array_equal(out, expected, err_msg=f"{name} {integers}")
    assert seen | {"rank_numbers"} == {name for name, each in spec.specs().items()
                                       if each.function.__module__ == compressed.__name__}


@pytest.mark.parametrize(("count", "limit"), [(0, 3), (1, 1), (40, 9), (9, 40), (200, 200)])
def test_ranks(count: int, limit: int, instructions: InstructionSet) -> None:
    numbers = np.random.default_rng(0).integers(0, limit, count)
    expected, ranks = np.unique(numbers, return_inverse=True)
    outputs = {"int8": limit, "int32": limit, "int64": min(count, limit) + 1}
    buffers = ("int64", *outputs, "int64", "int64")
    kernel = RoutineKernel("rank_numbers", "rank_numbers", (), buffers, (count, limit), 1)
    for run in (spec.run, instructions.run):
        marks, before, found = (np.empty(size, dtype) for dtype, size in outputs.items())
        places, total = np.empty(count, np.int64), np.empty(1, np.int64)
        run(kernel, [numbers, marks, before, found, places, total])
        assert found[:total[0]].tolist() == expected.tolist() and places.tolist() == ranks.tolist()


UPDATES = [op for op in table.all_operators() if op.in_place and "sparse" in op.rules and "changes" not in op.rules]
PARAMS = {"lr": 0.5, "wd": 0.25, "rescale_grad": 0.5, "clip_gradient": 2.0, "momentum": 0.5}


def run_update(op: Operator, arrays: Sequence[np.ndarray], params: Params) -> None:
    """Change the weight and the states in place, dense, by NumPy."""
    found = updates.function_of(op, "float32")(*arrays, *updates.numbers_of(op, params).astype(np.float32))
    places = {each.name: i for i, each in enumerate(op.inputs)} | {lines.OUT: 0}
    for name, values in zip([*lines.states(op), lines.OUT], found, strict=True):
        arrays[places[name]][...] = values


@pytest.mark.parametrize("op", UPDATES, ids=lambda op: op.name)
def test_updates_of_rows(op: Operator, instructions: InstructionSet) -> None:
    rng = np.random.default_rng(0)
    params = op.make_params({name: value for name, value in PARAMS.items() if name in op.params})
    for rows, inner, count in ((9, 5, 4), (3, 33, 3), (7, 1, 1)):
        chosen = np.sort(rng.choice(rows, count, replace=False))
        arrays = [rng.random((count if i == 1 else rows, inner), np.float32) for i in range(len(op.inputs))]
        numbers = updates.numbers_of(op, params).astype(np.float32)
        expected = [array.copy() for array in arrays]
        here = [array if i == 1 else array[chosen] for i, array in enumerate(expected)]
        run_update(op, here, params)
        for i, (array, values) in enumerate(zip(expected, here, strict=True)):
            if i != 1:
                array[chosen] = values
        kernel = canonical(rows_update_kernel(op, ["float32"] * len(arrays), count, inner))
        for run in (interpret.run, instructions.run):
            given = [array.copy() for array in arrays]
            run(kernel, [*(array.ravel() for array in given), numbers, chosen])
            for ours, theirs in zip(given, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)
