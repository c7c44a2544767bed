"""Kills parts of a program that runs as several processes, and checks what docs/distributed.md promises.

    python tests/dist_kills.py --count 50 [--seed 0]

Each case starts `mxc launch`, kills one process at a random moment, and looks at the launcher's exit code, at what it
prints, at how long it takes, and at processes that are left. `run` is one case, for tests.
"""
from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

PROGRAM = Path(__file__).with_name("dist_training.py")
MARK = "DIST_KILLS"  # an environment variable that all processes of a case inherit
TARGETS = ("worker", "process", "server", "launcher", "terminate", "interrupt", "async worker", "async restart")
SECONDS = 10.0  # until the others have their error
LEFT = 30.0  # until nothing is left, on a machine that may be busy
AGENTS = 120.0  # until Ray's own agents have noticed that the node is gone for which they were just starting


class Case(NamedTuple):
    """target: what is killed. at: seconds after the start of training, below 0 after the start of the launcher."""

    target: str
    at: float
    workers: int = 2
    servers: int = 1


def marked(mark: str) -> dict[int, str]:
    """The processes of a case, as their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                is_dead = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0") and not is_dead:
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
    return found


def are_agents(processes: dict[int, str]) -> bool:
    """Whether all these are Ray's agents of a node, which run nothing of the program's."""
    return all(line.startswith("ray::") and line.split()[0].endswith("Agent") for line in processes.values())


def victim(case: Case, launcher: int, mark: str, rng: random.Random) -> int | None:
    if case.target in ("launcher", "terminate", "interrupt"):
        return launcher
    wanted = {"server": "ray::Server", "process": "ray::Process"}.get(case.target)
    found = [pid for pid, line in marked(mark).items()
             if (line.startswith(wanted) if wanted else PROGRAM.name in line and "launch" not in line)]
    return rng.choice(sorted(found)) if found else None


def run(case: Case, seed: int = 0, patience: float = 1) -> dict[str, Any]:
    """What came of a case. "wrong" is what is not as promised, "" where all is. patience: a factor of all times that
    are allowed."""
    rng, mark = random.Random(seed), uuid.uuid4().hex
    is_async = case.target.startswith("async")
    lines: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        epochs = "150" if is_async else "1000000"
        command = [sys.executable, "-m", "mxc", "launch", "-n", str(case.workers), "-s", str(case.servers), "--store",
                   "150M", *(["--restarts", "1"] if case.target == "async restart" else []), sys.executable,
                   str(PROGRAM), folder, "--kind", "dist_async" if is_async else "dist_sync", "--epochs", epochs,
                   "--tell"]
        process = subprocess.Popen(command, env={**os.environ, MARK: mark}, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)

        def read() -> None:
            assert process.stdout is not None
            lines.extend((time.monotonic(), line.rstrip()) for line in process.stdout)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            return _judged(case, process, lines, reader, mark, rng, patience)
        finally:
            for pid in marked(mark):  # nothing of a failed case stays
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            process.wait()


def _judged(case: Case, process: subprocess.Popen, lines: list[tuple[float, str]], reader: threading.Thread, mark: str,
            rng: random.Random, patience: float) -> dict[str, Any]:
    if case.at >= 0:
        end = time.monotonic() + 120 * patience
        while sum("training" in line for _, line in lines) < case.workers and time.monotonic() < end \
                and process.poll() is None:
            time.sleep(0.05)
    time.sleep(abs(case.at))
    pid = victim(case, process.pid, mark, rng)
    if pid is None:
        return {"case": case, "wrong": "there was no such process yet", "lines": lines}
    killed = time.monotonic()
    os.kill(pid, {"terminate": signal.SIGTERM, "interrupt": signal.SIGINT}.get(case.target, signal.SIGKILL))
    try:
        code: int | None = process.wait(patience * (180 if case.target.startswith("async") else LEFT))
    except subprocess.TimeoutExpired:
        code = None
    ended = time.monotonic() - killed
    while (left := marked(mark)) and time.monotonic() - killed < ended + patience * (
            AGENTS if are_agents(left) else LEFT):
        time.sleep(0.2)
    reader.join(5)
    text = "\n".join(line for _, line in lines)
    errors = [(when - killed, line) for when, line in lines if re.search(r"\[worker \d+\] \S*MXNetError: ", line)]
    return {"case": case, "code": code, "ended": ended, "errors": errors, "left": left,
            "wrong": _wrong(case, code, text, errors, left, patience), "lines": lines}


def _wrong(case: Case, code: int | None, text: str, errors: list[tuple[float, str]], left: dict[int, str],
           patience: float) -> str:
    if code is None:
        return "the launcher hangs"
    if left:
        return f"left over: {left}"
    wanted = {"worker": 137, "process": 137, "launcher": -9, "terminate": None, "interrupt": 130,
              "async worker": 137, "async restart": 0}
    if case.target in wanted and wanted[case.target] not in (None, code):
        return f"exit code {code}, expected {wanted[case.target]}"
    if code == 0 and case.target != "async restart":
        return "exit code 0"
    if case.target in ("worker", "process", "server") and case.at >= 0:
        others = case.workers - (case.target != "server")
        if len({line.split("]")[0] for _, line in errors}) != others:
            return f"expected an error of each of {others} workers, got {errors}"
        if errors[-1][0] > SECONDS * patience:
            return f"an error came only after {errors[-1][0]:.1f} s"
    if case.target == "async worker" and text.count("accuracy 1.0") != case.workers - 1:
        return "the others did not go on"
    if case.target == "async restart" and text.count("accuracy 1.0") != case.workers:
        return "not all workers came to the end"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS)
    options = parser.parse_args()
    rng, wrong = random.Random(options.seed), 0
    for number in range(options.count):
        target = options.target or TARGETS[number % len(TARGETS)]
        early = target in ("launcher", "terminate", "interrupt") and rng.random() < 0.3
        at = -rng.uniform(1, 12) if early else rng.uniform(0, 2)
        case = Case(target, at, rng.choice([2, 2, 4]), rng.choice([1, 2]))
        found = run(case, rng.randrange(1 << 30))
        wrong += bool(found["wrong"])
        late = max((when for when, _ in found.get("errors", ())), default=0)
        print(f"{number}: {target} at {case.at:.2f} s, {case.workers} workers, {case.servers} servers: "
              f"{found['wrong'] or 'as promised'} (exit code {found.get('code')}, ended after "
              f"{found.get('ended', 0):.1f} s, last error after {late:.1f} s)", flush=True)
        if found["wrong"]:
            print("\n".join(f"    {line}" for _, line in found["lines"][-40:]), flush=True)
    print(f"{wrong} of {options.count} cases are not as promised")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
