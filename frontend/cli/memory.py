"""How much memory a model takes, and this process."""
from __future__ import annotations

import os
from collections.abc import Mapping

PROCESS = "/proc/self/statm"  # of Linux: pages; the second number is how many are resident


def of_process() -> int | None:
    """The bytes of this process that are in memory, code and libraries too; None where the system does not tell."""
    try:
        with open(PROCESS) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def text(facts: Mapping[str, int | None]) -> str:
    """What `Plan.memory` tells, for people; `process_bytes`: of the whole process, if that was measured."""
    from mxc.visualization.memory import bytes_text

    told = [f"{name} {bytes_text(facts[f'{name}_bytes'] or 0)}" for name in ("parameters", "prepared", "arena",
                                                                             "resident")]
    process = facts.get("process_bytes")
    return ", ".join(told + ([] if process is None else [f"with Python and libraries {bytes_text(process)}"]))
