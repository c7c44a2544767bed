"""Detections as tables, for people."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def show(data: Sequence[Mapping[str, Any]]) -> None:
    """Print what `mxc.detections.as_data` gives."""
    from mxc.cli.tables import print_table

    for number, row in enumerate(data):
        left = row["found"] - len(row["best"])
        print(f"row {number}{' (' + row['file'] + ')' if 'file' in row else ''}: "
              f"{row['found'] or 'no'} object{'s' * (row['found'] != 1)}")
        if row["best"]:
            print_table(("class", "score", "left", "top", "right", "bottom"),
                        [(each.get("name", str(each["class"])), f"{each['score']:.3f}",
                          *(f"{float(value):.4g}" for value in each["box"])) for each in row["best"]],
                        right=(1, 2, 3, 4, 5))
        if left:
            print(f"and {left} more")
