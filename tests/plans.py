"""Write golden/plans.txt: kernels and arena bytes of each network, as tests/test_plan_table.py compares them.

    python tests/plans.py --write     to be run after a change of the passes, and its difference to be read

Networks that are not in the repository have their rows in golden/saved_plans.txt: they are written where
`../shared/models` is there.
"""
from __future__ import annotations

import sys
from pathlib import Path

from models import EVERY, network, saved
from programs import lowered

from mxc.compiler.lowering.plan_memory import intervals, place

TABLE = Path(__file__).parent / "golden" / "plans.txt"
SAVED_TABLE = TABLE.with_name("saved_plans.txt")
HEADER = "network | mode | kernels: prepare, forward, backward | host steps | arena bytes\n"


def row(name: str, train: bool) -> str:
    """One line, for a target with tiles of 3 x 5, whatever the machine."""
    symbol, shapes = network(name)
    requests = {n: "write" for n in symbol.list_arguments() if n not in shapes} if train else {}
    launches = lowered(symbol.graph, shapes, None, requests, train).launches
    counts = [sum(launch.phase == phase for launch in launches) for phase in ("prepare", "forward", "backward")]
    host = sorted({launch.label for launch in launches if launch.kernel is None})
    return (f"{name} | {'training' if train else 'inference'} | {', '.join(map(str, counts))} | "
            f"{', '.join(host) or 'none'} | {place(intervals(launches))}\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for table, names in ((TABLE, EVERY), (SAVED_TABLE, saved())):
        if names:
            table.write_text(HEADER + "".join(row(name, train) for name in names for train in (False, True)))
