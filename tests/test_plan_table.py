"""Kernels, host steps and arena bytes of every network are the golden table's."""
from __future__ import annotations

import pytest
from models import SHARED
from plans import HEADER, TABLE, names, row

ROWS = TABLE.read_text().splitlines(keepends=True)[1:]


def found(line: str) -> tuple[str, bool]:
    name, mode = line.split(" | ")[:2]
    return name, mode == "training"


@pytest.mark.parametrize("line", [pytest.param(line, marks=[pytest.mark.slow] if found(line)[1] else [],
                                               id="-".join(line.split(" | ")[:2])) for line in ROWS])
def test_plan(line: str) -> None:
    name, train = found(line)
    assert row(name, train) == line, "after a change of the passes that is meant: python tests/plans.py --write"


def test_every_network_has_its_rows() -> None:
    assert TABLE.read_text().startswith(HEADER)
    if not (SHARED / "cases.json").exists():
        pytest.skip(f"{SHARED} is not there")
    assert [found(line) for line in ROWS] == [(name, train) for name in names() for train in (False, True)]
