"""The CPU's library kernels: LLVM IR text for the templates of `kernel/calls.py`.

Each defines a function with the ABI of `kernel/ir.py`. Its text depends on the template, on what its geometry has baked
in, the dtypes and the epilogue's form, not on extents and strides: one function serves every size.

Begin at `printing.py` (what all are printed with), `cutting.py` (how work is cut) and `tile.py` (register tiles);
`panels.py` is a kernel of usual size. From outside come `source`, `units`, `scratch_bytes` and `tile`.
"""
from __future__ import annotations

from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cpu.emit.builder import BYTES, Builder
from mxc.compiler.targets.cpu.library import (
    blocked,
    blocked_depthwise,
    convolution,
    depthwise,
    filter_lanes,
    gemm,
    image_lanes,
    panels,
    plain_winograd,
    planes,
    pool_spread,
    pooling,
    tiled,
    weight_grad,
    winograd,
    winograd_data,
    winograd_side,
    winograd_weight,
    winograd_weight_grad,
    words,
)
from mxc.compiler.targets.cpu.library.printing import Printing
from mxc.compiler.targets.cpu.machine.isa import Isa, native

# Each module has units(geometry, isa), scratch_elements(geometry, isa) in the computing dtype, and print_kernel.
MODULES = {
    "blocked_convolution": blocked,
    "blocked_depthwise": blocked_depthwise,
    "blocked_quads": blocked,
    "convolution": convolution,
    "convolution_data_grad": convolution,
    "convolution_weight_grad": weight_grad,
    "depthwise": depthwise,
    "depthwise_data_grad": depthwise,
    "depthwise_weight_grad": depthwise,
    "filter_convolution": filter_lanes,
    "filter_data_grad": filter_lanes,
    "gemm": gemm,
    "gemm_of_parts": gemm,
    "image_convolution": image_lanes,
    "image_data_grad": image_lanes,
    "max_pool_grad": pooling,
    "panel_convolution": panels,
    "plain_winograd": plain_winograd,
    "plane_convolution": planes,
    "plane_data_grad": planes,
    "pool_spread": pool_spread,
    "quad_convolution": panels,
    "tiled_convolution": tiled,
    "winograd_convolution": winograd,
    "winograd_data": winograd_data,
    "winograd_side": winograd_side,
    "winograd_weight": winograd_weight,
    "winograd_weight_grad": winograd_weight_grad,
    "word_product": words,
}


def tile(dtype: str, isa: Isa | None = None) -> tuple[int, int]:
    """(MR, NR): the blocks in which packed rows come, for operands of `dtype`."""
    return (isa or native()).tile(dtype)


def source(kernel: CallKernel, symbol: str, isa: Isa | None = None) -> str:
    """LLVM IR text that defines @`symbol`."""
    isa = isa or native()
    b = Builder(f'nounwind "min-legal-vector-width"="{isa.vector_bytes * 8}"', opaque=True)
    MODULES[kernel.template].print_kernel(Printing(kernel, symbol, b, isa))
    return b.module()


def units(kernel: CallKernel, isa: Isa | None = None) -> int:
    """How many units of work a launch has."""
    return int(MODULES[kernel.template].units(kernel.geometry, isa or native()))


def scratch_bytes(kernel: CallKernel, isa: Isa | None = None) -> int:
    """Private memory that a thread needs to run the kernel; aligned to 64 bytes."""
    elements = MODULES[kernel.template].scratch_elements(kernel.geometry, isa or native())
    return int(elements) * BYTES[computing_dtype(kernel.geometry.dtype)]
