"""Outputs larger than the caches: their stores go past these, and give what others give."""
from __future__ import annotations

import pytest
from instruction_sets import InstructionSet
from kernel_cases import F, arrays_for, at, compare, expected, pointwise, reduction, softmax

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, acc, apply, axis, load
from mxc.compiler.targets.cpu.emit import skeletons
from mxc.compiler.targets.cpu.target import CpuTarget

x = load(0, axis(0), F)
row = load(0, at((0, 500), (1, 1)), F)
power = apply("exp", apply("sub", row, acc(0, F)))
KERNELS = [canonical(k) for k in (
    pointwise("flat", (F, F), [apply("exp", x)], 9001),
    pointwise("two outputs", (F, F, "float16"), [apply("exp", x), ir.cast(x, "float16")], 9001),
    pointwise("double", ("float64", "float64"), [apply("neg", load(0, axis(0), "float64"))], 2047),
    pointwise("bytes", (F, "bool"), [apply("gt", x, ir.const(0.0, F))], 20011),
    LoopKernel("bias", (F, F, F), (40, 700), (), (),
               (Store(2, at((0, 700), (1, 1)), apply("add", load(0, at((0, 700), (1, 1)), F), load(1, axis(1), F))),)),
    softmax(40, 500, False), softmax(40, 500, False, "float16"),
    LoopKernel("exponentials and their sums", (F, F, F), (40,), (500,),
               (Accumulator("max", row), Accumulator("sum", power)),
               (Store(1, at((0, 500), (1, 1)), power), Store(2, axis(0), acc(1, F)))),
)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("shift", [0, 1, 15])
def test_against_interpreter(kernel: LoopKernel, shift: int, instructions: InstructionSet,
                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skeletons, "STREAMED", 1000)
    source = instructions.target.source(kernel)
    assert "streamed(" in source and instructions.target.launch(kernel).scratch_bytes > 0
    assert ("fetch(" in source) == bool(kernel.accumulators)
    arrays = [a[shift:] for a in arrays_for(kernel, 36000)]  # where a line begins is no part of the code
    want = expected(kernel, arrays)
    instructions.run(kernel, arrays)
    compare(kernel, arrays, want)


def test_only_large_outputs_and_those_written_once() -> None:
    def streamed(kernel: LoopKernel) -> list[int]:
        return list(skeletons.streams(canonical(kernel)))

    large = 1 << 23
    double = apply("add", x, x)
    assert streamed(pointwise("small", (F, F), [double], large - 1)) == []
    assert streamed(pointwise("large", (F, F), [double], large)) == [1]
    assert streamed(pointwise("some", (F, F, "float64"), [double, ir.cast(x, "float64")], large - 1)) == [2]
    in_place = LoopKernel("in place", (F,), (large,), (), (), (Store(0, axis(0), double),))
    assert streamed(in_place) == []
    adding = LoopKernel("adding", (F, F), (large,), (), (), (Store(1, axis(0), double, "add"),))
    assert streamed(adding) == []
    assert streamed(softmax(large // 512, 512, False)) == [1]
    assert streamed(softmax(large // (1 << 20), 1 << 20, False)) == []  # such a row is no longer in the nearest cache
    assert streamed(softmax(large // 512, 512, True)) == []


def test_next_row_of_large_inputs_that_are_swept_again() -> None:
    def fetched(kernel: LoopKernel) -> list[int]:
        return list(skeletons.fetched(canonical(kernel)))

    large = 1 << 23
    assert fetched(softmax(large // 512, 512, False)) == [0]
    assert fetched(softmax(large // 1024, 512, False)) == []
    assert fetched(softmax(large // 512, 512, True)) == []  # columns
    assert fetched(softmax(large // (1 << 20), 1 << 20, False)) == []
    assert fetched(reduction(["sum"], F, large // 512, 512, False)) == []  # the processor fetches it by itself


def test_code_of_large_outputs_has_a_key_of_its_own() -> None:
    target = CpuTarget()
    keys = {n: target.launch(pointwise("f", (F, F), [apply("exp", x)], n)).key for n in (9, 1 << 20, 1 << 23, 1 << 24)}
    assert keys[9] == keys[1 << 20] != keys[1 << 23] == keys[1 << 24]
