"""Kernels as PTX and machine code of an NVIDIA GPU, made without one (the extra `cuda`: numba-cuda with NVVM).

The code of a kernel defines one entry. It takes pointers to the buffers, then one to the run-time integers (int64),
then to the scratch memory of routines, all in the device's memory, and runs in any number of blocks of threads
(blocks.py).
"""
from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from mxc.compiler.error import MXNetError, TargetError
from mxc.compiler.kernel.ir import FunctionKernel, Kernel
from mxc.compiler.system import interrupts
from mxc.compiler.targets.cuda.blocks import GPU, Blocks
from mxc.compiler.targets.cuda.devices import EXTRA
from mxc.compiler.targets.cuda.kernels import function_of, scratch_dtypes, source_of
from mxc.compiler.targets.cuda.resources import resources

WISHED = (8, 7, 6, 5, 4)  # blocks that a multiprocessor is to run at a time; the first for which registers suffice
LOWEST = 75  # compute capability x 10 of the oldest devices that CUDA 13 makes code for


@dataclass(frozen=True)
class CudaCode:
    """ptx: assembly of the virtual machine, which a driver translates for any later device. cubin: machine code of
    the architecture it was made for alone, an ELF object. Both define the entry of the kernel's symbol."""

    ptx: str
    cubin: bytes

    def to_bytes(self) -> bytes:
        """The length of the PTX as a little-endian u32, the PTX, and the cubin."""
        text = self.ptx.encode()
        return struct.pack("<I", len(text)) + text + self.cubin

    @classmethod
    def from_bytes(cls, data: bytes) -> CudaCode:
        length = struct.unpack_from("<I", data)[0]
        return cls(data[4:4 + length].decode(), data[4 + length:])


def capability(arch: str) -> tuple[int, int]:
    """The compute capability of `sm_90`: (9, 0). Raises TargetError for what is no architecture."""
    found = re.fullmatch(r"sm_(\d\d\d?)", arch)
    if found is None or int(found[1]) < LOWEST:
        raise TargetError(f"cuda:{arch}: expected an architecture from sm_{LOWEST} on, as sm_90")
    return int(found[1]) // 10, int(found[1]) % 10


def toolchain() -> tuple[Any, Any]:
    """numba's cuda module and cuda.core. Raises TargetError, naming the extra, when they or their libraries are not
    installed or do not work with this NumPy, and TargetError when anything else keeps them from being imported."""
    try:
        import cuda.core
        import numba_cuda  # noqa: F401 - what makes `numba.cuda` the maintained one
        from numba import cuda as numba_cuda_module
        from numba.cuda import cudaimpl  # noqa: F401 - what a compilation imports, and where a newer NumPy's lack shows
    except ImportError as error:
        raise TargetError(f"compiling for CUDA needs packages that are not installed ({error}): {EXTRA}") from None
    except AttributeError as error:
        raise TargetError(f"compiling for CUDA: numba-cuda does not work with NumPy {np.__version__} ({error}): "
                          f"{EXTRA}") from None
    except Exception as error:  # such as Numba's for settings of its own
        raise TargetError(f"compiling for CUDA: its packages cannot be imported ({error})") from None
    return numba_cuda_module, cuda.core


def toolchain_versions() -> dict[str, str]:
    """The versions on which the code depends, by name of the distribution. Raises TargetError when one is missing."""
    from importlib import metadata

    try:
        return {name: metadata.version(name) for name in ("numba", "numba-cuda", "cuda-core", "nvidia-nvvm",
                                                          "nvidia-nvjitlink")}
    except metadata.PackageNotFoundError as error:
        raise TargetError(f"compiling for CUDA needs {error.name}, which is not installed: {EXTRA}") from None


def compile_kernel(kernel: Kernel, symbol: str, arch: str, blocks: Blocks = GPU) -> CudaCode:
    """The code of a kernel; a loop kernel is canonical. Raises TargetError without the extra and for an architecture
    that there is not, MXNetError when there is no code for the kernel, or compilation fails."""
    cuda, core = toolchain()
    from numba.core import types
    from numba.core.errors import NumbaError

    truth: Any = types.uint8
    array = None
    if isinstance(kernel, FunctionKernel):
        from numba.cuda.np.arrayobj import get_cfarray_intrinsic  # carray itself compiles only where a GPU's driver is

        array, truth = get_cfarray_intrinsic("C", None), types.boolean
    source, made = source_of(kernel, blocks), function_of(kernel, blocks, array)
    pointers = [types.CPointer(truth if dtype == "bool" else getattr(types, dtype))
                for dtype in (*kernel.buffers, "int64", *scratch_dtypes(kernel))]
    try:
        with interrupts.held():
            ptx, _ = cuda.compile(made, tuple(pointers), cc=capability(arch),
                                  device=False, abi="numba")
            ptx = _renamed(ptx, symbol)
            for wished in WISHED:
                dense = _limited(ptx, symbol, blocks.threads, wished)
                cubin = _assembled(core, dense, arch)
                if not resources(cubin).stack:
                    return CudaCode(dense, cubin)
            return CudaCode(ptx, _assembled(core, ptx, arch))
    except TargetError:
        raise
    except (NumbaError, RuntimeError, NotImplementedError, ImportError) as error:
        raise MXNetError(f"kernel {kernel.name} does not compile for {arch}: {error}\n{source}") from error


def _assembled(core: Any, ptx: str, arch: str) -> bytes:
    """The machine code of PTX. Raises TargetError for an architecture that the linker does not know, RuntimeError where
    it fails."""
    try:
        linker = core.Linker(core.ObjectCode.from_ptx(ptx.encode()), options=core.LinkerOptions(arch=arch))
        return bytes(linker.link("cubin").code)
    except Exception as error:  # the bindings' own classes
        if "UNRECOGNIZED_ARCH" in str(error):
            raise TargetError(f"cuda:{arch}: NVIDIA's linker knows no such architecture") from None
        raise RuntimeError(str(error)) from error


def _limited(ptx: str, symbol: str, threads: int, count: int) -> str:
    """The PTX of a kernel that leaves registers to `count` blocks of so many threads at a time."""
    end = ptx.index(")", ptx.index(f".entry {symbol}(")) + 1
    return f"{ptx[:end]}\n.maxntid {threads}, 1, 1\n.minnctapersm {count}\n{ptx[end:]}"


def _renamed(ptx: str, symbol: str) -> str:
    """The PTX with its entry, whose name Numba makes up, called `symbol`."""
    entries = re.findall(r"\.entry\s+(\w+)", ptx)
    if len(entries) != 1:
        raise MXNetError(f"expected one entry in the code of {symbol}, got {len(entries)}")
    return re.sub(rf"\b{re.escape(entries[0])}", symbol, ptx)
