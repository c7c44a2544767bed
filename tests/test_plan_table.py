"""Kernels, host steps and arena bytes of every network are the golden tables'."""
from __future__ import annotations

import pytest
from models import EVERY, SAME, saved
from plans import HEADER, SAVED_TABLE, TABLE, row

OWN, SAVED = ({tuple(line.split(" | ")[:2]): line for line in table.read_text().splitlines(keepends=True)[1:]}
              for table in (TABLE, SAVED_TABLE))


def params(rows: dict[tuple[str, ...], str]) -> list:
    return [pytest.param(name, mode, id=f"{name}-{mode}", marks=[pytest.mark.slow] if mode == "training" else [])
            for name, mode in rows]


@pytest.mark.parametrize(("name", "mode"), params(OWN))
def test_plan(name: str, mode: str) -> None:
    assert row(name, mode == "training") == OWN[name, mode], (
        "after a change of the passes that is meant: python tests/plans.py --write")


def test_every_network_has_its_rows() -> None:
    assert not {name for name, _ in OWN} & {name for name, _ in SAVED}
    assert TABLE.read_text().startswith(HEADER)
    assert list(OWN) == [(name, mode) for name in EVERY for mode in ("inference", "training")]


@pytest.mark.parametrize(("name", "mode"), params(SAVED))
def test_plan_of_a_saved_network(name: str, mode: str) -> None:
    """Saved networks are other people's files, which the repository does not have: skipped without them."""
    assert row(name, mode == "training") == SAVED[name, mode], (
        "after a change of the passes that is meant: python tests/plans.py --write")


@pytest.mark.skipif(not saved(), reason="there is no folder of saved networks beside the checkout")
def test_every_saved_network_has_its_rows() -> None:
    assert list(SAVED) == [(name, mode) for name in saved() for mode in ("inference", "training")]


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("mode", ["inference", "training"])
def test_networks_that_are_like_saved_ones_have_their_plans(name: str, mode: str) -> None:
    own = SAME[name]
    assert OWN[own, mode].removeprefix(own) == SAVED[name, mode].removeprefix(name)
