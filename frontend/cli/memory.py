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
    def megabytes(name: str) -> str:
        return f"{(facts[f'{name}_bytes'] or 0) / 1e6:,.1f} MB"

    whole = "" if facts.get("process_bytes") is None else f", with Python and libraries {megabytes('process')}"
    return (f"parameters {megabytes('parameters')}, prepared {megabytes('prepared')}, arena {megabytes('arena')}, "
            f"resident {megabytes('resident')}{whole}")
