"""The system's permission to use AMX, which a process has to ask for before it runs code with tiles.

Linux keeps so much state for tiles that it lets no process have it unasked (Documentation/arch/x86/xstate.rst of its
sources). The permission holds for all threads of the process and for processes that it forks, until one of them runs
another program. Where it is refused, as by older kernels and by some containers, the CPU counts as one without AMX.
"""
from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Iterable

ARCH_PRCTL, REQUEST, TILES = 158, 0x1023, 18  # of Linux on x86-64: the system call, what it does, the state asked for
PREFIX = "amx"  # of the names of all that needs the permission, in /proc/cpuinfo and LLVM's text


@functools.cache
def has_tiles() -> bool:
    """Whether this process may use AMX, which it asks the system for the first time."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(ctypes.c_long(ARCH_PRCTL), ctypes.c_long(REQUEST), ctypes.c_long(TILES)) == 0


def permitted(features: Iterable[str]) -> list[str]:
    """Those of a CPU's features that this process may use; LLVM's begin with a sign. The system is asked only where
    the CPU has AMX."""
    listed = list(features)
    wanted = any(name.lstrip("+").startswith(PREFIX) for name in listed)
    return listed if not wanted or has_tiles() else [name for name in listed if not name.lstrip("+").startswith(PREFIX)]
