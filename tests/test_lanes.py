"""Loop kernels over arrays with channels in blocks: a short last axis is part of the code."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from instruction_sets import InstructionSet
from kernel_cases import F, arrays_for, at, compare, expected, flat

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import canonical, fixed, lanes
from mxc.compiler.kernel.interpret import identity
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, acc, apply, axis, const, load
from mxc.compiler.kernel.simplify_index import index
from mxc.compiler.kernel.text import code_text
from mxc.compiler.targets.cpu.emit import loops

DTYPES = ("float32", "float64", "float16", "int32")
BLOCKED = [(2, 3, 49, 8), (1, 1, 1, 8), (3, 1, 3, 4), (2, 3, 49, 16), (1, 3, 1, 8)]  # N, blocks, H * W, lanes


def affine_kernel(dtype: str, shape: tuple[int, ...], body=lambda x: x) -> LoopKernel:
    """max(x * a + b, 0), a and b by channel."""
    width = shape[-1]
    x = body(load(0, flat(shape), dtype))
    a, b = (load(i, at((1, width), (3, 1)), dtype) for i in (1, 2))
    value = apply("max", apply("add", apply("mul", x, a), b), const(0, dtype))
    return LoopKernel(f"affine {dtype} {shape}", (dtype,) * 4, shape, (), (), (Store(3, flat(shape), value),))


def pooling(combine: str, dtype: str, shape: tuple[int, ...], window: int, stride: int, pad: int) -> LoopKernel:
    """Windows over (images, height, width, lanes)."""
    images, height, width, count = shape
    out = (images, (height + 2 * pad - window) // stride + 1, (width + 2 * pad - window) // stride + 1, count)
    y, x = (apply("sub", apply("add", apply("mul", axis(d), index(stride)), axis(r)), index(pad))
            for d, r in ((1, 4), (2, 5)))
    inside = [apply(op, v, index(n)) for v, size in ((y, height), (x, width)) for op, n in (("ge", 0), ("lt", size))]
    guard = apply("and", apply("and", inside[0], inside[1]), apply("and", inside[2], inside[3]))
    place = apply("add", apply("mul", apply("add", apply("mul", apply(
        "add", apply("mul", axis(0), index(height)), y), index(width)), x), index(count)), axis(3))
    fill = identity(combine, ir.computing_dtype(dtype))
    seen = load(0, place, dtype, guard, const(fill, dtype)) if pad else load(0, place, dtype)
    return LoopKernel(f"{combine} {dtype} {shape} {window} {stride} {pad}", (dtype, dtype), out, (window, window),
                      (Accumulator(combine, seen),), (Store(1, flat(out), acc(0, dtype)),))


def statistics(combine: str, dtype: str, shape: tuple[int, ...], images: bool) -> LoopKernel:
    """Reductions over H * W, and over N too for `images`."""
    n, blocks, size, width = shape
    strides = [blocks * size * width, size * width, width, 1]
    domain, reduce, order = ((blocks, width), (n, size), (1, 3, 0, 2)) if images else ((n, blocks, width), (size,),
                                                                                       (0, 1, 3, 2))
    x = load(0, at(*((i, strides[a]) for i, a in enumerate(order))), dtype)
    result = "int64" if combine.startswith("arg") else dtype
    return LoopKernel(f"{combine} {dtype} {shape} {images}", (dtype, result), domain, reduce,
                      (Accumulator(combine, x),), (Store(1, flat(domain), acc(0, result)),))


def normalise(shape: tuple[int, ...]) -> LoopKernel:
    """(x - mean) / (1 + mean of squares) for each channel: two sweeps, then stores at every point."""
    n, blocks, size, width = shape
    x = load(0, at((0, size * width), (1, 1), (2, blocks * size * width), (3, width)), F)
    mean = apply("div", acc(0, F), const(float(n * size), F))
    off = apply("sub", x, mean)
    deviation = apply("add", const(1.0, F), apply("div", acc(1, F), const(float(n * size), F)))
    place = at((0, size * width), (1, 1), (2, blocks * size * width), (3, width))
    return LoopKernel("normalise", (F, F, F), (blocks, width), (n, size),
                      (Accumulator("sum", x), Accumulator("sum", apply("mul", off, off))),
                      (Store(1, flat((blocks, width)), mean), Store(2, place, apply("div", off, deviation))))


def conversions(dtype: str, shape: tuple[int, ...]) -> Iterator[LoopKernel]:
    """To channels in blocks, back, and to channels last and back."""
    n, blocks, size, width = shape
    one = const(1, dtype)

    def moved(name: str, domain: tuple[int, ...], strides: tuple[int, ...], more: bool) -> LoopKernel:
        x = load(0, at(*enumerate(strides)), dtype)
        return LoopKernel(f"{name} {dtype} {shape}", (dtype, dtype), domain, (), (),
                          (Store(1, flat(domain), apply("add", x, one) if more else x),))

    image, block = blocks * size * width, size * width
    yield moved("to blocks", (n, blocks, size, width), (image, block, 1, size), False)
    yield moved("from blocks", (n, blocks, width, size), (image, block, 1, width), False)
    yield moved("from blocks and 1", (n, blocks, width, size), (image, block, 1, width), True)
    yield moved("blocks to last", (n, size, blocks, width), (image, width, block, 1), True)
    yield moved("first to last", (n, size, blocks * width), (image, 1, size), True)
    yield moved("last to first", (n, blocks * width, size), (image, 1, blocks * width), True)
    yield moved("transpose", (size, 19), (1, size), False)


def every() -> list[LoopKernel]:
    made: list[LoopKernel] = []
    for dtype in DTYPES:
        for shape in BLOCKED[:1] if dtype != F else BLOCKED:
            made += [affine_kernel(dtype, shape), statistics("sum", dtype, shape, True)]
            made += list(conversions(dtype, shape))[:None if dtype == F else 2]
        made += [pooling(c, dtype, (3, 7, 5, 8), 3, 2, 1) for c in ("max", "sum")]
        for shape in ((2, 3, 49, 3), (3, 1, 5, 2)):
            made += [affine_kernel(dtype, shape), *list(conversions(dtype, shape))[:None if dtype == F else 2]]
    made += [pooling("max", F, (3, 7, 5, 8), *w) for w in ((2, 2, 0), (5, 1, 2))]
    made += [statistics("max", F, shape, False) for shape in BLOCKED]
    made += [statistics(c, F, BLOCKED[0], False) for c in ("argmax", "argmin", "prod")]
    made += [normalise(shape) for shape in BLOCKED]
    made.append(statistics("sum", F, (1, 1, 4500, 8), False))  # longer than a partial sum
    made.append(affine_kernel(F, BLOCKED[0], lambda x: apply("erf", apply("tanh", x))))
    return [canonical(k) for k in made]


KERNELS = every()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_against_interpreter(kernel: LoopKernel, instructions: InstructionSet) -> None:
    """Blocks of every width, on every set: a kernel need not fit its machine's vectors."""
    arrays = arrays_for(kernel)
    for a in arrays:
        if a.dtype.kind == "i":
            a %= 1000
        else:
            np.clip(np.nan_to_num(a, copy=False), -3, 3, out=a)
    want = expected(kernel, arrays)
    instructions.run(kernel, arrays)
    if any(a.combine == "sum" for a in kernel.accumulators):  # their order differs, and they may cancel
        tolerance = {"float32": 1e-5, "float64": 1e-12}.get(arrays[1].dtype.name, 2e-3)
        np.testing.assert_allclose(arrays[1], want[1], tolerance, 100 * tolerance)
    else:
        compare(kernel, arrays, want)


