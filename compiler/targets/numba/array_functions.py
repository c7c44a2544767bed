"""A program's own functions over whole arrays as LLVM IR text, optimised for a CPU and checked: it refers to nothing
but functions of C for numbers and memory."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.kernel.ir import FunctionKernel
from mxc.compiler.system import interrupts

SPEED = 3  # the level of LLVM's optimisation
MATHEMATICS = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fma", "fmod", "frexp", "hypot", "ldexp", "lgamma", "log", "log10",
    "log1p", "log2", "modf", "nearbyint", "nextafter", "pow", "remainder", "rint", "round", "sin", "sincos", "sinh",
    "sqrt", "tan", "tanh", "tgamma", "trunc")
C_FUNCTIONS = frozenset([*MATHEMATICS, *(f"{name}f" for name in MATHEMATICS), "memcpy", "memmove", "memset", "malloc",
                         "free"])


def source(kernel: FunctionKernel, symbol: str, cpu: str, features: str) -> str:
    """LLVM IR of the kernel as the function `symbol`, which needs no more optimisation.

    Raises MXNetError quoting a line for what does not compile, or needs more than C's functions.
    """
    from mxc.compiler.targets.cpu.build.load import machine, optimised
    from mxc.compiler.targets.numba.arrays import kernel_text  # imports Numba
    from mxc.compiler.targets.numba.messages import needs

    with interrupts.held():
        text = kernel_text(kernel, symbol)
        try:
            module = optimised(text.ir, machine(cpu, features), SPEED)
        except RuntimeError as error:
            raise MXNetError(f"operator {kernel.name} does not compile: {error}\n{text.ir}") from error
    for function in module.functions:
        name = function.name
        if function.is_declaration and not name.startswith("llvm.") and name not in C_FUNCTIONS:
            raise kernel.function.error(needs(name), text.statement_of(name))
    return str(module)
