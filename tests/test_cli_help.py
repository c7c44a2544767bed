"""Help in the width of the terminal, and what shells complete."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mxc as mx
from mxc.cli.completion import commands
from mxc.cli.main import COMMANDS, OK, main

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_one_width(name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", str(width))
    with pytest.raises(SystemExit):
        main([name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    filled = [line for line in lines if not line.startswith("  ") and not line.startswith("usage")]
    assert max(map(len, filled)) <= width - 2
    if name == "verify":  # whose description is long
        assert max(map(len, filled)) > width - 14, "and it is used"


def test_examples_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main(["inspect", "--help"])
    assert "\n  mxc inspect net-symbol.json --shape data=8,3,224,224 --train --memory memory.svg\n" in \
        capsys.readouterr().out


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main([option])
    assert stop.value.code == OK and capsys.readouterr().out == f"mxc {mx.VERSION}\n"


def test_the_folder_of_the_header(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main(["--include"])
    folder = Path(capsys.readouterr().out.removesuffix("\n"))
    assert not stop.value.code and (folder / "mxc.h").read_text() == (ROOT / "include" / "mxc.h").read_text()


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize(("words", "found"), [
    (["ver"], ["verify"]), (["--ver"], ["--version"]), (["--inc"], ["--include"]), (["repo"], ["report"]),
    (["bench", "--cl"], ["--clients"]), (["report", "--sec"], ["--seconds"]),
    (["verify", "--w"], ["--worst", "--wrong"]),
    (["profile", "--by", ""], ["kernel", "layer"]), (["cache", "pr"], ["prune"]),
    (["run", "some"], ["some-symbol.json"]),
    (["run", "--params", "some"], ["some-symbol.json"]), (["--debug", "bench", "--comp"], ["--compare"])])
def test_bash(words: list[str], found: list[str], tmp_path):
    (tmp_path / "some-symbol.json").touch()
    line = " ".join(["mxc", *(word or "''" for word in words)])
    program = (f"source <({sys.executable} -m mxc completion bash); COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
               '_mxc; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.stdout.split(), done.stderr) == (found, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts(shell: str, capsys: pytest.CaptureFixture[str]):
    """All commands and options are there, and the shell, where it is installed, reads them."""
    assert main(["completion", shell]) == OK
    script = capsys.readouterr().out
    for command in commands():
        assert command.name in script
        for option in command.options:
            assert all((name if shell == "zsh" else name.lstrip("-")) in script for name in option.names)
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True, timeout=60).returncode == 0
