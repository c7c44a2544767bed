"""LLVM, by llvmlite: it optimises modules, and loads object code into this process."""
from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from mxc.compiler.error import TargetError
from mxc.compiler.system import forks, interrupts
from mxc.compiler.targets.cpu.machine.permission import permitted

_lock = forks.Lock()
forks.take(getattr(ffi.lib, "_lock", _lock))  # llvmlite's own, which every call of LLVM takes
_engines: list[Any] = []  # own the loaded code, which lives as long as the process
_ready: list[bool] = []


def initialise() -> None:
    """Set LLVM up for this machine, once."""
    if not _ready:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
        _ready.append(True)


def machine(cpu: str = "", features: str = "") -> llvm.TargetMachine:
    """LLVM's code generator; for this machine's CPU when `cpu` is empty."""
    initialise()
    triple = llvm.get_process_triple()
    if not cpu:
        cpu, features = llvm.get_host_cpu_name(), host_features()
    if "+avx512f" in features.split(","):
        # LLVM leaves half of each register unused on Intel's CPUs, for the first ones with AVX-512 became slower by it.
        features += ",-prefer-256-bit"
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default")


@functools.cache
def host_features() -> str:
    """LLVM's text of what this machine's CPU can do and the system lets this process do, which takes LLVM 0.8 ms."""
    return ",".join(permitted(llvm.get_host_cpu_features().flatten().split(",")))


def names() -> dict[str, str]:
    """What LLVM calls this machine: triple, cpu and features."""
    return {"triple": llvm.get_process_triple(), "cpu": llvm.get_host_cpu_name(), "features": host_features()}


def load_by_llvm(codes: Iterable[bytes], symbols: Sequence[str]) -> dict[str, int]:
    """The addresses of the functions `symbols`, which these object codes define between them.

    Raises TargetError when LLVM cannot load the code or does not find a symbol in it.
    """
    with _lock, interrupts.held():
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())
        try:
            for code in codes:
                engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
        except RuntimeError as error:
            raise TargetError(f"LLVM cannot load the code of {', '.join(symbols)}: {error}") from None
        _engines.append(engine)
        found = {symbol: engine.get_function_address(symbol) for symbol in symbols}
    missing = [symbol for symbol, address in found.items() if not address]
    if missing:
        raise TargetError(f"the object code does not define {', '.join(missing)}")
    return found


def optimised(text: str, target: llvm.TargetMachine, speed: int = 3, short: bool = False,
              functions: Sequence[str] = ()) -> llvm.ModuleRef:
    """The module of LLVM IR text after LLVM's passes for `target`; speed 0: no passes, for text that needs none.

    functions: LLVM IR text of modules whose functions the text calls; they become functions of its own.
    short: the innermost loops have few, constant steps. They are unrolled, and their steps become vectors; LLVM would
    rather make vectors of the loops around them, with a shuffle for each element. So loops become vectors in a second
    turn only: those that were too long to unroll.
    """
    initialise()
    module = llvm.parse_assembly(text)
    for function in functions:
        module.link_in(llvm.parse_assembly(function))
    for name in (f.name for more in functions for f in llvm.parse_assembly(more).functions if not f.is_declaration):
        module.get_function(name).linkage = "internal"
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    module.verify()
    if speed == 0:
        return module
    for loops in (False, True) if short else (True,):
        tuning = llvm.create_pipeline_tuning_options(speed_level=speed)
        tuning.loop_vectorization = speed > 1 and loops
        tuning.slp_vectorization = speed > 2
        tuning.loop_unrolling = speed > 1
        builder = llvm.create_pass_builder(target, tuning)
        builder.getModulePassManager().run(module, builder)
    return module
