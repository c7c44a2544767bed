"""Which instruction sets tests of kernels run for, and how random cases are drawn; nothing runs where the installed
package lacks source files."""
from __future__ import annotations

import installed
import pytest
from hypothesis import settings

incomplete = installed.complaint(installed.package())
if incomplete:  # before the first import of mxc, which may lack the same file
    raise pytest.UsageError(incomplete)

from instruction_sets import NUMBA, OWN, RUNNING, InstructionSet, report  # noqa: E402

# Of a test's cases for a set that is not the widest here `make test` runs one of SHARE, another one for each set; with
# Numba's code one of SLOWER. Of fewer cases it runs one.
SHARE, SLOWER = 6, 40
# Tests whose kernels come as LLVM IR, whatever makes code of the others.
LIBRARY = ("test_library", "test_winograd", "test_plain_winograd", "test_panels", "test_planes", "test_blocked",
           "test_chains")

# `make test` asks for this: whether it passes depends on the commit alone. `make test-all` draws other cases each time.
settings.register_profile("same-cases", derandomize=True)


@pytest.fixture(scope="module", params=RUNNING, ids=str)
def instructions(request: pytest.FixtureRequest) -> InstructionSet:
    """Each instruction set that runs here, in turn."""
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what emulators run, and of each test most cases of those sets that are not the widest here; all of
    them if it is marked `widest`, but for some with Numba's code."""
    items[:] = [item for item in items if not (item.path.stem in LIBRARY and _set_of(item) is NUMBA)]
    cases: dict[tuple[str, InstructionSet], list[pytest.Item]] = {}
    for item in items:
        chosen = _set_of(item)
        if chosen is not None and chosen is not OWN and chosen in RUNNING:
            cases.setdefault((item.nodeid.split("[")[0], chosen), []).append(item)
    for (_, chosen), those in cases.items():
        share = min(SLOWER if chosen is NUMBA else SHARE, len(those))
        for number, item in enumerate(those, RUNNING.index(chosen)):
            if chosen.is_emulated or number % share or (_is_for_widest(item) and chosen is not NUMBA):
                item.add_marker(pytest.mark.slow)


def _set_of(item: pytest.Item) -> InstructionSet | None:
    chosen = item.callspec.params.get("instructions") if hasattr(item, "callspec") else None
    return chosen if isinstance(chosen, InstructionSet) else None


def _is_for_widest(item: pytest.Item) -> bool:
    return item.get_closest_marker("widest") is not None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in report():
        terminalreporter.write_line(line)
