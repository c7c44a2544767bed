"""The inner loop of a GPU's product, as its assembly and its machine code have it.

`python tests/cuda_listing.py --write` writes golden/cuda_product.txt anew: the machine code's operations for sm_90, and
the versions of what made it.
"""
from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cuda_runs import Plain
from library_cases import gemm_case

from mxc.compiler.targets.cuda.code import CudaCode, compile_kernel, toolchain_versions

GOLDEN = Path(__file__).parent / "golden" / "cuda_product.txt"
ARCH = "sm_90"


@functools.cache
def code(arch: str = ARCH) -> CudaCode:
    """The code of a product of float32."""
    call, _ = gemm_case((1, 65, 65, 65, "float32", False, False, False), Plain())  # type: ignore[arg-type]
    return compile_kernel(call, "product", arch)


def disassembler() -> str | None:
    """Where nvdisasm is, of the package nvidia-cuda-nvdisasm or of CUDA itself; None where it is not."""
    found = importlib.util.find_spec("nvidia")
    folders = list(found.submodule_search_locations or ()) if found else []
    inside = [str(each) for folder in folders for each in Path(folder).glob("*/bin/nvdisasm")]
    return inside[0] if inside else shutil.which("nvdisasm")


def inner_loop(lines: list[str], label: str, jump: str, product: str) -> list[str]:
    """Of the loops that have no loop inside, the operations of that with most products. label, jump, product: patterns
    of lines; the first two give the name of a place."""
    best: list[str] = []
    start, name = 0, ""
    for i, line in enumerate(lines):
        if found := re.match(label, line):
            start, name = i + 1, found[1]
        elif (found := re.search(jump, line)) and found[1] == name:
            body = lines[start:i + 1]
            count = sum(bool(re.search(product, each)) for each in body)
            if count > sum(bool(re.search(product, each)) for each in best):
                best = body
    return best


def of_assembly(ptx: str) -> list[str]:
    """The operations of the inner loop in PTX."""
    body = inner_loop(ptx.splitlines(), r"(\$\w+):", r"\bbra(?:\.uni)?\s+(\$\w+)", r"fma\.")
    return [found[1] for line in body if (found := re.match(r"\s+(?:@!?%\w+\s+)?([\w.]+)\s", line))]


def of_machine(cubin: bytes, tool: str) -> list[str]:
    """The operations of the inner loop in machine code."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout
    body = inner_loop(text.splitlines(), r"(\.L_x_\d+):", r"BRA `\((\.L_x_\d+)\)", r"\bFFMA\b")
    return [found[1] for line in body if (found := re.match(r"\s*/\*\w+\*/\s+(?:@!?U?P\w+\s+)?([\w.]+)", line))]


def golden() -> str:
    """What the golden file is to have. Raises RuntimeError without nvdisasm."""
    tool = disassembler()
    if tool is None:
        raise RuntimeError("nvdisasm is missing: pip install nvidia-cuda-nvdisasm")
    versions = [f"{name} {version}" for name, version in toolchain_versions().items()]
    return "\n".join([f"# {', '.join(versions)}: {ARCH}", *of_machine(code().cubin, tool), ""])


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    GOLDEN.write_text(golden())
