"""`make` finds a Python that is new enough, and makes its environment anew for another one.

The Pythons here are scripts that answer what the Makefile asks, and write down what they were told to make.
"""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAKE = """#!/bin/sh
case "$*" in
  "-m venv "*) echo "$2 {version} $3" >> {log}; [ "$3" = --clear ] && shift && rm -rf "$3"; mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"; printf '#!/bin/sh\\n' > "$3/bin/ruff"; chmod +x "$3/bin/ruff" ;;
  "-m pip "*--no-deps*) echo "links {version}" >> {log} ;;
  "-m pip "*) echo "pip {version}" >> {log} ;;
  *exit*) exit {exit} ;;
  *print*) echo "{version}" ;;
  *) exit 3 ;;
esac
"""

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


class Project:
    """A folder with the Makefile and what it reads, and Pythons on a path of its own."""

    def __init__(self, folder: Path):
        self.folder, self.log, self.bin = folder, folder / "log", folder / "pythons"
        self.bin.mkdir()
        for name in ("Makefile", "pyproject.toml", "setup.py"):
            shutil.copy(ROOT / name, folder / name)
        for name in ("frontend/__init__.py", "runtime/__init__.py", "compiler/__init__.py", "ops.yaml", "build/.keep"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()
        for name in ("sh", "sed", "touch", "rm", "mkdir", "cp", "chmod", "cat", "find", "sort", "cmp"):
            tool = shutil.which(name)
            if tool:
                (self.bin / name).symlink_to(tool)

    def python(self, name: str, version: str, code: int = 0) -> Path:
        """A Python of that name on the path. code: its exit code when asked whether it is new enough."""
        path = self.bin / name
        path.write_text(FAKE.format(version=version, exit=code, log=self.log))
        path.chmod(0o755)
        return path

    def make(self, *arguments: str, **variables: str) -> tuple[int, list[str], str]:
        """Exit code, what Pythons made meanwhile, and standard error of `make lint`."""
        return self.make_of("lint", *arguments, **variables)[:3]

    def make_of(self, *arguments: str, **variables: str) -> tuple[int, list[str], str, str]:
        """As `make`, of the targets among the arguments, and standard output too."""
        self.log.write_text("")
        ours = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "PYTHON"}
        done = subprocess.run([shutil.which("make") or "make", *arguments], cwd=self.folder, text=True,
                              timeout=60, capture_output=True, env={**ours, "PATH": str(self.bin), **variables})
        return done.returncode, self.log.read_text().splitlines(), done.stderr, done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_first_python_that_is_new_enough(project: Project):
    project.python("python3.11", "3.11", 127)  # as a version manager's stand-in for what is not installed
    project.python("python3.12", "3.12")
    project.python("python3.13", "3.13")
    assert project.make() == (0, ["venv 3.12 .venv", "pip 3.12"], "")
    assert project.make() == (0, [], "")


def test_without_a_target_the_environment_is_made_and_nothing_runs(project: Project):
    """What takes long says so before it begins."""
    project.python("python3.12", "3.12")
    code, made, _, said = project.make_of()
    assert (code, made) == (0, ["venv 3.12 .venv", "pip 3.12"])
    assert "installing, a few minutes the first time\n.venv/bin/python -m pip install" in said
    assert "examples" not in said
    (project.folder / "runtime" / "new.py").touch()
    code, made, _, said = project.make_of()
    assert (code, made) == (0, ["links 3.12"]) and "few minutes" not in said


def test_python3_where_it_is_new_enough(project: Project):
    project.python("python3", "3.15")
    assert project.make()[:2] == (0, ["venv 3.15 .venv", "pip 3.15"])


def test_no_python_is_new_enough(project: Project):
    project.python("python3", "3.10", 1)
    code, made, said = project.make()
    assert code != 0 and made == []
    assert said.startswith("no Python 3.11 or later among python3.11 python3.12 python3.13 python3.14 python3: install "
                           "one, or give make PYTHON=/path/to/python\n")


@pytest.mark.parametrize("name", ["python3.9", "python3.99"])
def test_a_python_that_will_not_do(project: Project, name: str):
    project.python("python3.9", "3.9", 1)
    code, made, said = project.make(f"PYTHON={name}")
    assert code != 0 and made == []
    assert f"PYTHON={name} does not run, or is not 3.11 or later" in said


@pytest.mark.parametrize("as_variable", [False, True])
def test_another_python_makes_another_environment(project: Project, as_variable: bool):
    def make(python: str) -> list[str]:
        code, made, _ = project.make(**{"PYTHON": python}) if as_variable else project.make(f"PYTHON={python}")
        assert code == 0
        return made

    project.python("python3.11", "3.11")
    project.python("python3.13", "3.13")
    assert project.make()[1] == ["venv 3.11 .venv", "pip 3.11"]
    assert make("python3.11") == []
    assert make("python3.13") == ["venv 3.13 --clear", "pip 3.13"]
    assert make("python3.13") == [] and project.make()[1] == []
    assert make(str(project.bin / "python3.11")) == ["venv 3.11 --clear", "pip 3.11"]


def test_another_place(project: Project):
    project.python("python3.13", "3.13")
    assert project.make("VENV=elsewhere")[1] == ["venv 3.13 elsewhere", "pip 3.13"]
    assert (project.folder / "elsewhere" / ".ready").exists() and not (project.folder / ".venv").exists()


def test_another_recipe_is_installed_into_the_same_environment(project: Project):
    project.python("python3.11", "3.11")
    project.make()
    later = (project.folder / ".venv" / ".ready").stat().st_mtime + 5
    os.utime(project.folder / "pyproject.toml", (later, later))
    assert project.make()[1] == ["pip 3.11"]


@pytest.mark.parametrize("change", ["new", "renamed", "deleted"])
def test_a_changed_list_of_files_is_linked_anew(project: Project, change: str):
    """Another content is no other list."""
    project.python("python3.11", "3.11")
    path = project.folder / "compiler" / "one.py"
    path.write_text("1")
    assert project.make()[1] == ["venv 3.11 .venv", "pip 3.11"]
    path.write_text("2")
    assert project.make()[1] == []
    if change == "new":
        (project.folder / "frontend" / "two.py").touch()
    elif change == "renamed":
        path.rename(project.folder / "runtime" / "one.py")
    else:
        path.unlink()
    assert project.make()[1] == ["links 3.11"]
    assert project.make()[1] == []


def test_links_that_are_gone_are_made_anew(project: Project):
    project.python("python3.11", "3.11")
    project.make()
    (project.folder / "build" / "linked.txt").unlink()
    assert project.make()[1] == ["links 3.11"]


@pytest.mark.parametrize(("python", "made"), [("3.11", "venv 3.11 .venv"), ("3.12", "venv 3.12 --clear")])
def test_an_environment_that_was_not_finished(project: Project, python: str, made: str):
    """It is completed by the same Python, and made anew by another one."""
    project.python("python3.11", "3.11")
    project.make()
    (project.folder / ".venv" / ".ready").unlink()
    (project.bin / "python3.11").unlink()
    project.python(f"python{python}", python)
    assert project.make()[1] == [made, f"pip {python}"]
