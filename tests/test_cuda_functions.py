"""A program's own functions over whole arrays for NVIDIA GPUs: in Numba's simulator, and compiled ahead of time."""
from __future__ import annotations

import pytest
from cuda_functions import CASES
from cuda_runs import simulated

from mxc.compiler.error import TargetError
from mxc.compiler.targets.cuda.ahead import CudaTarget
from mxc.compiler.targets.cuda.code import compile_kernel, toolchain
from mxc.compiler.targets.cuda.functions import function_source

SOURCE = """\
def kernel(b0, b1, b2, b3, b4, values):
    if cuda.grid(1) == 0:
        e0 = values[0]
        e1 = values[1]
        e2 = values[2]
        a0 = array(b0, (e0, e1, ))
        a1 = array(b1, (e2, e1, ))
        a2 = array(b2, (e0, e2, ))
        for i0 in range(e0):
            for i1 in range(e2):
                a2[i0, i1] = 0
        a3 = array(b3, (e0, e2, ))
        for i0 in range(e0):
            for i1 in range(e2):
                a3[i0, i1] = 0
        b4[0] = 0
        function(a0, a1, a2, a3, number0, number1)
"""
PROGRAM = """
from cuda_functions import CASES, arrays_for, check
from cuda_runs import run

for kernel in CASES:
    arrays = arrays_for(kernel)
    run(kernel, arrays)
    check(kernel, arrays)
"""


def test_source() -> None:
    assert function_source(CASES[0]) == SOURCE


def test_simulator_against_python() -> None:
    simulated(PROGRAM)


ROOTS = """
import math
from math import log
import mxc as mx

@mx.operator.kernel("logs_of_all", shapes=lambda a: a)
def logs_of_all(a, out):
    for i in range(a.shape[0]):
        out[i] = log(a[i]) + math.cosh(a[i]) + math.lgamma(a[i])

@mx.operator.elementwise("logs_of_one")
def logs_of_one(x, *, n: int = 2):
    total = 0.0
    for i in range(n):
        total = total + log(x) + math.sqrt(x) * i
    return total
"""


def test_functions_beyond_their_domains(tmp_path) -> None:
    """Nothing raises in the simulator, as nothing does in compiled code."""
    tmp_path.joinpath("roots.py").write_text(ROOTS)
    simulated(f"""
import sys
import numpy as np
import mxc as mx
sys.path.append({str(tmp_path)!r})
import roots
given = np.array([-1, 0, 0.5, 2, 1000, np.inf, np.nan], "float32")
for name in ("logs_of_all", "logs_of_one"):
    found = [getattr(mx.nd, name)(mx.nd.array(given, ctx=place)).asnumpy() for place in (mx.cpu(), mx.gpu(0))]
    np.testing.assert_allclose(found[1], found[0], 1e-5, err_msg=name)
""")


def test_code_for_an_architecture() -> None:
    try:
        toolchain()
    except TargetError as error:
        pytest.skip(str(error))
    code = compile_kernel(CASES[0], "mxc_kernel", "sm_90")
    header = code.ptx[code.ptx.index(".entry mxc_kernel("):]
    assert header[:header.index(")")].count(".param .u64") == len(CASES[0].buffers) + 1
    keys = {CudaTarget("sm_90").launch(kernel).key for kernel in CASES}
    assert len(keys) == len(CASES)  # numbers are part of the code
