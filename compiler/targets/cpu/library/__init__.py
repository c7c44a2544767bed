"""The CPU's library kernels: LLVM IR text for the templates of `kernel/calls.py`.

Each defines a function with the ABI of `kernel/ir.py`. Its text depends on the template, its params, the dtypes and the
epilogue's form, not on extents and strides: one function serves every size.
"""
from __future__ import annotations

from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cpu.builder import BYTES, Array, Builder, Value
from mxc.compiler.targets.cpu.isa import Isa, native
from mxc.compiler.targets.cpu.library import (
    blocked,
    blocked_depthwise,
    convolution,
    depthwise,
    gemm,
    pooling,
    weight_grad,
    winograd,
    winograd_data,
)
from mxc.compiler.targets.cpu.library.blocks import Blocking, TileCode, print_kernel
from mxc.compiler.targets.cpu.library.epilogue import Epilogue

PRODUCTS = {
    "convolution": (convolution.forward_size, convolution.Pixels),
    "convolution_data_grad": (convolution.data_grad_size, convolution.Pixels),
}
OTHERS = {
    "depthwise": depthwise,
    "depthwise_data_grad": depthwise,
    "depthwise_weight_grad": depthwise,
    "max_pool_grad": pooling,
}


WHOLE = {
    "blocked_convolution": blocked,
    "blocked_depthwise": blocked_depthwise,
    "convolution_weight_grad": weight_grad,
    "gemm": gemm,
    "winograd_data": winograd_data,
    "winograd_convolution": winograd,
}


def tile(dtype: str, isa: Isa | None = None) -> tuple[int, int]:
    """(MR, NR): the blocks in which packed rows come, for operands of `dtype`."""
    return (isa or native()).tile(dtype)


def computing(kernel: CallKernel) -> str:
    return computing_dtype(str(dict(kernel.params)["dtype"]))


def source(kernel: CallKernel, symbol: str, isa: Isa | None = None) -> str:
    """LLVM IR text that defines @`symbol`."""
    isa, dtype = isa or native(), computing(kernel)
    b = Builder(f'nounwind "min-legal-vector-width"="{isa.vector_bytes * 8}"')

    def epilogue_of(args: Value) -> Epilogue:
        return Epilogue(kernel, b, Array(b, args, "int64"), isa)

    if kernel.template in WHOLE:
        WHOLE[kernel.template].print_kernel(kernel, symbol, b, isa, dtype, epilogue_of)
    elif kernel.template in OTHERS:
        with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, *values):
            OTHERS[kernel.template].print_kernel(kernel, b, isa, dtype, epilogue_of(args), values)
    else:
        code, product = TileCode(b, isa, dtype), PRODUCTS[kernel.template][1]
        print_kernel(code, symbol, lambda args: product(kernel, code, epilogue_of(args)))
    return b.module()


def _blocking(kernel: CallKernel, isa: Isa) -> Blocking:
    dtype = computing(kernel)
    return Blocking.of(PRODUCTS[kernel.template][0](kernel.extents), isa.tile(dtype), dtype)


def units(kernel: CallKernel, isa: Isa | None = None) -> int:
    """Independent pieces of work of a launch."""
    isa = isa or native()
    if kernel.template in WHOLE:
        return WHOLE[kernel.template].units(kernel, isa)
    if kernel.template in OTHERS:
        return OTHERS[kernel.template].units(kernel, isa.lanes(computing(kernel)))
    return int(_blocking(kernel, isa).units)  # type: ignore[arg-type]


def scratch_bytes(kernel: CallKernel, isa: Isa | None = None) -> int:
    """Private memory that a thread needs to run the kernel; aligned to 64 bytes."""
    isa, dtype = isa or native(), computing(kernel)
    if kernel.template in WHOLE:
        elements = WHOLE[kernel.template].scratch_elements(kernel, isa)
    elif kernel.template in OTHERS:
        elements = OTHERS[kernel.template].scratch_elements(kernel, isa.lanes(dtype))
    else:
        elements = int(_blocking(kernel, isa).layout(isa.tile(dtype), isa.lanes(dtype))[2])  # type: ignore[arg-type]
    return elements * BYTES[dtype]
