"""Products that read and write by their strides what copies would rearrange."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from instruction_sets import InstructionSet
from library_cases import check, values
from pass_checks import values_for
from programs import lowered

import mxc as mx
from mxc.compiler.kernel import calls, ir
from mxc.compiler.kernel.gemm_of_parts import moved_gemm
from mxc.compiler.kernel.geometry import Gemm
from mxc.compiler.kernel.ir import CallKernel, LoopKernel, Store
from mxc.compiler.lowering.launches import Launch
from mxc.compiler.ops.dtypes import numpy_dtype
from mxc.compiler.targets.cpu.preferences import FIGURES

LENGTH, BATCH, HEADS, DEPTH = 5, 2, 3, 4
Shapes = dict[str, tuple[int, ...]]
a, b, c = (mx.sym.Variable(name) for name in "abc")
contrib = mx.sym.contrib


def heads(x: mx.sym.Symbol, part: int, count: int = 3) -> mx.sym.Symbol:
    """(batch * heads, length, depth) of projections (length, batch, heads * count * depth)."""
    x = mx.sym.reshape(x, shape=(LENGTH, BATCH * HEADS, count, DEPTH))
    x = mx.sym.reshape(mx.sym.slice_axis(x, axis=2, begin=part, end=part + 1), shape=(LENGTH, BATCH * HEADS, DEPTH))
    return mx.sym.transpose(x, axes=(1, 0, 2))


def run(net: mx.sym.Symbol, shapes: Shapes, grad_req: str = "null") -> list[Launch]:
    """The launches, which compute the same as without the stage."""
    found = []
    for skip in ((), ("strides",)):
        made = lowered(net.graph, shapes, None, dict.fromkeys(shapes, grad_req), skip=("share_code", "chains", *skip))
        outputs, _ = made.run(values_for(made.graph))
        found.append((made.launches, outputs))
    for got, want in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    return found[0][0]


def kinds(launches: Sequence[Launch]) -> list[str]:
    return [launch.kernel.geometry.template if isinstance(launch.kernel, CallKernel) else type(launch.kernel).__name__
            for launch in launches]


PROJECTIONS = {"a": (LENGTH, BATCH, HEADS * 3 * DEPTH)}
WEIGHTS = {**PROJECTIONS, "b": (BATCH * HEADS, LENGTH, LENGTH)}


def test_attention_is_one_launch_for_each_product() -> None:
    assert kinds(run(contrib.interleaved_matmul_selfatt_qk(a, heads=HEADS), PROJECTIONS)) == ["gemm_of_parts"]
    assert kinds(run(contrib.interleaved_matmul_selfatt_valatt(a, b, heads=HEADS), WEIGHTS)) == ["gemm_of_parts"]


def test_gradients_of_attention() -> None:
    launches = run(contrib.interleaved_matmul_selfatt_qk(a, heads=HEADS), PROJECTIONS, "write")
    assert kinds(launches)[:2] == ["gemm_of_parts", "gemm"]  # the queries are at the beginning of what is read
    assert not any("slice_axis" in launch.label for launch in launches if isinstance(launch.kernel, LoopKernel))
    run(contrib.interleaved_matmul_selfatt_valatt(a, b, heads=HEADS), WEIGHTS, "write")


def test_a_transposed_result_is_stored_so() -> None:
    net = mx.sym.transpose(mx.sym.batch_dot(a, b), axes=(1, 0, 2))
    assert kinds(run(net, {"a": (3, 4, 5), "b": (3, 5, 6)})) == ["gemm"]


def test_a_factor_of_numbers_that_are_rounded_stays() -> None:
    net = contrib.interleaved_matmul_selfatt_qk(a, heads=HEADS)
    made = lowered(net.graph, PROJECTIONS, {"a": "float16"})
    assert sorted(kinds(made.launches)) == ["LoopKernel", "gemm_of_parts"]


@pytest.mark.parametrize(("net", "shapes", "copies"), [
    (mx.sym.Group([mx.sym.batch_dot(heads(a, 0), b), heads(a, 0) + 1]), {**PROJECTIONS, "b": (6, DEPTH, 7)}, 1),
    (mx.sym.Group([mx.sym.batch_dot(a, b), mx.sym.transpose(mx.sym.batch_dot(a, b), axes=(1, 0, 2))]),
     {"a": (3, 4, 5), "b": (3, 5, 6)}, 1),  # both orders of the result are asked for
    (mx.sym.transpose(mx.sym.batch_dot(a, b), axes=(2, 0, 1)), {"a": (3, 4, 5), "b": (3, 5, 6)}, 1),  # scattered
    (mx.sym.batch_dot(mx.sym.reverse(a, axis=1), b), {"a": (3, 4, 5), "b": (3, 5, 6)}, 1),
    # of two axes of a batch neither follows the other
    (mx.sym.batch_dot(mx.sym.transpose(a, axes=(0, 2, 1, 3)), b), {"a": (2, 4, 3, 5), "b": (2, 3, 5, 6)}, 1),
    (mx.sym.batch_dot(mx.sym.tile(a, reps=(1, 1, 2)), b), {"a": (3, 4, 5), "b": (3, 10, 6)}, 1),
    (mx.sym.dot(mx.sym.slice_axis(a, axis=1, begin=2, end=7), b), {"a": (1, 9), "b": (5, 6)}, 1),  # a vector
])
def test_what_stays(net: mx.sym.Symbol, shapes: Shapes, copies: int) -> None:
    assert kinds(run(net, shapes)).count("LoopKernel") == copies


@pytest.mark.parametrize("of", [a * 0.5, mx.sym.transpose(a)], ids=["scaled", "transposed"])
def test_an_operand_that_is_added_to_the_result_too(of: mx.sym.Symbol) -> None:
    for net in (of + mx.sym.dot(of, b), mx.sym.dot(b, of) - of, of * mx.sym.dot(of, of) + b):
        run(mx.sym.log_softmax(mx.sym.dot(net, c)), {"a": (8, 8), "b": (8, 8), "c": (8, 8)}, "write")


def test_rows_and_columns_of_a_larger_matrix() -> None:
    part = mx.sym.slice(a, begin=(3, 2), end=(12, 10))
    assert kinds(run(mx.sym.dot(part, b), {"a": (15, 11), "b": (8, 7)})) == ["gemm_of_parts"]
    assert kinds(run(mx.sym.dot(part, part, transpose_b=True), {"a": (15, 11)})) == ["gemm_of_parts"]


def test_what_is_overwritten_before_it_is_read_again_is_copied() -> None:
    """A new state of a loop is written over the old one, of which a part is still to be multiplied."""
    def step(x: mx.sym.Symbol, state: mx.sym.Symbol) -> tuple[mx.sym.Symbol, mx.sym.Symbol]:
        return mx.sym.dot(mx.sym.slice_axis(state, axis=1, begin=1, end=4), x), mx.sym.tanh(state + 1)

    outputs, last = contrib.foreach(step, a, b)
    bound = mx.sym.Group([outputs, last]).simple_bind(mx.cpu(), a=(4, 3, 2), b=(5, 6), grad_req="null")
    rng = np.random.default_rng(0)
    x, state = rng.uniform(-1, 1, (4, 3, 2)), rng.uniform(-1, 1, (5, 6))
    bound.arg_dict["a"][:], bound.arg_dict["b"][:] = x, state
    got = [out.asnumpy() for out in bound.forward()]
    wanted = []
    for one in x:
        wanted.append(state[:, 1:4] @ one)
        state = np.tanh(state + 1)
    np.testing.assert_allclose(got[0], wanted, 1e-5, 1e-6)
    np.testing.assert_allclose(got[1], state, 1e-5)


SIZES = [(70, 35, 19, False), (5, 64, 400, True), (33, 33, 4, True)]  # m, n, k, and whether B is transposed


def case(sizes: tuple[int, int, int, bool], dtype: str,
         factor: float | None = None) -> tuple[CallKernel, list[np.ndarray]]:
    """A product of matrices that lie side by side in the rows of larger arrays, and its arrays."""
    m, n, k, turned = sizes
    rng, batch = np.random.default_rng(0), 2
    rows = n if turned else k
    first, second = values(rng, (m, batch * k + 7), dtype), values(rng, (rows, batch * 64 + 800), dtype)
    of_b = (k, 1, second.shape[1]) if turned else (n, second.shape[1], 1)
    old = calls.gemm(dtype, (batch, m, n, k), (m * k, k, 1), (n * k, n, 1), figures=FIGURES.products)
    made = moved_gemm(old, (k, first.shape[1], 1), of_b, (5, 3), FIGURES.products)
    assert isinstance(made, Gemm) and made.template == "gemm_of_parts"
    value = ir.acc(0, dtype)
    if factor is not None:
        value = ir.apply("mul", value, ir.const(factor, dtype))
    store = Store(2, calls.linear({0: n, 1: batch * n, 2: 1}), value)
    arrays = [first.ravel(), second.ravel(), np.zeros(batch * m * n, numpy_dtype(dtype))]
    return calls.call("parts", made, (dtype,) * 3, [store]), arrays


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("factor", [None, 0.3])
@pytest.mark.parametrize("sizes", SIZES)
def test_kernels_of_parts(dtype: str, factor: float | None, sizes: tuple[int, int, int, bool],
                          instructions: InstructionSet) -> None:
    check(*case(sizes, dtype, factor), instructions)
