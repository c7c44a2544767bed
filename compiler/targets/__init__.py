"""What code is made for: the `Target` protocol (protocol.py), what implements it, and the printers that targets share.

Begin with `protocol.py`, then `cpu/target.py`; docs/adding-a-target.md says how one is added. A target is asked for by
its name (`target`), and imported then: `cpu` (LLVM IR, with `numba` as its second generator), `cuda` (ahead of time),
`gpu` (a GPU of this machine, or a simulated one), `reference` (graphs by the operators' definitions). What the runtime
needs of the CPU without compiling is `host`, and of GPUs `gpus`.
Nothing outside of `cpu/` and `numba/` imports these two by name.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mxc.compiler.error import TargetError

if TYPE_CHECKING:
    from mxc.compiler.targets.protocol import Gpus, Host, KernelTarget, Target

# For each name: the module, its function that gives the target ("" if the module is the target), and an example of what
# has to follow the name behind a colon ("" if nothing may).
TARGETS = {
    "cpu": ("mxc.compiler.targets.cpu.target", "cpu_target", ""),
    "cuda": ("mxc.compiler.targets.cuda.ahead", "CudaTarget", "sm_90"),
    "gpu": ("mxc.compiler.targets.cuda.target", "gpu_target", "0"),
    "reference": ("mxc.compiler.targets.reference.interpreter", "", ""),
}


def target(name: str) -> Target:
    """The target of that name: "cpu", "reference", "cuda:" and an architecture, such as "cuda:sm_90", or "gpu:" and the
    number of a GPU.

    Raises TargetError for any other name, and when the machine or an installation lacks what the target needs.
    """
    kind, colon, which = name.partition(":")
    if kind not in TARGETS or bool(TARGETS[kind][2]) != bool(colon):
        known = ", ".join(f"{each}:{example}" if example else each for each, (_, _, example) in TARGETS.items())
        raise TargetError(f"there is no target {name!r}; expected one as {known}")
    place, maker, example = TARGETS[kind]
    module: Any = importlib.import_module(place)
    found: Target = getattr(module, maker)(*([which] if example else [])) if maker else module
    return found


def kernel_target(name: str) -> KernelTarget:
    """Like `target`, for targets that have code for kernels. Raises TargetError for one that has none."""
    found = target(name)
    if not hasattr(found, "launch"):
        raise TargetError(f"target {name!r} runs graphs node by node: it has no code for kernels")
    return found  # type: ignore[return-value]


def host() -> Host:
    """What the CPU target offers a running process without being made: see protocol.Host."""
    found: Host = importlib.import_module("mxc.compiler.targets.cpu").host
    return found


def gpus() -> Gpus:
    """What GPUs offer before anything is compiled for them: see protocol.Gpus."""
    found: Gpus = importlib.import_module("mxc.compiler.targets.cuda.devices")  # type: ignore[assignment]
    return found
