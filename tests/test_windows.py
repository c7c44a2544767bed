"""Loop kernels over windows that slide along rows, as pooling of plain arrays has them."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from guarded import needs_linux
from instruction_sets import InstructionSet
from kernel_cases import F, arrays_for, compare, expected, flat
from test_loops import first_reach

import mxc as mx
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.interpret import identity
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, Value, acc, apply, axis, const, load
from mxc.compiler.kernel.simplify_index import index
from mxc.compiler.kernel.text import code_text
from mxc.compiler.targets.cpu.emit import skeletons
from mxc.compiler.targets.cpu.emit.sliding import sliding

Pair = tuple[int, int]


def total(*terms: Value) -> Value:
    made = terms[0]
    for term in terms[1:]:
        made = apply("add", made, term)
    return made


def windows(combine: str, dtype: str, data: tuple[int, int, int], kernel: Pair, stride: Pair, pad: Pair,
            beyond: int = 0, dilate: int = 1, fill: float | None = None, squared: bool = False) -> LoopKernel:
    """Windows over planes (count, height, width). beyond: so many more results along a row than fit. squared: of the
    elements' squares."""
    count, height, width = data
    out = (count, (height + 2 * pad[0] - kernel[0]) // stride[0] + 1,
           (width + 2 * pad[1] - (kernel[1] - 1) * dilate - 1) // stride[1] + 1 + beyond)
    y, x = (total(apply("mul", axis(1 + i), index(stride[i])), apply("mul", axis(3 + i), index((1, dilate)[i])),
                  index(-pad[i])) for i in range(2))
    tests = [apply("ge", at, index(0)) for at, p in ((y, pad[0]), (x, pad[1])) if p]
    tests += [apply("lt", y, index(height))] if pad[0] else []
    tests += [apply("lt", x, index(width))] if pad[1] or beyond else []
    place = total(apply("mul", axis(0), index(height * width)), apply("mul", y, index(width)), x)
    wide = ir.computing_dtype(dtype)
    other = const(identity(combine, wide) if fill is None else fill, dtype)
    when = None
    for test in tests:
        when = test if when is None else apply("and", when, test)
    seen = load(0, place, dtype, when, other) if when is not None else load(0, place, dtype)
    body = seen if combine != "sum" else ir.cast(seen, wide)
    body = apply("mul", body, body) if squared else body
    result = ir.cast(apply("mul", acc(0, body.dtype), const(0.5, body.dtype)), dtype)
    name = f"{combine}{' of squares' * squared} {dtype} {data} {kernel} {stride} {pad} {beyond} {dilate}"
    return canonical(LoopKernel(name, (dtype, dtype), out, kernel, (Accumulator(combine, body),),
                                (Store(1, flat(out), result),)))


def turned() -> LoopKernel:
    """Windows whose elements are read from the last one on, as in the gradient of an average."""
    column = total(axis(1), apply("mul", axis(3), index(-1)), index(1))
    guard = apply("and", apply("ge", column, index(0)), apply("lt", column, index(37)))
    place = total(apply("mul", axis(0), index(74)), apply("mul", axis(2), index(37)), column)
    body = load(0, place, F, guard, const(0.0, F))
    return canonical(LoopKernel("turned", (F, F), (3, 37), (2, 3), (Accumulator("sum", body),),
                                (Store(1, flat((3, 37)), acc(0, F)),)))


def joined() -> LoopKernel:
    """The sum of two arrays that are joined: where the first one ends the other is read, buffer 0."""
    second = load(0, apply("add", axis(0), index(20)), F)
    body = load(1, axis(0), F, apply("lt", axis(1), index(1)), second)
    return canonical(LoopKernel("joined", (F, F, F), (20,), (2,), (Accumulator("sum", body),),
                                (Store(2, axis(0), acc(0, F)),)))


def every() -> Iterator[LoopKernel]:
    for width in (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65):  # around vectors, and several of them
        yield windows("max", F, (2, 4, width), (3, 3), (1, 1), (1, 1))
        yield windows("sum", F, (2, 5, 2 * width + 1), (3, 3), (2, 2), (1, 1))
    for step in (1, 2, 3, 4):
        for combine in ("max", "min", "sum"):
            yield windows(combine, F, (2, 6, 70), (2, 5), (2, step), (1, 2))
    for dtype in ("float64", "float16", "bfloat16"):
        for combine in ("max", "sum"):
            yield windows(combine, dtype, (2, 5, 41), (3, 3), (1, 1), (1, 1))
            yield windows(combine, dtype, (2, 5, 71), (3, 3), (2, 2), (1, 1))
        yield windows("sum", dtype, (2, 9, 41), (5, 1), (1, 1), (2, 0), squared=True)
    yield windows("sum", F, (2, 9, 600), (3, 3), (1, 2), (1, 1), squared=True)
    yield turned()
    for combine in ("max", "sum"):
        yield windows(combine, F, (2, 4, 40), (2, 2), (2, 2), (0, 0))  # without a guard
        yield windows(combine, F, (3, 6, 37), (3, 3), (1, 2), (0, 0), beyond=1)
        yield windows(combine, F, (2, 5, 45), (3, 3), (1, 1), (1, 2), dilate=2)
        yield windows(combine, F, (1, 3, 1300), (3, 3), (1, 1), (1, 1))  # rows of several stretches
        yield windows(combine, F, (1, 3, 1300), (3, 3), (1, 2), (1, 1))
        yield windows(combine, F, (2, 19, 33), (17, 1), (1, 1), (8, 0))  # a window of many rows
        yield windows(combine, F, (2, 2, 3), (5, 7), (1, 1), (2, 3))  # windows larger than the data


KERNELS = list(every())


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_against_interpreter(kernel: LoopKernel, instructions: InstructionSet) -> None:
    assert skeletons.skeleton(kernel) == "windows" or kernel.domain == (2, 4)  # in rows of 1 nothing slides
    arrays = arrays_for(kernel)
    want = expected(kernel, arrays)
    instructions.run(kernel, arrays)
    if kernel.accumulators[0].combine == "sum":  # their order differs, and they may cancel
        tolerance = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 2e-2}.get(kernel.buffers[1], 4e-3)
        np.testing.assert_allclose(arrays[1].astype("float64"), want[1].astype("float64"), tolerance, 10 * tolerance)
    else:
        compare(kernel, arrays, want)


