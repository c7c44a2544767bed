"""The environment variables that mxc reads: the only place that reads them.

| variable | meaning |
|---|---|
| MXC_DEBUG | 0..5: how much is printed to stderr (see docs/design.md) |
| MXC_PRINT | comma-separated names of passes and stages (listed in docs/design.md): what they change goes to stderr |
| MXC_CHECK | 1: check the graph after every pass |
| MXC_SKIP | comma-separated optional passes and stages to leave out |
| MXC_STRICT | 1: what is compiled from now on uses direct convolutions only, for outputs nearer to the exact ones |
| MXC_MEMORY | small: what is compiled from now on holds parameters as small as it can, and takes longer |
| MXC_CPU | x86-64-v2, x86-64-v3 or x86-64-v4: compile for every CPU of that level (default: for this machine's) |
| MXC_CODEGEN | llvm (default) or numba: what makes code of loop kernels and routines |
| MXC_CACHE_DIR | where compiled kernels are kept (default: XDG_CACHE_HOME/mxc, else ~/.cache/mxc); empty: no cache |
| MXC_CACHE_SIZE | most bytes there (500M, 2G; default 2G; 0: no limit): what was used longest ago is removed |
| MXC_NUM_THREADS | threads that run a plan; else OMP_NUM_THREADS, else the CPUs by affinity and control group |
| MXC_RUNNER | native (default where there is one) or portable: what runs plans |
| MXC_CUDA_LIBRARIES | faster (default), always or never: where NVIDIA's libraries take the place of kernels of GPUs |
| MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION | 1: NVIDIA's libraries may round float32 to TF32 for tensor cores |
| MXNET_CUDA_ALLOW_TENSOR_CORE | 0: they may not even so |
| NUMBA_ENABLE_CUDASIM | 1: GPUs are simulated in this process, by Numba |
| MXC_SIMULATED_GPUS | how many GPUs there are then (default: 1) |
| MXNET_OPTIMIZER_AGGREGATION_SIZE | how many weights an optimizer that takes lists gets at once (default: 4; LAMB 45) |
| MXNET_UPDATE_ON_KVSTORE | 0: a module's devices update the parameters, not its kvstore (default: 1) |
| MXNET_GLUON_REPO | the server that packages for MXNet load weights and data sets from (default: MXNet's) |
| MXNET_KVSTORE_BIGARRAY_BOUND | elements of the largest part of a value on a server (default: 1000000) |
| DMLC_ROLE, DMLC_WORKER_ID, DMLC_NUM_WORKER, DMLC_NUM_SERVER, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT | who a process is \
that trains with others, and where Ray is: `mxc launch` sets them (docs/distributed.md) |
| MXC_GROUP | the namespace of Ray's in which the servers are (default: mxc) |
| MXNET_ENGINE_TYPE | NaiveEngine: operations are done when their call returns (default: they may be queued) |
"""
from __future__ import annotations

import os
from collections.abc import Mapping

MOST_GPUS = 64
MOST_THREADS = 256  # threads: a larger number is taken for a mistake; systems may refuse to start so many


def text(name: str, default: str = "") -> str:
    """The variable's value, or `default` when it is not set."""
    return os.environ.get(name, default)


def get(name: str) -> str | None:
    """The variable's value, whatever it is for; None when it is not set."""
    return os.environ.get(name)


def all_and(more: Mapping[str, str]) -> dict[str, str]:
    """All variables, for a process that is started, and these besides or in their place."""
    return {**os.environ, **more}


def set(name: str, value: str | None) -> None:
    """Set a variable of this process, or unset it with None."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def names(name: str) -> frozenset[str]:
    """A comma-separated variable as a set."""
    return frozenset(part.strip() for part in text(name).split(",") if part.strip())


def debug_level() -> int:
    """MXC_DEBUG as a number; what is not a number counts as 0."""
    value = text("MXC_DEBUG", "0")
    return int(value) if value.isdecimal() else 0


def flag(name: str) -> bool:
    """True for 1, true, yes and on."""
    return text(name).lower() in ("1", "true", "yes", "on")


def tf32() -> bool:
    """Whether float32 may be rounded to TF32 in products: MXNet's switch for float32 on tensor cores."""
    return flag("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION") and text("MXNET_CUDA_ALLOW_TENSOR_CORE", "1") != "0"


def simulated_gpus() -> int:
    """How many GPUs are simulated: 0 where Numba's simulator is not asked for."""
    if text("NUMBA_ENABLE_CUDASIM", "0") in ("", "0"):
        return 0
    count = text("MXC_SIMULATED_GPUS", "1")
    return min(int(count), MOST_GPUS) if count.isdecimal() else 1


def num_threads() -> int:
    """Threads that run a plan: MXC_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs this process may run on."""
    for name in ("MXC_NUM_THREADS", "OMP_NUM_THREADS"):
        value = text(name).split(",")[0].strip()  # OMP_NUM_THREADS may list a number for each level of nesting.
        if value.isdecimal() and int(value) > 0:
            return min(int(value), MOST_THREADS)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return min(cpus, _quota(), MOST_THREADS)


def _quota(root: str = "/sys/fs/cgroup", of: str = "/proc/self/cgroup") -> int:
    """How many CPUs' time the process's control group (version 2), and those above it, allow, rounded up. `cpu.max` has
    the microseconds of CPU time and the period that they are for, see the kernel's cgroup-v2 document."""
    try:
        with open(of) as file:
            group = next((line[3:].strip("/\n") for line in file if line.startswith("0::")), "")
    except OSError:
        return MOST_THREADS
    found, parts = MOST_THREADS, group.split("/") if group else []
    for depth in range(len(parts) + 1):
        try:
            with open(os.path.join(root, *parts[:depth], "cpu.max")) as file:
                quota, period = file.read().split()
        except (OSError, ValueError):
            continue
        if quota.isdecimal() and period.isdecimal() and int(period):
            found = min(found, max(1, -(-int(quota) // int(period))))
    return found
