"""Products of long sums with few results: sums over parts of the depth in one launch, the results in another."""
from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from cuda_runs import Plain, simulated
from library_cases import GEMMS, KINDS, WINDOWS, check, convolution_case, gemm_case
from toy_target import DEFINITIONS

import mxc as mx
from mxc.compiler.api import compile_graph
from mxc.compiler.error import TargetError
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.calls import linear
from mxc.compiler.kernel.ir import CallKernel, Kernel, LoopKernel
from mxc.compiler.lowering.launches import Storage
from mxc.compiler.lowering.split_depth import in_parts
from mxc.compiler.targets.cuda.ahead import UNMEASURED, CudaTarget
from mxc.compiler.targets.cuda.code import toolchain
from mxc.compiler.targets.preferences import Depths
from mxc.runtime import costs

PLAIN: Any = Plain()
SMALL = Depths(tile=(16, 16), few=1000, blocks=1000, part=16, step=4)  # of which even small cases have several
PROGRAM = """
from cuda_runs import run
from library_cases import check, convolution_case, gemm_case, WINDOWS
from test_split_depth import PLAIN, InParts

runs = InParts(run)
"""


class InParts:
    """Runs the kernels that a kernel is divided into, as an instruction set of library_cases does. launches: of the
    last one. figures: by which it is divided."""

    def __init__(self, run: Any, part: int = 16):
        self.run_one, self.launches, self.figures = run, 0, replace(SMALL, part=part)

    def run(self, call: CallKernel, arrays: list[np.ndarray]) -> None:
        storages = [Storage("arg", dtype, (array.size,)) for dtype, array in zip(call.buffers, arrays, strict=True)]
        memory = dict(zip(storages, arrays, strict=True))
        found = in_parts(self.figures, call, storages)
        self.launches = len(found)
        for kernel, used in found:
            for new in (storage for storage in used if storage not in memory):
                memory[new] = np.full(prod(new.shape), 77).astype(new.dtype)
            self.run_one(kernel, [memory[storage] for storage in used])


def interpreted(kernel: Kernel, arrays: list[np.ndarray]) -> None:
    DEFINITIONS[type(kernel)](kernel, arrays)


DEEP = [i for i, (_, _, _, k, dtype, _, _, packed) in enumerate(GEMMS)
        if k >= 32 and not packed and dtype != "bfloat16"]


@pytest.mark.parametrize("case", [GEMMS[i] for i in DEEP], ids=str)
def test_products(case: tuple) -> None:
    """By the definitions: batches, transposed operands, all dtypes."""
    runs: Any = InParts(interpreted)
    check(*gemm_case(case, PLAIN), runs)
    assert runs.launches == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in WINDOWS if name != "strides and dilations"])
def test_convolutions(name: str, kind: str) -> None:
    runs: Any = InParts(interpreted, part=4)
    for flat, layout in ((True, "nchw"), (False, "nhwc")):
        check(*convolution_case(kind, WINDOWS[name], "float32", PLAIN, flat, layout, packed=False), runs)


def test_on_a_gpu() -> None:
    """Around the borders of tiles and of parts, in the simulator."""
    simulated(PROGRAM + """
for case in ((1, 1, 17, 49, "float32", False, True, False), (2, 17, 1, 32, "float64", True, False, False),
             (1, 3, 5, 47, "float16", False, False, False), (1, 3, 5, 40, "int8", True, True, False)):
    check(*gemm_case(case, PLAIN), runs)
    assert runs.launches == 2, case
runs = InParts(run, part=8)
check(*convolution_case("weight", WINDOWS["same"], "float32", PLAIN, True, "nchw", packed=False), runs)
assert runs.launches == 2
""")


@pytest.mark.slow
def test_every_kind_on_a_gpu() -> None:
    simulated(PROGRAM + f"""
from library_cases import GEMMS
for b, m, n, k, *rest in [GEMMS[i] for i in {DEEP}]:
    if b * m * n * k < 200_000:
        check(*gemm_case((b, m, n, k, *rest), PLAIN), runs)
runs = InParts(run, part=4)
for name in ("same", "1x1 stride", "far", "3d"):
    for kind in {KINDS}:
        for flat, layout in ((True, "nchw"), (False, "nhwc")):
            check(*convolution_case(kind, WINDOWS[name], "float32", PLAIN, flat, layout, packed=False), runs)
""")


