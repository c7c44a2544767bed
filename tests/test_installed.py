"""Tests do not begin where the installed package lacks source files of the checkout."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from installed import PLACES, ROOT, complaint, package

from mxc.compiler.system import sources


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with two files in each folder, and a tree of links to them in `links`."""
    tmp_path = tmp_path.resolve()
    for folder, place in PLACES.items():
        for name in ("__init__.py", "below/one.py"):
            path, link = tmp_path / folder / name, tmp_path / "links" / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            link.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
            link.symlink_to(path)
    return tmp_path


def test_the_package_here_is_whole() -> None:
    assert complaint(package()) == ""


def test_the_compiler_knows_its_versions_by_the_checkouts_files() -> None:
    """Not by their links' folder, which might lack one."""
    found = package()
    assert found is not None
    own = (found / "compiler" / "api.py").resolve()
    assert Path(sources.ROOT) in (own.parent, ROOT / "compiler")


def test_links_to_all_files(checkout: Path) -> None:
    assert complaint(checkout / "links", checkout) == ""


@pytest.mark.parametrize("folder", PLACES)
def test_a_new_file_has_no_link(checkout: Path, folder: str) -> None:
    (checkout / folder / "new.py").write_text("")
    assert complaint(checkout / "links", checkout) == (
        f"{folder}/new.py: cannot be imported as mxc yet, since the list of source files changed: run make")


def test_a_file_was_renamed(checkout: Path) -> None:
    (checkout / "compiler" / "below" / "one.py").rename(checkout / "compiler" / "below" / "two.py")
    assert complaint(checkout / "links", checkout).startswith("compiler/below/two.py: cannot be imported")


def test_a_file_was_deleted(checkout: Path) -> None:
    """A link that leads nowhere is no module for Python."""
    (checkout / "compiler" / "below" / "one.py").unlink()
    assert complaint(checkout / "links", checkout) == ""
    program = "from importlib.util import find_spec\nprint(find_spec('links.compiler.below.one'))"
    said = subprocess.run([sys.executable, "-c", program], cwd=checkout, capture_output=True, text=True, check=True)
    assert said.stdout == "None\n"


def test_many_files_are_new(checkout: Path) -> None:
    for i in range(5):
        (checkout / "runtime" / f"new{i}.py").write_text("")
    assert "runtime/new2.py and 2 more: cannot" in complaint(checkout / "links", checkout)


def test_the_sources_themselves(checkout: Path) -> None:
    """An installation that is not strict imports the folders as they are."""
    assert complaint(checkout / "frontend", checkout) == ""


def test_a_package_from_elsewhere(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "wheel"
    other.mkdir()
    (other / "__init__.py").write_text("")
    assert complaint(other, checkout) == ""


def test_nothing_is_installed() -> None:
    assert complaint(None).startswith("mxc is not installed in this Python: run make")
