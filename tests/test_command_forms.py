"""What commands print is what golden/commands has: piped, on a terminal of 80 columns, and as JSON."""
from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_forms import CASES, FOLDER, LEVEL, forms, prepare
from commands import on_terminal

from mxc.cli.main import COMMANDS, NO_TARGET

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="terminals of Linux")
OTHERS = ("completion", "doctor", "launch")  # files of tests of their own look at what these print


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment; the current directory is one with a model and inputs."""
    folder = tmp_path_factory.mktemp("forms")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code, made = prepare()
        if code == NO_TARGET:
            pytest.skip(f"this CPU has not the level {LEVEL}")
        return made


@pytest.mark.parametrize("name", CASES)
def test_forms(name: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(Path(variables["MXC_CACHE_DIR"]).parent)
    assert forms(name, **variables) == (FOLDER / f"{name}.txt").read_text(), (
        "after a change that is meant: python tests/command_forms.py --write")


def test_every_command_has_its_forms():
    assert {arguments[0] for arguments in CASES.values()} == set(COMMANDS) - set(OTHERS)
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CASES)


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("name", ["profile", "verify-nodes", "inspect-layers", "inspect", "cache-ls", "ops"])
def test_tables_fit_into_the_terminal(name: str, columns: int, variables: dict[str, str],
                                      monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(Path(variables["MXC_CACHE_DIR"]).parent)
    code, text = on_terminal(*CASES[name], columns=columns, **variables)
    long = [line for line in text.splitlines() if len(line) > columns and not line.startswith("  mxc ")]
    assert code == 0 and not long
