"""The CPU's code for loop kernels against the interpreter, compiled in one batch."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from guarded import first_death, needs_linux, sides
from hypothesis import given, settings
from hypothesis import strategies as st
from instruction_sets import InstructionSet
from kernel_cases import arrays_for, at, compare, every_kernel, expected, pointwise, reduction, softmax

from mxc.compiler.kernel import interpret
from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, Value, acc, apply, axis, const, load
from mxc.compiler.kernel.simplify_index import from_affine
from mxc.compiler.targets.cpu.build.load import machine, optimised
from mxc.compiler.targets.cpu.emit import loops, skeletons
from mxc.compiler.targets.cpu.machine.isa import AVX2, AVX512

KERNELS = every_kernel()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_against_interpreter(kernel: LoopKernel, instructions: InstructionSet) -> None:
    if kernel.name == "unary arccosh float64" and instructions.is_emulated and instructions.isa is AVX512:
        pytest.skip("in Bochs the C library's gamma(-6.97509) and lgamma(-3.73773) are infinite")
    arrays = arrays_for(kernel)
    want = expected(kernel, arrays)
    instructions.run(kernel, arrays)
    compare(kernel, arrays, want)


class _Reach(interpret.Interpreter):
    """Notes how far into each buffer a kernel reaches."""

    reach: dict[object, int]

    def check(self, index: np.ndarray, size: int, buffer: object) -> None:
        super().check(index, size, buffer)
        if index.size:
            self.reach[buffer] = max(self.reach.get(buffer, 0), int(index.max()) + 1)


def exact(kernel: LoopKernel) -> list[np.ndarray]:
    """Arrays of just the elements that `kernel` reads and writes."""
    arrays = arrays_for(kernel)
    interpreter = _Reach(kernel, [a.copy() for a in arrays])
    interpreter.reach = {}
    interpreter.run()
    return [a[:interpreter.reach.get(i, 0)] for i, a in enumerate(arrays)]


def first_reach(kernels: Sequence[LoopKernel], instructions: InstructionSet) -> str | None:
    """Which kernel touches memory outside of its buffers first, and on which side; None where none does."""
    works = []
    for kernel in kernels:
        instructions.address(kernel)
        works += [(f"{kernel.name} reaches {side} a buffer", partial(instructions.run, kernel, arrays))
                  for side, arrays in sides(exact(kernel))]
    return first_death(works)


@needs_linux
@pytest.mark.widest
def test_no_touch_outside_of_buffers(instructions: InstructionSet) -> None:
    assert first_reach(KERNELS, instructions) is None


@needs_linux
def test_a_touch_outside_is_noticed() -> None:
    for offset, (_, (array,)) in zip((40, -4), sides([np.zeros(10, F)]), strict=True):
        works = [(str(n), partial(ctypes.c_float.from_address, array.ctypes.data + n)) for n in (36, offset)]
        assert first_death((name, lambda place=place: place().value) for name, place in works) == str(offset)


F = "float32"
LEAVES = st.sampled_from(["x", "y", "row", "one"])


@st.composite
def random_kernel(draw: st.DrawFn) -> LoopKernel:
    """A small kernel over random extents and strides, with or without a reduction."""
    extents = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    reduce = draw(st.lists(st.integers(1, 6), min_size=0, max_size=2))
    every = [*extents, *reduce]
    order = draw(st.permutations(range(len(every))))
    strides, step = {}, 1
    for a in order:
        strides[axis(a)] = step
        step *= every[a]
    leaves = {"x": load(0, from_affine(strides, 0), F), "y": load(1, from_affine(strides, 3), F),
              "row": load(1, axis(0), F), "one": const(1.5, F)}

    def value(depth: int) -> Value:
        if depth == 0 or draw(st.booleans()):
            return leaves[draw(LEAVES)]
        op = draw(st.sampled_from(["add", "sub", "mul", "max", "min", "tanh", "abs"]))
        return apply(op, *[value(depth - 1) for _ in range(1 if op in ("tanh", "abs") else 2)])

    total, target, size = value(3), {}, 1
    for a in reversed(range(len(extents))):
        target[axis(a)], size = size, size * extents[a]
    if not reduce:
        return LoopKernel("random", (F,) * 3, tuple(extents), (), (), (Store(2, from_affine(target, 0), total),))
    combine = draw(st.sampled_from(["sum", "max", "min"]))
    return LoopKernel("random", (F,) * 3, tuple(extents), tuple(reduce), (Accumulator(combine, total),),
                      (Store(2, from_affine(target, 0), acc(0, F)),))


@pytest.mark.widest
def test_random_kernels(instructions: InstructionSet) -> None:
    kernels: list[LoopKernel] = []

    @settings(max_examples=40, deadline=None, database=None, derandomize=True)
    @given(random_kernel())
    def collect(kernel: LoopKernel) -> None:
        kernels.append(kernel)

    collect()
    for kernel in kernels:
        made, arrays = canonical(kernel), arrays_for(kernel, 4000)
        for a in arrays:
            np.nan_to_num(a, copy=False, posinf=2, neginf=-2)
        want = expected(kernel, arrays)
        instructions.run(made, arrays)
        for got, other in zip(arrays, want, strict=True):
            np.testing.assert_allclose(got, other, rtol=1e-5, atol=1e-4, err_msg=loops.loop_source(made))


@pytest.mark.parametrize(("kernel", "kind"), [
    (pointwise("a", (F, F), [load(0, axis(0), F)]), "map"), (reduction(("sum",), F, 9, 8, False), "rows"),
    (reduction(("sum",), F, 9, 8, True), "columns"), (softmax(9, 8, True), "columns"),
])
def test_skeleton(kernel: LoopKernel, kind: str) -> None:
    assert skeletons.skeleton(kernel) == kind


def test_inner_loops_are_vector_code() -> None:
    from mxc.compiler.targets.cpu.build.jobs import job_of
    from mxc.compiler.targets.cpu.build.worker import module_of

    code = machine("x86-64-v3" if "x86" in machine().triple else "", "")
    total = apply("add", load(0, axis(0), F), load(1, axis(0), F))
    for kernel in (pointwise("exp", (F, F), [apply("exp", load(0, axis(0), F))]), reduction(("max",), F, 9, 8, False),
                   reduction(("sum",), F, 9, 8, False), pointwise("many", (F,) * 6, [total] * 4)):
        text = str(module_of(job_of(kernel, "f"), code, AVX2.features))
        assert " x float>" in text, kernel.name


SOURCE = """c0 = float32(2.0)

