"""`mxc doctor`: what it finds where all is well, and where something is not."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import command

from mxc.cli import doctor
from mxc.cli.main import FAILED, OK, main

WHAT = ["Python", "mxc", "numpy", "llvmlite", "numba", "pyyaml", "rich", "CPU", "threads", "cache", "a model",
        "extra image", "extra plot", "extra s3", "extra hdfs", "extra cuda", "GPUs"]


def test_all_is_well():
    done = command("doctor", "--json")
    assert (done.returncode, done.stderr) == (OK, "")
    found = json.loads(done.stdout)
    assert [each["what"] for each in found["findings"]] == WHAT
    states = {each["what"]: each["state"] for each in found["findings"]}
    assert all(states[what] == "ok" for what in (*WHAT[:7], "a model"))
    assert found["machine"]["cpus"] >= 1


def test_a_package_that_is_broken():
    done = command("doctor", program="import sys\nsys.modules['numba'] = None")
    assert (done.returncode, done.stderr) == (FAILED, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["failed", "numba"] in [row[:2] for row in rows]
    assert "numba: pip install --upgrade numba" in done.stdout.splitlines()
    assert not any("model" in row for row in rows)


@pytest.mark.parametrize(("formula", "text"), [("data", "computes wrong numbers"), ("data +", "Error")])
def test_a_compiler_that_is_wrong(formula: str, text: str):
    fault = f"from mxc.compiler.ops import table\ntable.get('tanh').expr = {formula!r}"
    done = command("doctor", "--json", program=fault, MXC_CACHE_DIR="")
    assert (done.returncode, done.stderr) == (FAILED, "")
    model = next(each for each in json.loads(done.stdout)["findings"] if each["what"] == "a model")
    assert model["state"] == "failed" and text in model["found"] and "report it" in model["advice"]


@pytest.mark.parametrize("setting", ["", "file"])
def test_no_cache(setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    monkeypatch.setattr("mxc.compiler.cache._warned", set())
    monkeypatch.setenv("MXC_CACHE_DIR", setting and str(tmp_path / "file"))
    found = doctor.cache()
    assert (found.state, found.found) == ("note", "none: each process compiles anew")
    assert "MXC_CACHE_DIR" in found.advice


def test_settings_that_cost_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("MXC_NUM_THREADS", "200")
    monkeypatch.setenv("MXC_RUNNER", "portable")
    found = doctor.threads()
    assert found.state == "note" and "200 on" in found.found and "portable runner" in found.found
    assert "unset MXC_RUNNER" in found.advice
    assert main(["doctor"]) == OK
    assert "threads: " in capsys.readouterr().out
