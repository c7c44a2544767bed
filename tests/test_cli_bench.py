"""`mxc bench`: what it reports, and how it compares."""
from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from commands import command

import mxc as mx
from mxc.cli import machine
from mxc.cli.bench import statistics
from mxc.cli.clients import LEAST, measure, measured
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
    (raw,) = found["times"]
    assert found["clients"] == 1 and statistics(raw) == pytest.approx(times, abs=1e-4)
    assert found["throughput"] <= 1e3 / times["mean"] * 1.01
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


def test_versions_and_digests_tell_what_ran(capsys: pytest.CaptureFixture[str]):
    run = [*BENCH, "--iterations", "5", "--warm-up", "0", "--json"]
    assert main(run) == OK
    first = json.loads(capsys.readouterr().out)
    assert first["versions"]["mxc"] == mx.VERSION and {"python", "numpy", "llvmlite"} < first["versions"].keys()
    digests = first["digests"]
    assert digests["model"] == hashlib.sha256(Path("net-symbol.json").read_bytes()).hexdigest()
    assert digests["parameters"] is None and len(digests["kernels"]) == 64
    assert main(["compile", *BENCH[1:], "-o", "net.mxc"]) == OK
    capsys.readouterr()
    assert main(["bench", "net.mxc", *run[4:]]) == OK
    of_artifact = json.loads(capsys.readouterr().out)
    assert of_artifact["digests"]["kernels"] == digests["kernels"], "the same code runs"
    mx.sym.tanh(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")).save("net-symbol.json")
    first["versions"]["numpy"] = "1.0"
    Path("old.json").write_text(json.dumps(first))
    assert main([*run, "--compare", "old.json"]) == OK
    differs = json.loads(capsys.readouterr().out)["comparison"]["differs"]
    assert list(differs) == ["digest of the model", "numpy", "digest of the kernels"]


@pytest.mark.parametrize("kind", ["symbol", "artifact", "artifact without parameters"])
def test_clients_run_at_once(kind: str, capsys: pytest.CaptureFixture[str]):
    model = BENCH[1:]
    if kind.startswith("artifact"):
        if kind == "artifact":
            mx.nd.save("net-0000.params", {"arg:fc_weight": mx.nd.ones((3, 4)), "arg:fc_bias": mx.nd.ones((3,))})
        assert main(["compile", *model, "-o", "net.mxc"]) == OK
        model = ["net.mxc"]
    capsys.readouterr()
    run = ["bench", *model, "--clients", "3", "--iterations", "7"]
    assert main([*run, "--json"]) == OK
    found = json.loads(capsys.readouterr().out)
    assert (found["clients"], found["iterations"], list(map(len, found["times"]))) == (3, 21, [7, 7, 7])
    every = [time for times in found["times"] for time in times]
    assert statistics(every) == pytest.approx(found["milliseconds"], abs=1e-4) and found["throughput"] > 0
    Path("old.json").write_text(json.dumps(found | {"throughput": 1e12}))
    assert main([*run, "--compare", "old.json", "--fail-if-slower", "5%"]) == FAILED
    lines = capsys.readouterr().out.splitlines()
    assert "runs:    21, by 3 clients at once, each after 3 to warm up" in lines
    assert lines[-2].startswith("rate ") and "slower than old.json (1,000,000,000,000.0 runs a second)" in lines[-2]


def test_clones_compute_what_their_model_does():
    from argparse import Namespace

    from mxc.cli.inputs import Given
    from mxc.cli.runnable import open_bound

    options = Namespace(model="net-symbol.json", params=None, shape=[], dtype=[])
    model = open_bound(options, {"data": (2, 4)}, Given({}, {}), "random", needs_values=False)
    clone = model.clone()
    model.run()
    (wanted,) = model.values()
    clone.run()
    assert (clone.values()[0] == wanted).all() and wanted.any()
    model.set("data", mx.nd.zeros((2, 4)))
    model.run()
    clone.run()
    assert (clone.values()[0] == wanted).all(), "its inputs are its own"
    assert (model.values()[0] != wanted).any()


def test_all_clients_are_served_at_the_same_time():
    together = threading.Barrier(3)
    found = measured([together.wait] * 3, 4, 1.0)  # none goes on alone
    assert list(map(len, found.times)) == [4] * 3 and found.seconds > 0
    assert found.throughput == 12 / found.seconds


def test_an_error_of_a_client_ends_the_others():
    runs = []

    def endless() -> None:
        runs.append(threading.current_thread())

    def wrong() -> None:
        while not runs:
            pass
        raise ValueError("of one client")

    with pytest.raises(ValueError, match="of one client"):
        measured([endless, wrong, endless], None, 1e6)
    assert not any(thread.is_alive() for thread in runs)


REFUSED = {
    "nothing to compare with": (USAGE, ["--fail-if-slower", "5%"], "--compare OLD.json"),
    "no file": (BAD_FILE, ["--compare", "nosuch.json"], "nosuch.json: cannot be read"),
    "another file": (BAD_FILE, ["--compare", "net-symbol.json"], "expected what `mxc bench --json` prints"),
    "other inputs": (USAGE, ["--compare", "wide.json"], "data float32 2x5; this is data float32 2x4"),
    "other clients": (USAGE, ["--compare", "four.json"], "it has --clients 4; this is --clients 1"),
    "clients without a throughput": (BAD_FILE, ["--compare", "slack.json"], "expected what `mxc bench --json` prints"),
    "no input": (USAGE, ["--input", "dat=ones"], "did you mean 'data'?"),
}


@pytest.mark.parametrize(("code", "arguments", "text"), REFUSED.values(), ids=REFUSED)
def test_refusals(code: int, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]):
    Path("wide.json").write_text(json.dumps(report(inputs={"data": {"shape": [2, 5], "dtype": "float32"}})))
    Path("four.json").write_text(json.dumps(report(clients=4, throughput=1.0)))
    Path("slack.json").write_text(json.dumps(report(clients=4)))
    assert main([*BENCH, *arguments]) == code
    printed = capsys.readouterr()
    assert printed.out == "" and text in printed.err and len(printed.err.splitlines()) == 2


@pytest.mark.parametrize("arguments", [["--seconds", "0"], ["--iterations", "5", "--seconds", "1"], ["--warm-up", "-1"],
                                       ["--clients", "0"], ["--fail-if-slower", "much"]])
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
