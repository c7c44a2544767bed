"""`mxc bench`: what it reports, and how it compares."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import command

import mxc as mx
from mxc.cli import machine
from mxc.cli.bench import LEAST, measure, statistics
from mxc.cli.main import BAD_FILE, FAILED, OK, USAGE, main

BENCH = ["bench", "net-symbol.json", "--shape", "data=2,4"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with a model without parameters."""
    monkeypatch.chdir(tmp_path)
    mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc").save("net-symbol.json")


def report(**changes: Any) -> dict[str, Any]:
    """A report of the model, as if it had run before."""
    about = machine.facts() | changes.pop("machine", {})
    return {"model": "net-symbol.json", "inputs": {"data": {"shape": [2, 4], "dtype": "float32"}}, "machine": about,
            "milliseconds": {"min": 1e9}} | changes


def test_a_report_is_compared_with_the_next():
    done = command(*BENCH, "--iterations", "20", "--warm-up", "1", "--threads", "1", "--json")
    assert (done.returncode, done.stderr) == (OK, "")
    found = json.loads(done.stdout)
    assert found["inputs"] == {"data": {"shape": [2, 4], "dtype": "float32"}} and found["iterations"] == 20
    assert found["parameters"] == "made up" and found["machine"]["threads"] == 1
    held = found["memory"]
    assert held["parameters_bytes"] == 3 * 4 * 4 + 3 * 4 and held["resident_bytes"] > held["arena_bytes"] >= 0
    assert held["process_bytes"] is None or held["process_bytes"] > held["resident_bytes"]
    times = found["milliseconds"]
    assert 0 < times["min"] <= times["p50"] <= times["p90"] <= times["p99"] and times["mean"] >= times["min"]
    Path("old.json").write_text(json.dumps(found | {"milliseconds": times | {"min": 1e-6}}))
    done = command(*BENCH, "--iterations", "5", "--threads", "1", "--compare", "old.json", "--fail-if-slower", "5%")
    assert (done.returncode, done.stderr) == (FAILED, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["model:", "net-symbol.json", "(made-up", "parameters)"]
    assert [line.split(":")[0] for line in lines[:11]] == ["model", "inputs", "machine", "memory", "runs", "min", "p50",
                                                          "p90", "p99", "mean", "rate"]
    assert lines[3].split(": ")[1].startswith(" parameters 60 B, prepared ") and ", resident " in lines[3]
    assert lines[-1] == "slower by more than 5 %" and " slower than old.json" in lines[-2]


def test_faster_is_no_failure(capsys: pytest.CaptureFixture[str]):
    Path("old.json").write_text(json.dumps(report(machine={"cpu": "abacus"}, model="other-symbol.json")))
    assert main([*BENCH, "--iterations", "5", "--compare", "old.json", "--fail-if-slower", "0", "--json"]) == OK
    found = json.loads(capsys.readouterr().out)["comparison"]
    assert found["slower_percent"] < 0 and list(found["differs"]) == ["model", "cpu"]
    assert main([*BENCH, "--iterations", "5", "--compare", "old.json"]) == OK
    assert "note: cpu was abacus, is " in capsys.readouterr().out


REFUSED = {
    "nothing to compare with": (USAGE, ["--fail-if-slower", "5%"], "--compare OLD.json"),
    "no file": (BAD_FILE, ["--compare", "nosuch.json"], "nosuch.json: cannot be read"),
    "another file": (BAD_FILE, ["--compare", "net-symbol.json"], "expected what `mxc bench --json` prints"),
    "other inputs": (USAGE, ["--compare", "wide.json"], "data float32 2x5; this is data float32 2x4"),
    "no input": (USAGE, ["--input", "dat=ones"], "did you mean 'data'?"),
}


@pytest.mark.parametrize(("code", "arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: int, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    Path("wide.json").write_text(json.dumps(report(inputs={"data": {"shape": [2, 5], "dtype": "float32"}})))
    assert main([*BENCH, *arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == "" and text in printed.err and len(printed.err.splitlines()) == 2


@pytest.mark.parametrize("arguments", [["--seconds", "0"], ["--iterations", "5", "--seconds", "1"], ["--warm-up", "-1"],
                                       ["--fail-if-slower", "much"]])
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        main([*BENCH, *arguments])
    assert stop.value.code == USAGE


def test_how_many_runs_are_measured():
    assert len(measure(lambda: None, 7, 1.0)) == 7
    assert len(measure(lambda: None, None, 1e-9)) == LEAST
    assert statistics([1.0, 2.0, 3.0, 4.0]) == {"min": 1.0, "p50": 2.5, "p90": 3.7, "p99": 3.97, "mean": 2.5}


def test_advice():
    quiet = {"cpus": 4, "threads": 4, "load_average": 0.2}
    assert machine.advice(quiet) == [] and machine.advice(quiet | {"load_average": None}) == []
    assert "busy" in machine.advice(quiet | {"load_average": 5.0})[0]
    assert "--threads 4" in machine.advice(quiet | {"threads": 9})[0]
    assert "2.0 times" in machine.advice(quiet, 2.0)[0]
