"""Which instruction sets tests of kernels run for."""
from __future__ import annotations

import pytest
from instruction_sets import OWN, RUNNING, InstructionSet, report

# Of a test's cases for a set that is not the widest here `make test` runs one of SHARE, if there are more than FEW.
SHARE, FEW = 5, 4


@pytest.fixture(scope="module", params=RUNNING, ids=str)
def instructions(request: pytest.FixtureRequest) -> InstructionSet:
    """Each instruction set that runs here, in turn."""
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what emulators run, and of each test most cases of those sets that are not the widest here; all of
    them if it is marked `widest`."""
    cases: dict[tuple[str, InstructionSet], list[pytest.Item]] = {}
    for item in items:
        chosen = getattr(item, "callspec", None) and item.callspec.params.get("instructions")
        if isinstance(chosen, InstructionSet) and chosen is not OWN and chosen in RUNNING:
            cases.setdefault((item.nodeid.split("[")[0], chosen), []).append(item)
    for (_, chosen), those in cases.items():
        for number, item in enumerate(those):
            sampled = len(those) <= FEW or number % SHARE == 0
            if chosen.is_emulated or not sampled or item.get_closest_marker("widest"):
                item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in report():
        terminalreporter.write_line(line)
