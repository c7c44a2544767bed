"""A GPU of this process as a target: kernels are compiled for its architecture, loaded and launched there.

In Numba's simulator (NUMBA_ENABLE_CUDASIM=1) the source is run as it stands.
"""
from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import MXNetError, TargetError
from mxc.compiler.kernel.ir import CallKernel, Kernel
from mxc.compiler.targets.cuda import devices, driver, simulator
from mxc.compiler.targets.cuda.ahead import UNMEASURED, CudaTarget
from mxc.compiler.targets.cuda.blocks import SIMULATED, Blocks
from mxc.compiler.targets.cuda.code import capability
from mxc.compiler.targets.cuda.kernels import function_of, scratch_dtypes, source_of
from mxc.compiler.targets.cuda.launcher import Entry, GpuLauncher
from mxc.compiler.targets.cuda.nvidia.choice import Libraries
from mxc.compiler.targets.launch import DeviceCode, LoadedKernels, sources_digest, symbol
from mxc.compiler.targets.preferences import Preferences

if TYPE_CHECKING:
    from mxc.compiler.targets.cuda.allocator import Allocator
    from mxc.compiler.targets.protocol import DeviceTarget, Launcher, Memory


def _entry(kernel: Kernel, function: Any) -> Entry:
    return Entry(kernel.name, function, kernel.buffers, scratch_dtypes(kernel),
                 kernel if isinstance(kernel, CallKernel) else None)


class _Gpu:
    """What simulated GPUs and real ones have in common, beside what `CudaTarget` has: kernels that were loaded."""

    launcher: GpuLauncher
    prefers: Preferences
    _addresses: dict[str, int]

    def _launched_by(self, launcher: GpuLauncher) -> None:
        self.launcher, self._addresses = launcher, {}
        depths = UNMEASURED.depths
        assert depths is not None
        self.prefers = replace(UNMEASURED, depths=replace(
            depths, whole=lambda kernel: launcher.libraries.has(kernel),
            apart=lambda bare: launcher.libraries.has_bare(bare)))

    def _loaded(self, key: str, entry: Entry) -> None:
        self.launcher.entries.append(entry)
        self._addresses[key] = len(self.launcher.entries)

    def _refuse(self, kernel: Kernel, lacking: str) -> MXNetError:
        number = self.launcher.memory.device.number
        return MXNetError(f"gpu({number}): {kernel.name} cannot run on a GPU yet: there is no code for {lacking}; run "
                          "it on mx.cpu()")


class GpuTarget(_Gpu, CudaTarget):
    """See KernelTarget. Raises TargetError as `devices.require`, or without the extra `cuda`."""

    name = "gpu"

    def __init__(self, memory: Allocator):
        super().__init__(memory.device.arch)
        self._launched_by(GpuLauncher(memory, self.blocks.threads, Libraries(memory, self.cache, self.parts)))

    def load(self, kernels: Mapping[str, Kernel]) -> LoadedKernels:  # type: ignore[override]
        """See KernelTarget. Raises MXNetError for a kernel that the target lacks, too."""
        for kernel in kernels.values():
            if lacking := self.lacks(kernel):
                raise self._refuse(kernel, lacking)
        new = {key: kernel for key, kernel in kernels.items() if key not in self._addresses}
        library = super().load(new)
        device = self.launcher.memory.device
        assert isinstance(device, driver.Gpu)
        for key, code in library.codes.items():
            self._loaded(key, _entry(new[key], device.function(code.cubin, symbol(key))))
        return LoadedKernels({key: self._addresses[key] for key in kernels}, len(kernels) - library.misses,
                             library.misses, launcher=self.launcher)


    def differences(self, arch: str, sources: str) -> list[str]:
        """See DeviceTarget. PTX is for newer devices too."""
        found = []
        if arch != self.arch and capability(arch) > capability(self.arch):
            found.append(f"it has code for {arch} and newer, and this GPU is {self.arch}")
        if sources != sources_digest():
            found.append("another version of mxc made the code")
        return found

    def load_stored(self, codes: Mapping[str, DeviceCode]) -> LoadedKernels:
        """See DeviceTarget."""
        device: Any = self.launcher.memory.device
        for key, code in codes.items():
            if key not in self._addresses:
                data = code.cubin if code.arch == self.arch else code.ptx + b"\0"
                self._loaded(key, Entry(code.name, device.function(data, symbol(key)), code.buffers, code.scratch))
        return LoadedKernels({key: self._addresses[key] for key in codes}, len(codes), launcher=self.launcher)


class SimulatedTarget(_Gpu, CudaTarget):
    """See KernelTarget."""

    name = "gpu"

    def __init__(self, memory: Allocator, blocks: Blocks = SIMULATED):
        self.arch, self.cache, self.blocks = "simulated", None, blocks
        self.parts = {"target": "cuda:simulated", "mxc": sources_digest()}
        self._launched_by(GpuLauncher(memory, blocks.threads, Libraries(memory)))

    def load(self, kernels: Mapping[str, Kernel]) -> LoadedKernels:  # type: ignore[override]
        """See KernelTarget. Raises MXNetError for a kernel that the target lacks, too."""
        misses = 0
        for key, kernel in kernels.items():
            if lacking := self.lacks(kernel):
                raise self._refuse(kernel, lacking)
            if key not in self._addresses:
                self._loaded(key, _entry(kernel, simulator.function(function_of(kernel, self.blocks, None,
                                                                                simulator.SharedArrays()))))
                misses += 1
        return LoadedKernels({key: self._addresses[key] for key in kernels}, len(kernels) - misses, misses,
                             launcher=self.launcher)

    def differences(self, arch: str, sources: str) -> list[str]:
        """See DeviceTarget."""
        return ["a simulated GPU runs no machine code"]

    def load_stored(self, codes: Mapping[str, DeviceCode]) -> LoadedKernels:
        """See DeviceTarget; never called, for `differences` has something to say."""
        raise TargetError("a simulated GPU runs no machine code")

    def assembly(self, kernel: Kernel) -> str:
        """There is none: the source is what runs."""
        return source_of(kernel, self.blocks)


@functools.cache
def gpu_target(number: str) -> GpuTarget | SimulatedTarget:
    """The GPU of that number. Raises TargetError as `devices.require`, or where its code cannot be made."""
    if not number.isdecimal():
        raise TargetError(f"gpu:{number}: expected the number of a GPU, as gpu:0")
    memory = devices.memory(int(number))
    if isinstance(memory.device, simulator.SimulatedGpu):
        return SimulatedTarget(memory)
    return GpuTarget(memory)


if TYPE_CHECKING:  # mypy compares them
    from mxc.compiler.targets.cuda.allocator import Allocator as _Allocator

    _: tuple[type[DeviceTarget], type[DeviceTarget], type[Launcher], type[Memory]] = (
        GpuTarget, SimulatedTarget, GpuLauncher, _Allocator)
