"""Convolutions by tiles: the kernel, and what passes make of networks for a CPU that has them."""
from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from instruction_sets import InstructionSet, filled
from library_cases import check, values
from test_blocked import WINDOWS
from test_quads import ENDS, saturated

from mxc.compiler.kernel import calls, ir, word_calls
from mxc.compiler.kernel.call_rule import dense
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.geometry import Window
from mxc.compiler.kernel.interpret_calls import pack_rows
from mxc.compiler.kernel.ir import CallKernel, Store

LANES, COLUMNS = 16, 32
DTYPES = ("uint8", "int8", "bfloat16")


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return values(rng, shape, dtype) if dtype == "bfloat16" else rng.choice(np.array(ENDS[dtype], dtype), shape)


def result_of(w: Window, operands: list[np.ndarray], buffers: list[str], made, flat: bool = True,  # type: ignore[no-untyped-def]
              rounded: bool = False) -> tuple[CallKernel, list[np.ndarray]]:
    """The call of a geometry whose result lies in blocks of LANES; not flat: with rows and columns exchanged. rounded:
    a scale for each filter, and 8 bits out."""
    dtype = "float32" if made.dtype == "bfloat16" else "int32"
    n, c, d, h, wide = w.batch, w.groups * w.filters // LANES, *w.out
    steps = [c * d * h * wide * LANES, d * h * wide * LANES, 1, h * wide * LANES, wide * LANES, LANES]
    if not flat:
        steps[4:] = [LANES, h * LANES]
    place, result = linear(dict(enumerate(steps))), ir.acc(0, dtype)
    if rounded:
        scale = ir.load(2, linear({1: LANES, 2: 1}), "float32")
        result = saturated(ir.apply("mul", ir.cast(result, "float32"), scale))
        operands.append(np.random.default_rng(4).uniform(1e-4, 1e-2, c * LANES).astype(np.float32))
        buffers.append("float32")
    buffers.append(result.dtype)
    call = calls.call("conv", made, tuple(buffers), [Store(len(buffers) - 1, place, result)])
    return call, [*operands, np.zeros(n * c * d * h * wide * LANES, result.dtype)]


def packed(weight: np.ndarray) -> np.ndarray:
    """Of (groups, filters, words, numbers of a word)."""
    rows = weight.reshape(*weight.shape[:2], -1)
    parts = np.concatenate([pack_rows(each, COLUMNS).ravel() for each in rows])
    return np.ascontiguousarray(parts.reshape(-1, weight.shape[-1], COLUMNS).swapaxes(1, 2)).ravel()


def case(w: Window, dtype: str, planes: int = 0, flat: bool = True, rounded: bool = False,
         ) -> tuple[CallKernel, list[np.ndarray]]:
    """The call of a window that is made to fill blocks, and its arrays. Whole numbers are drawn from the ends of what
    there are. planes: the data are plain, with so many channels."""
    rng, per = np.random.default_rng(3), 2 if dtype == "bfloat16" else 4
    w = filled(w, LANES)
    channels, inner = (planes, 1) if planes else (w.channels, LANES // per)
    x = drawn(rng, (w.batch, w.groups * channels, *w.data), dtype)
    w = replace(w, channels=-(-channels // per))
    blocks = x if planes else x.reshape(w.batch, -1, per * inner, *w.data).transpose(0, 1, 3, 4, 5, 2)
    data = np.ascontiguousarray(blocks)
    weight = drawn(rng, (w.groups, w.filters, w.channels * math.prod(w.kernel), per), dtype.replace("uint8", "int8"))
    if planes % per:  # channels that are not there: those of the last word
        weight.reshape(w.filters, w.channels, -1, per)[:, -1, :, planes % per:] = 0
    strides = dense(data.shape) if planes else [s // per for s in dense(data.shape)]
    depth = w.kernel[2] if planes else inner * max(n for n in (1, 2, 3, 4) if w.channels // inner % n == 0
                                                   and n * inner <= 16)
    kind, of_weight = ("bfloat16",) * 2 if dtype == "bfloat16" else ("int32", "int8")
    made = word_calls.tiled_convolution(kind, w, strides[:5], inner, LANES, COLUMNS, depth, planes)
    return result_of(w, [data.ravel(), packed(weight)], [dtype, of_weight], made, flat, rounded)


@pytest.fixture
def tiles(instructions: InstructionSet) -> InstructionSet:
    if not instructions.isa.tiles:
        pytest.skip(f"{instructions} has no tiles")
    return instructions


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel(name: str, dtype: str, tiles: InstructionSet) -> None:
    check(*case(WINDOWS[name], dtype), tiles)


@pytest.mark.parametrize("planes", [1, 3, 4, 6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_of_plain_data(planes: int, dtype: str, tiles: InstructionSet) -> None:
    for name in ("same", "stride", "3d", "several bands", "wide", "one pixel"):
        if WINDOWS[name].dilate[2] == 1:
            check(*case(WINDOWS[name], dtype, planes), tiles)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_of_other_epilogues(dtype: str, tiles: InstructionSet) -> None:
    for name in ("same", "1x1", "several grains", "stride"):
        check(*case(WINDOWS[name], dtype, flat=False), tiles)
        check(*case(WINDOWS[name], dtype, rounded=True), tiles)


# --- products


PRODUCTS = [  # batch, m, n, words
    (1, 1, 1, 1), (1, 1, 40, 19), (1, 5, 17, 3), (2, 13, 33, 30), (1, 16, 16, 16), (1, 17, 32, 80), (3, 31, 31, 10),
    (1, 70, 100, 320), (1, 300, 70, 28), (1, 64, 1000, 256),
]


@pytest.mark.parametrize("kind", ["uint8", "int8", "bfloat16", "bfloat16 across"])
@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_product(sizes: tuple[int, int, int, int], kind: str, instructions: InstructionSet) -> None:
    """A and B end where their memory does."""
    rng, (batch, m, n, k), isa = np.random.default_rng(5), sizes, instructions.isa
    dtype, across = kind.split()[0], kind.endswith("across")
    per = 2 if dtype == "bfloat16" else 4
    if isa.lanes("float32") < 4:
        pytest.skip("vectors hold no words")
    a = drawn(rng, (batch, m, k * per), dtype)
    b = drawn(rng, (batch, k * per, n) if across else (batch, n, k * per), dtype.replace("uint8", "int8"))
    depth = max(d for d in range(1, 17) if k % d == 0) if isa.tiles else 1
    lifted = dtype == "int8" and not isa.tiles
    made = word_calls.word_product("bfloat16" if per == 2 else "int32", sizes, (m * k, k),
                              (k * per * n, n, 1) if across else (n * k, 1, k), depth, across, lifted)
    result = "float32" if per == 2 else "int32"
    store = Store(2, linear({0: m * n, 1: n, 2: 1}), ir.acc(0, result))
    call = calls.call("product", made, (dtype, dtype.replace("uint8", "int8"), result), [store])
    check(call, [a.ravel(), b.ravel(), np.zeros(batch * m * n, result)], instructions)
