"""What `mxc inspect --target cuda:...` prints: the kernels of a GPU."""
from __future__ import annotations

from typing import Any

from mxc.cli.tables import print_table

COLUMNS = ("kernel", "blocks", "registers", "stack", "shared", "occupancy", "limited by", "us", "library")
NUMBERS = (1, 2, 3, 4, 5, 7)
WIDEST = 50  # characters of a kernel's operators


def of_model(model: Any, train: bool, target: str) -> dict[str, Any]:
    """See runtime/device_kernels.py."""
    from mxc.runtime import device_kernels

    return device_kernels.report(model.graph, model.grad_req, train, target)


def show(found: dict[str, Any]) -> None:
    """Print the table and the totals."""
    rows = []
    for step in found["steps"]:
        name = step["operators"] if len(step["operators"]) <= WIDEST else f"{step['operators'][:WIDEST - 3]}..."
        if "registers" in step:
            numbers = [step["blocks"], step["registers"], step["stack"], step["shared"], f"{step['occupancy']:.0%}",
                       step["limit"], f"{step['microseconds']:.1f}", step["library"]]
        else:
            numbers = ["", "", "", "", "", "no code: the host's", "", ""]
        rows.append([name, *map(str, numbers)])
    print_table(COLUMNS, rows, right=NUMBERS)
    print(f"\npredicted for an {found['machine']}: {found['microseconds'] / 1e3:.2f} ms, by bytes, operations and "
          "launches; not measured")
    if names := sorted({step["library"] for step in found["steps"]} - {""}):
        print(f"{' and '.join(names)}: where it is there and faster (docs/cuda.md); the figures are those of mxc's "
              "kernels")
