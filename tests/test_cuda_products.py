"""Library kernels for NVIDIA GPUs, in Numba's simulator, against their definitions; and their code."""
from __future__ import annotations

import pytest
from cuda_runs import Plain, simulated
from library_cases import (
    DEPTHWISE,
    GEMMS,
    KINDS,
    POOLS,
    WINDOWS,
    convolution_case,
    depthwise_case,
    gemm_case,
    spread_case,
)

from mxc.compiler.error import TargetError
from mxc.compiler.targets.cuda.ahead import CudaTarget
from mxc.compiler.targets.cuda.blocks import GPU, SIMULATED
from mxc.compiler.targets.cuda.code import compile_kernel, toolchain
from mxc.compiler.targets.cuda.kernels import grid_of, source_of

PROGRAM = """
from cuda_runs import Plain, run
from library_cases import check, convolution_case, depthwise_case, gemm_case, spread_case
from library_cases import WINDOWS, DEPTHWISE, POOLS, GEMMS
from mxc.compiler.targets.cuda.blocks import GPU, SIMULATED, Blocks

class Runs:
    blocks, most = SIMULATED, None

    def run(self, call, arrays):
        run(call, arrays, self.blocks, self.most)

runs, plain = Runs(), Plain()
"""
LARGE = 200_000  # multiplications of the largest cases that the simulator gets
SMALL_GEMMS = [i for i, (b, m, n, k, dtype, _, _, packed) in enumerate(GEMMS)
               if not packed and b * m * n * k < LARGE and dtype != "bfloat16"]  # which has no code on GPUs
# Around the borders of a tile of 16 x 16 with a depth of 16: (batch, m, n, k).
BORDERS = [(1, 15, 15, 15), (2, 16, 16, 16), (1, 17, 17, 17), (1, 1, 1, 33), (3, 33, 1, 1)]


def test_products_around_the_borders_of_tiles() -> None:
    simulated(PROGRAM + f"""
for b, m, n, k in {BORDERS}:
    for turned in (False, True):
        check(*gemm_case((b, m, n, k, "float32", turned, not turned, False), plain), runs)
for dtype in ("float64", "float16", "int8", "int32", "int64", "bool"):
    check(*gemm_case((2, 5, 9, 17, dtype, False, True, False), plain), runs)
runs.most = 1  # a block goes on with further tiles
check(*gemm_case((2, 20, 20, 5, "float32", False, False, False), plain), runs)
""")


def test_the_tile_of_a_gpu() -> None:
    simulated(PROGRAM + """
runs.blocks = GPU
check(*gemm_case((1, 65, 67, 18, "float32", False, False, False), plain), runs)
""")


@pytest.mark.slow
def test_every_product() -> None:
    simulated(PROGRAM + f"""
for i in {SMALL_GEMMS}:
    check(*gemm_case(GEMMS[i], plain), runs)
""")


def test_convolutions_and_their_gradients() -> None:
    simulated(PROGRAM + f"""
for name in ("same", "1x1 stride", "far"):
    for kind in {KINDS}:
        check(*convolution_case(kind, WINDOWS[name], "float32", plain, True, "nchw", packed=False), runs)
        check(*convolution_case(kind, WINDOWS[name], "float32", plain, False, "nhwc", packed=False), runs)
""")


@pytest.mark.slow
def test_every_convolution() -> None:
    simulated(PROGRAM + f"""
for name, window in WINDOWS.items():
    if name == "strides and dilations":
        continue  # a minute by itself
    for kind in {KINDS}:
        check(*convolution_case(kind, window, "float32", plain, packed=False), runs)
""")


def test_windows() -> None:
    """Depthwise convolutions, their gradients, and that of pooling."""
    simulated(PROGRAM + f"""
for name, window in DEPTHWISE.items():
    for kind in {KINDS} if name != "bands" else ():
        for flat in (True, False):
            check(*depthwise_case(kind, window, "float32", flat), runs)
for window in POOLS.values():
    check(*depthwise_case("pool", window, "float32"), runs)
    for divisor in ("none", "padded", "inside"):
        check(*spread_case(window, "float32", divisor), runs)
""")


def test_an_epilogue_in_every_element() -> None:
    """A bias, an activation, and another array that is added."""
    simulated(PROGRAM + """
from dataclasses import replace
import numpy as np
from mxc.compiler.kernel import ir
from mxc.compiler.kernel.calls import linear

call, arrays = gemm_case((2, 18, 9, 20, "float32", False, True, False), plain)
total = ir.apply("add", ir.acc(0, "float32"), ir.load(2, linear({2: 1}), "float32"))
total = ir.apply("mul", ir.apply("tanh", total), ir.load(3, linear({0: 162, 1: 9, 2: 1}), "float32"))
rng = np.random.default_rng(3)
more = [rng.standard_normal(9).astype("float32"), rng.standard_normal(324).astype("float32")]
call = replace(call, buffers=("float32",) * 5, stores=(replace(call.stores[0], buffer=4, value=total),))
check(call, [*arrays[:2], *more, arrays[2]], runs)
""")


def test_tiles_are_counted() -> None:
    call, _ = gemm_case((3, 65, 129, 7, "float32", False, False, False), Plain())  # type: ignore[arg-type]
    assert grid_of(call, GPU).blocks == 3 * 2 * 3
    assert grid_of(call, SIMULATED).blocks == 3 * 5 * 9
    assert f"while element < {64 * 64}:" in source_of(call, GPU)


def kernels() -> list:
    plain: object = Plain()
    found = [gemm_case(GEMMS[1], plain)[0]]  # type: ignore[arg-type]
    found += [convolution_case(kind, WINDOWS["3d"], "float32", plain, packed=False)[0]  # type: ignore[arg-type]
              for kind in KINDS]
    found += [depthwise_case(kind, DEPTHWISE["same"], "float32")[0] for kind in KINDS]
    return [*found, depthwise_case("pool", POOLS["3d"], "float32")[0],
            spread_case(POOLS["3d"], "float32", "inside")[0]]


@pytest.mark.slow
@pytest.mark.parametrize("kernel", kernels(), ids=lambda kernel: kernel.template)
def test_code(kernel) -> None:
    try:
        toolchain()
    except TargetError as error:
        pytest.skip(str(error))
    code = compile_kernel(kernel, "mxc_kernel", "sm_80")
    assert ".target sm_80" in code.ptx and b".text.mxc_kernel" in code.cubin
    assert not CudaTarget("sm_80").lacks(kernel)