def test_lanes_are_part_of_the_form() -> None:
    forms = {width: code_text(canonical(affine_kernel(F, (2, 3, 49, width)))) for width in (4, 8, 16, 5, 7)}
    assert "a3:8]" in forms[8] and len({forms[n] for n in (4, 8, 16)}) == 3 and forms[5] == forms[7]
    assert forms[8] == code_text(canonical(affine_kernel(F, (4, 5, 9, 8))))


@pytest.mark.parametrize(("kernel", "extents"), [
    (affine_kernel(F, (2, 3, 49, 8)), {3: 8}),
    (affine_kernel(F, (2, 3, 49, 9)), {}),
    (affine_kernel(F, (2, 3, 49, 3)), {3: 3}),
    (affine_kernel(F, (2, 3, 49, 2)), {3: 2}),
    (pooling("max", F, (3, 7, 5, 8), 3, 2, 1), {3: 8, 4: 3, 5: 3}),
    (pooling("max", F, (3, 7, 5, 8), 5, 1, 2), {3: 8}),
    (statistics("sum", F, (2, 3, 49, 8), True), {1: 8}),
    (LoopKernel("copy", (F, F), (8,), (), (), (Store(1, axis(0), load(0, axis(0), F)),)), {}),
    (LoopKernel("rows", (F, F), (8,), (9,), (Accumulator("sum", load(0, at((0, 9), (1, 1)), F)),),
                (Store(1, axis(0), acc(0, F)),)), {}),
])
def test_fixed(kernel: LoopKernel, extents: dict[int, int]) -> None:
    made = canonical(kernel)
    assert fixed(made) == extents and lanes(made) == extents.get(len(made.domain) - 1, 0)


@pytest.mark.parametrize("kernel", [
    canonical(affine_kernel(F, (2, 3, 49, 8))), canonical(pooling("max", F, (3, 7, 5, 8), 3, 2, 1)),
    canonical(statistics("sum", F, (2, 3, 49, 8), True)),
    canonical(affine_kernel(F, (2, 3, 49, 8), lambda x: apply("erf", x))),
], ids=lambda k: k.name)
def test_lanes_are_vectors(kernel: LoopKernel) -> None:
    from mxc.compiler.targets.cpu.build.jobs import job_of
    from mxc.compiler.targets.cpu.build.load import machine
    from mxc.compiler.targets.cpu.build.worker import module_of

    code = machine("x86-64-v3" if "x86" in machine().triple else "", "")
    text = str(module_of(job_of(kernel, "f"), code, "+f16c"))
    assert " x float>" in text and "fadd float" not in text and "maximum.f32" not in text


def test_conversions_are_transposed_in_registers() -> None:
    for kernel in map(canonical, conversions(F, (2, 3, 49, 8))):
        tiled = kernel.name.split(" float32")[0] in ("from blocks", "from blocks and 1", "first to last",
                                                     "last to first", "transpose")
        assert ("transposed(" in loops.loop_source(kernel)) == tiled, kernel.name
