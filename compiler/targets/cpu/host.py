"""What tells this machine's CPU from others, without LLVM where the system says it."""
from __future__ import annotations

import platform
import sys

from mxc.compiler.targets.cpu import levels

ANY = "any with these features"  # in place of a CPU's identity, of code for a level (levels.py)
IDENTITY = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU variant", "CPU part")  # lines of /proc/cpuinfo
FLAGS = ("flags", "Features")
FIRST = 1 << 14  # bytes of /proc/cpuinfo that hold its first CPU: reading of all takes long on large machines


def host_parts() -> dict[str, str]:
    """What compiled code depends on, labelled: the system, the machine, the CPU, and its features between spaces."""
    parts = {"system": sys.platform, "machine": platform.machine()}
    level = levels.chosen()
    if level is not None:
        return parts | {"cpu": ANY, "features": " ".join(sorted(level.flags))}
    return parts | _own_parts()


def check_level(level: levels.Level) -> None:
    """Raise TargetError unless this machine's CPU has the level."""
    levels.check_here(level, platform.machine(), frozenset(_own_parts()["features"].split()))


def _own_parts() -> dict[str, str]:
    found = _cpuinfo()
    cpu = " ".join(found[name] for name in IDENTITY if name in found)
    features = next((found[name] for name in FLAGS if name in found), "")
    if not cpu or not features:
        import llvmlite.binding as llvm

        from mxc.compiler.targets.cpu.load import host_features

        there = (feature for feature in host_features().split(",") if feature.startswith("+"))
        cpu, features = llvm.get_host_cpu_name(), " ".join(there)
    return {"cpu": cpu, "features": " ".join(sorted(features.split()))}


def _cpuinfo() -> dict[str, str]:
    """The lines of the first CPU in /proc/cpuinfo; none where there is no such file."""
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(FIRST).decode("ascii", "replace")
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def differences(then: dict[str, str], now: dict[str, str]) -> list[str]:
    """Why code that was compiled with the parts `then` may not run with the parts `now`. A CPU may have more features
    than the one that was compiled for."""
    reasons = [f"{label}: {then[label]!r} then, {now.get(label, '')!r} now" for label in then
               if label != "features" and then[label] != now.get(label) and (label, then[label]) != ("cpu", ANY)]
    lost = sorted(set(then.get("features", "").split()) - set(now.get("features", "").split()))
    return reasons + ([f"features that this CPU lacks: {', '.join(lost)}"] if lost else [])
