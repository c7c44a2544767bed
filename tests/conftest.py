"""Which instruction sets tests of kernels run for."""
from __future__ import annotations

import itertools

import pytest
from instruction_sets import OWN, RUNNING, InstructionSet, report

SHARE = 5  # of the cases of a set that is not the widest here, every one of so many is run by `make test`


@pytest.fixture(scope="module", params=RUNNING, ids=str)
def instructions(request: pytest.FixtureRequest) -> InstructionSet:
    """Each instruction set that runs here, in turn."""
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what emulators run, and of each test most cases of those sets that are not the widest here; all of
    them if it is marked `widest`."""
    counts: dict[tuple[str, InstructionSet], itertools.count[int]] = {}
    for item in items:
        chosen = getattr(item, "callspec", None) and item.callspec.params.get("instructions")
        if not isinstance(chosen, InstructionSet) or chosen is OWN:
            continue
        function = item.nodeid.split("[")[0]
        number = next(counts.setdefault((function, chosen), itertools.count()))
        if chosen.is_emulated or number % SHARE or item.get_closest_marker("widest"):
            item.add_marker(pytest.mark.slow)


def pytest_report_header() -> list[str]:
    return report()