def test_an_epilogue_is_of_the_whole_sums() -> None:
    """A bias, an activation and what is added to the result come after the sum of the parts."""
    call, arrays = gemm_case((2, 18, 9, 70, "float32", False, True, False), PLAIN)
    total = ir.apply("add", ir.acc(0, "float32"), ir.load(2, linear({2: 1}), "float32"))
    store = replace(call.stores[0], buffer=3, value=ir.apply("tanh", total), mode="add")
    call = replace(call, buffers=("float32",) * 4, stores=(store,))
    bias = np.random.default_rng(3).standard_normal(9).astype("float32")
    runs: Any = InParts(interpreted)
    check(call, [*arrays[:2], bias, arrays[2]], runs)
    assert runs.launches == 2


def test_somebody_else_computes_products() -> None:
    """What has a product whole is left whole; one that has bare products gets these, and epilogues are launches."""
    call, arrays = gemm_case((2, 18, 9, 70, "float32", False, True, False), PLAIN)
    runs: Any = InParts(interpreted)
    runs.figures = replace(SMALL, whole=lambda kernel: True)
    check(call, arrays, runs)
    assert runs.launches == 1
    asked: list[CallKernel] = []
    runs.figures = replace(SMALL, apart=lambda bare: not asked.append(bare))
    for dtype in ("float32", "float16"):
        call, arrays = gemm_case((2, 18, 9, 70, dtype, False, True, False), PLAIN)
        total = ir.apply("tanh", ir.apply("add", ir.acc(0, dtype), ir.load(2, linear({2: 1}), dtype)))
        store = replace(call.stores[0], buffer=3, value=total, mode="add")
        bias = np.random.default_rng(3).standard_normal(9).astype(dtype)
        more = [*arrays[:2], bias, arrays[2]]
        check(replace(call, buffers=(dtype,) * 4, stores=(store,)), more, runs)
        assert runs.launches == 2 and asked.pop() == call
    wide = replace(call, buffers=("float16", "float16", "float32"), stores=(
        replace(call.stores[0], value=ir.acc(0, "float32")),))
    assert len(in_parts(runs.figures, wide, [Storage("arg", "float16", (1,))] * 3)) == 2 and not asked


def parts_of(m: int, n: int, k: int, batch: int = 1) -> int:
    """How many parts a GPU's product has: 1 where it stays whole."""
    assert UNMEASURED.depths is not None
    call, _ = gemm_case((batch, m, n, 0, "float32", False, False, False), PLAIN)
    call = replace(call, geometry=replace(call.geometry, k=k))  # type: ignore[call-arg]
    found = in_parts(UNMEASURED.depths, call, [Storage("arg", "float32", (1,))] * 3)
    return found[1][0].reduce[0] if len(found) > 1 and isinstance(found[1][0], LoopKernel) else 1


def test_sizes_alone_decide() -> None:
    assert parts_of(1, 1000, 2048) == 8  # 16 tiles; no part is shorter than 256
    assert parts_of(64, 64, 1 << 20) == 216  # one tile, for twice as many blocks as an A100 has multiprocessors
    assert parts_of(1024, 1024, 1 << 20) == 1  # 256 tiles
    assert parts_of(64, 64, 511) == 1 and parts_of(64, 64, 512) == 2
    assert parts_of(0, 64, 512) == parts_of(64, 64, 0) == 1
    assert parts_of(64, 64, 4096, batch=107) == 3 and parts_of(64, 64, 4096, batch=108) == 1


def test_a_plan_and_its_time() -> None:
    """Both launches are steps of a plan, and many blocks take less time than few."""
    try:
        toolchain()
    except TargetError as error:
        pytest.skip(str(error))
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1000, name="out")
    shapes = {"data": (1, 2048)}
    plan = compile_graph(net.graph, shapes, {}, {}, False, CudaTarget("sm_90")).plan
    assert [step.units for step in plan.steps] == [16 * 8, 8]  # 1000 results are 8 blocks of 128 threads
    assert plan.steps[0].flops == 2 * 1000 * 2048 and plan.steps[1].flops == 0
    target = CudaTarget("sm_90")
    divided = sum(target.seconds(costs.moved(plan, step), step.flops, step.units) for step in plan.steps)
    assert divided < target.seconds(4 * 2048 * 1001, 2 * 1000 * 2048, 16)
