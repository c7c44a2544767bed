"""The levels of x86-64 that many CPUs share, to compile for instead of for this machine's CPU.

Source: the x86-64 psABI supplement, "Micro-architecture levels".
"""
from __future__ import annotations

from typing import NamedTuple

from mxc.compiler.error import SettingError, TargetError, nearest
from mxc.compiler.system import env

VARIABLE = "MXC_CPU"


class Level(NamedTuple):
    """features: the level's features that kernels are printed for, in LLVM's text. flags: what /proc/cpuinfo says of a
    CPU that has the level."""

    name: str
    features: str
    flags: frozenset[str]


_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})
_V4 = _V3 | frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})
LEVELS = {level.name: level for level in (
    Level("x86-64-v2", "+sse4.1", _V2), Level("x86-64-v3", "+sse4.1,+avx2,+fma,+f16c", _V3),
    Level("x86-64-v4", "+sse4.1,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma,+f16c", _V4))}


def chosen() -> Level | None:
    """The level that MXC_CPU asks for; None: this machine's CPU. Raises SettingError when it names no level."""
    name = env.text(VARIABLE)
    if not name:
        return None
    if name not in LEVELS:
        raise SettingError(f"{VARIABLE}: there is no level {name!r}; expected one of {', '.join(LEVELS)}, "
                           f"or nothing for this machine's CPU{nearest(name, LEVELS)}")
    return LEVELS[name]


def check_here(level: Level, machine: str, flags: frozenset[str]) -> None:
    """Raise TargetError unless a CPU with these flags has the level: what is compiled also has to run here, at once."""
    missing = sorted(level.flags - flags)
    if machine != "x86_64" or missing:
        raise TargetError(f"{level.name}: this machine ({machine}) lacks {', '.join(missing) or 'it'}; compile for a "
                          "lower level, or on a machine that has this one")