def kernel(args, first, last, scratch):
    b0 = buffer0(args, 0)
    b1 = buffer1(args, 1)
    n0 = integer(args, 2)
    start = first * 8192
    stop = min_(last * 8192, n0)
    for i0 in range(start, stop):
        t0 = b0[i0]
        t1 = t0 * c0
        t2 = exp_(t1)
        b1[i0] = t2
"""


def test_source() -> None:
    value = apply("exp", apply("mul", load(0, axis(0), F), const(2.0, F)))
    assert loops.loop_source(pointwise("e", (F, F), [value])) == SOURCE


def test_softmax_computes_its_exponentials_once() -> None:
    """The last sweep of the accumulators leaves them in the output; in place over the input as well."""
    place = from_affine({axis(0): 40, axis(1): 1}, 0)
    x = load(0, place, "float32")
    exponential = apply("exp", apply("sub", x, acc(0, "float32")))
    share = apply("div", exponential, acc(1, "float32"))
    sweeps = (Accumulator("max", x), Accumulator("sum", exponential))
    for store in (Store(0, place, share), Store(1, place, share)):
        kernel = LoopKernel("softmax", ("float32", "float32"), (30,), (40,), sweeps, (store,))
        assert loops.loop_source(kernel).count("exp_(") == 1
    again = Store(1, place, apply("add", share, x))
    kernel = LoopKernel("reads x again", ("float32", "float32"), (30,), (40,), sweeps, (again,))
    assert loops.loop_source(kernel).count("exp_(") == 2


@pytest.mark.parametrize("steps", [(40, 1), (1, 30)])  # of the domain's axis and of the reduced one: rows, columns
def test_what_is_stored_and_summed_is_computed_once(steps: tuple[int, int], instructions: InstructionSet) -> None:
    """In place over the input as well, whatever the skeleton."""
    place = from_affine({axis(i): step for i, step in enumerate(steps)}, 0)
    value = apply("exp", load(0, place, F))
    for out in (0, 2):
        kernel = LoopKernel("both", (F,) * 3, (30,), (40,), (Accumulator("sum", value),),
                            (Store(1, axis(0), acc(0, F)), Store(out, place, value)))
        assert loops.loop_source(kernel).count("exp_(") == 1
        arrays = arrays_for(kernel)
        want = expected(kernel, arrays)
        instructions.run(kernel, arrays)
        compare(kernel, arrays, want)


def test_long_loops_run_several_vectors_at_a_time() -> None:
    from mxc.compiler.targets.cpu.build.jobs import job_of
    from mxc.compiler.targets.cpu.emit.interleave import interleaved
    from mxc.compiler.targets.cpu.emit.translate import translated

    def hints(value: Value) -> list[str]:
        text = translated(job_of(canonical(pointwise("f", (F, F), [value])), "f"), AVX2.features)
        marked = interleaved(text)
        optimised(marked, machine())  # LLVM takes it
        return [line.split()[-1] for line in marked.splitlines() if "interleave.count" in line]

    x = load(0, axis(0), F)
    assert hints(apply("add", x, x)) == []
    assert hints(apply("exp", x)) == ["4}"]
    assert hints(apply("exp", apply("exp", apply("exp", apply("exp", x))))) == ["2}"]
    total = LoopKernel("sum", (F, F), (3,), (40,), (Accumulator("sum", apply("exp", load(0, at((0, 40), (1, 1)), F))),),
                       (Store(1, axis(0), acc(0, F)),))
    text = interleaved(translated(job_of(canonical(total), "f"), AVX2.features))
    assert text.count("interleave.count") == 1  # of the innermost loop alone
