"""The machine that a command runs on: what it is, how busy it is, and what that means for measurements."""
from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from mxc.compiler.system import env

BUSY = 0.3  # load of other programs on each CPU from which on times vary


def cpu_name() -> str:
    """The processor as its maker calls it; the architecture where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def facts() -> dict[str, Any]:
    """CPU, architecture, CPUs that this process may use, threads that run plans, and the load of the last minute.

    load_average is None where the system does not tell.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    return {"cpu": cpu_name(), "machine": platform.machine(), "system": platform.system(), "cpus": usable,
            "threads": env.num_threads(), "load_average": load}


def text(found: dict[str, Any]) -> str:
    """One line of `facts`."""
    load = "unknown" if found["load_average"] is None else f"{found['load_average']:.2f}"
    return f"{found['cpu']}, {found['cpus']} CPUs; threads: {found['threads']}, load average: {load}"


def advice(found: dict[str, Any], spread: float = 1.0) -> list[str]:
    """What makes times on this machine unreliable, and what to do about it. spread: the median over the least time."""
    lines = []
    load = found["load_average"]
    if load is not None and load > BUSY * found["cpus"]:
        lines.append(f"the machine is busy (load average {load:.2f} on {found['cpus']} CPUs): stop other programs, or "
                     "compare the least times (min) only")
    if found["threads"] > found["cpus"]:
        lines.append(f"{found['threads']} threads share {found['cpus']} CPUs: give --threads {found['cpus']}")
    if spread > 1.5:
        lines.append(f"the median is {spread:.1f} times the least time: something disturbed the runs; run it again, "
                     "longer")
    return lines