@needs_linux
@pytest.mark.widest
def test_no_touch_outside_of_buffers(instructions: InstructionSet) -> None:
    assert first_reach(KERNELS, instructions) is None


def test_sizes_share_their_code() -> None:
    """Padding and extents are arguments; short strides, and the rows of a window, are part of the code."""
    made = [windows("max", F, *rest) for rest in (((2, 9, 41), (3, 3), (2, 2), (1, 1)),
                                                  ((4, 8, 70), (3, 3), (2, 2), (2, 2)))]
    forms = {code_text(k) + skeletons.variant(k) for k in made}
    assert len(forms) == 1
    tall = [windows("max", F, (2, 40, 40), (n, 4), (2, 2), (2, 2)) for n in (5, 6)]
    assert len({code_text(k) + skeletons.variant(k) for k in tall}) == 2


@pytest.mark.parametrize("kernel", [
    windows("max", F, (2, 4, 40), (3, 3), (2, 2), (1, 1), fill=-3.0),  # what lies outside takes part
    windows("sum", F, (2, 4, 90), (3, 3), (1, 5), (1, 1)),  # far apart
    windows("sum", F, (2, 4, 90), (3, 3), (1, 3), (0, 0)),
    windows("max", F, (2, 40, 40), (36, 1), (1, 1), (18, 0)),  # too many rows
    joined(),
    windows("max", F, (2, 4, 40), (3, 3), (1, 1), (1, 1), squared=True),  # a square is no element
    windows("max", "int32", (2, 4, 40), (3, 3), (2, 2), (1, 1), fill=-2**31),
], ids=lambda k: k.name)
def test_other_kernels(kernel: LoopKernel) -> None:
    assert sliding(kernel) is None


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
def test_pooling_of_empty_arrays(kind: str, dtype: str) -> None:
    for shape in ((0, 3, 9, 9), (2, 0, 9, 9)):
        out = mx.sym.Pooling(mx.sym.Variable("data"), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=kind)
        with mx.util.np_shape(True):
            run = out.simple_bind(mx.cpu(), grad_req="write", type_dict={"data": dtype}, data=shape)
            (result,) = run.forward(is_train=True)
            run.backward([mx.nd.ones(result.shape, dtype=dtype)])
            assert result.shape == (*shape[:2], 5, 5) and run.grad_dict["data"].shape == shape
