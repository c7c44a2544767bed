"""The CPU: machine code by LLVM, of kernels that are printed as LLVM IR or as typed Python source.

`target.py` is the target; `emit/` prints loop kernels, routines and chains, `library/` library kernels, `build/` makes
their object code and loads it, with `targets/numba/` as its second generator, `machine/` tells CPUs apart,
`preferences.py` has the figures that were measured on them, `runner_ir.py` what runs plans. The rest of the project
knows this folder through `mxc.compiler.targets` alone: `target("cpu")`, and `host`, which is here.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import Host, HostTarget, RunnerCode


class _Cpu:
    """See `Host` in targets/protocol.py. Each method imports what it needs, so that a start pays for no more."""

    def target(self) -> HostTarget:
        from mxc.compiler.targets.cpu.target import cpu_target

        return cpu_target()

    def target_of(self, parts: Mapping[str, str]) -> HostTarget:
        from mxc.compiler.targets.cpu.target import cpu_target_of

        return cpu_target_of(parts)

    def parts(self) -> dict[str, str]:
        from mxc.compiler.targets.cpu.machine.host import host_parts

        return host_parts()

    def differences(self, then: dict[str, str], now: dict[str, str]) -> list[str]:
        from mxc.compiler.targets.cpu.machine.host import differences

        return differences(then, now)

    def link(self, objects: Sequence[bytes], symbols: Sequence[str],
             ) -> tuple[bytes, dict[str, int], dict[str, int]] | None:
        from mxc.compiler.targets.cpu.build import image

        if not image.is_native():
            return None
        try:
            return image.link(objects, symbols)
        except image.LinkError:
            return None

    def load_image(self, code: bytes | memoryview, imports: Mapping[str, int]) -> int:
        from mxc.compiler.targets.cpu.build import image

        return image.load(code, imports)

    def load_objects(self, objects: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
        from mxc.compiler.targets.cpu.build.loaded import load_functions

        return load_functions(objects, symbols)

    def runner(self) -> RunnerCode:
        from mxc.compiler.targets.cpu import runner_ir

        return runner_ir

    def features(self) -> frozenset[str]:
        from mxc.compiler.targets.cpu.build.load import host_features

        return frozenset(name[1:] for name in host_features().split(",") if name.startswith("+"))

    def vector_form(self) -> tuple[str, int]:
        from mxc.compiler.targets.cpu.machine.isa import native

        return native().name, native().vector_bytes * 8

    def levels(self) -> tuple[str, ...]:
        from mxc.compiler.targets.cpu.machine.levels import LEVELS

        return tuple(LEVELS)

    def level_of(self, features: Set[str]) -> str:
        from mxc.compiler.targets.cpu.machine.levels import LEVELS

        return next((level.name for level in reversed(LEVELS.values()) if level.flags <= features), "")

    def generators(self) -> dict[str, str]:
        from mxc.compiler.targets.cpu.build.codegen import GENERATORS

        return GENERATORS

    def generator(self) -> str:
        from mxc.compiler.targets.cpu.build.codegen import chosen

        return chosen()

    def numba_fault(self) -> tuple[str, str]:
        from mxc.compiler.targets.cpu.build import codegen

        fault = codegen.numba_fault()
        return fault, codegen.ADVICE if fault else ""


host: Host = _Cpu()
