"""What this build can do, by the names that MXNet has for it: `mx.runtime.Features`."""
from __future__ import annotations

import functools
import platform
from collections import OrderedDict
from typing import NamedTuple

from mxc.compiler.targets import host

# MXNet's features that are LLVM's, where kernels are compiled for them.
_CPU = {"CPU_SSE": "sse", "CPU_SSE2": "sse2", "CPU_SSE3": "sse3", "CPU_SSE4_1": "sse4.1", "CPU_SSE4_2": "sse4.2",
        "CPU_SSE4A": "sse4a", "CPU_AVX": "avx", "CPU_AVX2": "avx2", "SSE": "sse", "F16C": "f16c"}
# The others that mxc has, and those that name libraries and devices it does without.
_THERE = ("PROFILER", "INT64_TENSOR_SIZE")
_NAMES = ("CUDA", "CUDNN", "NCCL", "CUDA_RTC", "TENSORRT", "CPU_SSE", "CPU_SSE2", "CPU_SSE3", "CPU_SSE4_1",
          "CPU_SSE4_2", "CPU_SSE4A", "CPU_AVX", "CPU_AVX2", "OPENMP", "SSE", "F16C", "JEMALLOC", "BLAS_OPEN",
          "BLAS_ATLAS", "BLAS_MKL", "BLAS_APPLE", "LAPACK", "MKLDNN", "OPENCV", "CAFFE", "PROFILER", "DIST_KVSTORE",
          "CXX14", "INT64_TENSOR_SIZE", "SIGNAL_HANDLER", "DEBUG", "TVM_OP")


class _Fields(NamedTuple):
    name: str
    enabled: bool


class Feature(_Fields):
    """A feature by name, and whether it is there."""

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


@functools.cache
def _host_features() -> frozenset[str]:
    """LLVM's names of what this CPU has; none but on x86, whose features alone have names here."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    return host().features()


def cpu_levels() -> tuple[str, ...]:
    """The levels of CPUs that kernels can be compiled for instead of for this machine's: the values of MXC_CPU."""
    return host().levels()


def cpu_level() -> str:
    """The highest of these levels that this machine's CPU has; "" for none."""
    return host().level_of(set(host().parts()["features"].split()))


def code_generators() -> dict[str, str]:
    """What can make code of loop kernels and routines, and what that is: the values of MXC_CODEGEN."""
    return host().generators()


def code_generator() -> str:
    """The one that MXC_CODEGEN asks for. Raises SettingError when it names none."""
    return host().generator()


def numba_fault() -> tuple[str, str]:
    """Why Numba cannot be imported, which is tried, and what to do; ("", "") where it can."""
    return host().numba_fault()


def vector_form() -> tuple[str, int]:
    """What kernels are made of on this machine: the name of the instructions, and the bits of a vector."""
    return host().vector_form()


def feature_list() -> list[Feature]:
    """Every feature that MXNet knows of."""
    return [Feature(name, name in _THERE or _CPU.get(name) in _host_features()) for name in _NAMES]


class Features(OrderedDict):
    """The features by name: one dict for the whole process."""

    _made: Features | None = None

    def __new__(cls) -> Features:
        if cls._made is None:
            cls._made = super().__new__(cls)
            OrderedDict.__init__(cls._made, [(feature.name, feature) for feature in feature_list()])
        return cls._made

    def __init__(self) -> None:
        """`__new__` has filled it."""

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Whether the feature is there; upper or lower case. Raises RuntimeError for a name that is none."""
        name = feature_name.upper()
        if name not in self:
            raise RuntimeError(f"Feature '{name}' is unknown, known features are: {list(self)}")
        return self[name].enabled
