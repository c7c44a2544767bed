"""What tells this machine's CPU from others, without LLVM where the system says it."""
from __future__ import annotations

import json
import platform
import sys
from typing import TYPE_CHECKING

from mxc.compiler.cache_files import entry_key
from mxc.compiler.targets.cpu.machine import levels, permission

if TYPE_CHECKING:
    from mxc.compiler.cache import Cache

BOOT = "/proc/sys/kernel/random/boot_id"  # Linux has another text here after each start, and on each machine
ANY = "any with these features"  # stands in place of a CPU's identity for code that is made for a level (levels.py)
IDENTITY = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU variant", "CPU part")  # lines of /proc/cpuinfo
FLAGS = ("flags", "Features")
FIRST = 1 << 14  # so many bytes of /proc/cpuinfo hold its first CPU; reading them all takes long on large machines


def host_parts() -> dict[str, str]:
    """What compiled code depends on, labelled: the system, the machine, the CPU, and its features between spaces."""
    parts = {"system": sys.platform, "machine": platform.machine()}
    level = levels.chosen()
    if level is not None:
        return parts | {"cpu": ANY, "features": " ".join(sorted(level.flags))}
    return parts | _own_parts()


def llvm_names(cache: Cache | None) -> dict[str, str]:
    """What LLVM calls this machine: triple, cpu and features.

    To import LLVM takes 25 ms, a tenth of a small program's start that compiles nothing, and 40 MB. So the cache keeps
    the answer until the system is started again, as long as /proc/cpuinfo says the same: a CPU does not change in
    between. Another process finds it for the cache.
    """
    import llvmlite  # which imports nothing else

    boot = _boot()
    parts = {"boot": boot, "llvmlite": llvmlite.__version__, "machine": platform.machine()}
    if boot:
        parts |= _own_parts()
    key = entry_key("what LLVM calls this machine", parts)
    known = cache.get(key) if cache is not None and boot else None
    if known is not None:
        return {str(label): str(text) for label, text in json.loads(known).items()}
    found = _names_apart() if cache is not None and boot else None
    if found is None:
        from mxc.compiler.targets.cpu.build.load import names

        found = names()
    if cache is not None and boot:
        cache.put(key, parts, json.dumps(found).encode(), "what LLVM calls this machine", cache.explain(key, parts))
    return found


def _names_apart() -> dict[str, str] | None:
    """What `load.names` gives in another process; None where that fails."""
    import subprocess

    code = (f"import sys, json; sys.path[:] = {sys.path!r}; from mxc.compiler.targets.cpu.build.load import names; "
            "print(json.dumps(names()))")
    try:
        made = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return {str(label): str(text) for label, text in json.loads(made.stdout).items()}
    except (OSError, ValueError, AttributeError, subprocess.SubprocessError):
        return None


def _boot() -> str:
    """A text that tells this start of the system from others; "" where the system has none."""
    try:
        with open(BOOT) as file:
            return file.read().strip()
    except OSError:
        return ""


def check_level(level: levels.Level) -> None:
    """Raise TargetError unless this machine's CPU has the level."""
    levels.check_here(level, platform.machine(), frozenset(_own_parts()["features"].split()))


def _own_parts() -> dict[str, str]:
    found = _cpuinfo()
    cpu = " ".join(found[name] for name in IDENTITY if name in found)
    features = next((found[name] for name in FLAGS if name in found), "")
    if not cpu or not features:
        import llvmlite.binding as llvm

        from mxc.compiler.targets.cpu.build.load import host_features

        there = (feature for feature in host_features().split(",") if feature.startswith("+"))
        cpu, features = llvm.get_host_cpu_name(), " ".join(there)
    return {"cpu": cpu, "features": " ".join(sorted(permission.permitted(features.split())))}


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
    refused = ", or the system refuses" if any(name.startswith(permission.PREFIX) for name in lost) else ""
    return reasons + ([f"features that this CPU lacks{refused}: {', '.join(lost)}"] if lost else [])
