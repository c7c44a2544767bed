"""The inner loop of a GPU's product: loads of 16 bytes, products that are added, and what counts its rounds."""
from __future__ import annotations

from collections import Counter

import cuda_listing
import pytest

from mxc.compiler.error import TargetError
from mxc.compiler.targets.cuda.blocks import GPU
from mxc.compiler.targets.cuda.code import CudaCode, toolchain
from mxc.compiler.targets.cuda.products import QUAD, UNROLLED

PRODUCTS = UNROLLED * GPU.each[0] * GPU.each[1]
LOADS = UNROLLED * (GPU.each[0] + GPU.each[1]) // QUAD
COUNTING = {"IADD3", "ISETP.GE.AND", "LEA", "SHF.L.U32", "IMAD.SHL.U32", "VIADD", "BRA"}


def code(arch: str) -> CudaCode:
    try:
        toolchain()
    except TargetError as error:
        pytest.skip(str(error))
    return cuda_listing.code(arch)


def test_assembly() -> None:
    found = Counter(cuda_listing.of_assembly(code("sm_90").ptx))
    assert found["fma.rn.f32"] == PRODUCTS and found["ld.shared.v4.f32"] == LOADS
    assert sum(found.values()) - PRODUCTS - LOADS <= 9
    assert not any(name.startswith(("ld", "st", "div")) for name in found if name != "ld.shared.v4.f32")


@pytest.mark.parametrize("arch", ["sm_90", pytest.param("sm_80", marks=pytest.mark.slow)])
def test_machine_code(arch: str) -> None:
    """Ten times as many products as all else."""
    tool = cuda_listing.disassembler()
    if tool is None:
        pytest.skip("nvdisasm is missing: pip install nvidia-cuda-nvdisasm")
    found = Counter(cuda_listing.of_machine(code(arch).cubin, tool))
    assert found["FFMA"] == PRODUCTS and found["LDS.128"] == LOADS
    assert set(found) <= {"FFMA", "LDS.128", *COUNTING} and sum(found.values()) - PRODUCTS - LOADS <= 6


def test_listing() -> None:
    """The golden file, where the same versions made the code."""
    code("sm_90")
    if cuda_listing.disassembler() is None:
        pytest.skip("nvdisasm is missing: pip install nvidia-cuda-nvdisasm")
    known, made = cuda_listing.GOLDEN.read_text(), cuda_listing.golden()
    if known.partition("\n")[0] != made.partition("\n")[0]:
        pytest.skip(f"the golden file is of {known.partition(chr(10))[0]}")
    assert made == known, "python tests/cuda_listing.py --write"
