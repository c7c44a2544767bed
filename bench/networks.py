"""Whole networks, training steps, convolutions, matrix products and fused chains: mxc against its peers.

    python bench/networks.py [--quick] [--peers mxnet,torch] [--cases WORD ...] [--threads 1,2] [--rounds N]
                             [--python PEER=PYTHON ...] [--models FOLDER] [--json FILE] [--compare OLD.json]

Every peer runs in a process of its own, from an environment that is made when missing, pinned to the same CPUs; all
get the same graph and weights. In every round each peer runs each case, with a fixed piece of work beside it that
corrects the machine's drift. Printed: peer time / mxc time (above 1: mxc is faster), of the minima as measured and of
the corrected medians over the rounds. A peer whose result is not mxc's, within 1e-3 of the largest value (3e-2 for
gradients of a deep network), fails. What a peer cannot do is "-"; the JSON says why.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from cases.registry import INFERENCE, Entry, chosen
from harness import environments, measure, start, table
from harness.worker import Worker

START = "resnet50 b1"  # the case whose cold and warm start are measured


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line),
                     model)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=environments.ROOT, capture_output=True,
                            text=True).stdout.strip()
    return {"cpu": model, "cpus": str(os.cpu_count()), "system": platform.platform(),
            "python": platform.python_version(), "commit": commit, "load": f"{os.getloadavg()[0]:.1f}"}


def read_old(path: Path) -> dict:
    """The results of an earlier run; ends the program where the file has none."""
    try:
        old = json.loads(path.read_text())
        if isinstance(old, dict) and isinstance(old.get("threads"), dict):
            return old
    except (OSError, ValueError) as error:
        sys.exit(f"--compare {path}: {error}")
    sys.exit(f"--compare {path}: not what this script writes with --json")


def pythons(names: list[str], given: dict[str, str]) -> dict[str, str]:
    """Peer: its Python; says which have none. given: those that are not ours to make."""
    found = {}
    for name in names:
        try:
            if name in given and shutil.which(given[name]) is None:
                raise environments.Unavailable(f"--python {name}={given[name]}: there is no such program")
            found[name] = given.get(name) or environments.python(name)
        except environments.Unavailable as reason:
            print(f"skipped {name}: {reason}", flush=True)
    return found


def write_case(entry: Entry) -> Path:
    folder = environments.home() / "cases"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{entry.name.replace(' ', '_').replace('/', 'd')}.json"
    entry.case().save(path)
    return path


def run(entries: list[Entry], by_peer: dict[str, str], threads: int, options: argparse.Namespace,
        versions: dict) -> dict[str, dict]:
    """case -> its result, printed line by line."""
    workers = [Worker(name, python, threads) for name, python in by_peer.items()]
    for worker in workers:
        if worker.missing:
            print(f"skipped {worker.name}: {worker.missing}", flush=True)
        versions[worker.name] = worker.versions
    workers = [w for w in workers if not w.missing]
    names, results = [w.name for w in workers], {}
    print(f"\n{threads} thread{'s' * (threads > 1)}: peer time / mxc time, minimum/median\n{table.header(names)}")

    def keep(name: str, result: measure.Result) -> None:
        results[name] = asdict(result)
        print(table.row(name, results[name], names), flush=True)
        for peer, text in result.failures.items():
            print(f"    FAILED {peer}: {text}", flush=True)

    try:
        for entry in entries:
            if entry.file is not None and not entry.file.exists():
                print(f"{entry.name:42}{entry.file} is not there", flush=True)
                continue
            asked = ("mxc", *(entry.main if options.quick and entry.main else entry.peers))
            result = measure.measure([w for w in workers if w.name in asked], write_case(entry), options.rounds,
                                     options.budget, entry.tolerance)
            result.reasons.update({name: "not asked" for name in names if name not in asked})
            keep(entry.name, result)
    finally:
        for worker in workers:
            worker.close()
    if not options.quick and any(entry.name == START for entry in entries):
        entry = next(e for e in entries if e.name == START)
        asked = {name: python for name, python in by_peer.items() if name in names and name in ("mxc", *INFERENCE)}
        for name, result in start.measure(asked, write_case(entry), threads, 3).items():
            keep(f"{name} {START}", result)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the main cases and peers, few rounds, one thread")
    parser.add_argument("--peers", default=os.environ.get("BENCH_PEERS", ""), help="comma-separated; default: all")
    parser.add_argument("--cases", nargs="*", default=[], metavar="WORD",
                        help="a name, a name's beginning, or a family's name")
    parser.add_argument("--threads", help="default: 1,2, quick: 1")
    parser.add_argument("--rounds", type=int, help="default: 15, quick: 5")
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PYTHON")
    parser.add_argument("--models", type=Path, default=environments.ROOT / ".." / "shared" / "models")
    parser.add_argument("--json", type=Path, help="default: networks.json in the benchmark's cache folder")
    parser.add_argument("--compare", type=Path, metavar="OLD.json")
    options = parser.parse_args()
    options.rounds = options.rounds or (5 if options.quick else 15)
    options.budget = 6.0 if options.quick else 60.0
    old = read_old(options.compare) if options.compare else None
    wanted = [p for p in options.peers.replace(",", " ").split() if p != "mxc"]
    if unknown := sorted(set(wanted) - set(environments.PEERS)):
        sys.exit(f"no peer {', '.join(unknown)}; there are {', '.join(environments.PEERS)}")
    given = dict(pair.partition("=")[::2] for pair in options.python)
    if unknown := sorted(set(given) - set(environments.PEERS)):
        sys.exit(f"--python: no peer {', '.join(unknown)}; there are {', '.join(environments.PEERS)}")
    entries = chosen(options.models, options.cases, options.quick)
    if not entries:
        sys.exit(f"no case is or begins with {', '.join(options.cases)}")
    by_peer = pythons(["mxc", *(p for p in environments.PEERS[1:] if not wanted or p in wanted)], given)
    about, versions = machine(), {}
    print(", ".join(f"{key} {text}" for key, text in about.items()), flush=True)
    threads = [int(t) for t in (options.threads or ("1" if options.quick else "1,2")).split(",")]
    done = {str(t): run(entries, by_peer, t, options, versions) for t in threads}
    print("\n" + ", ".join(f"{name} {text}" for name, text in sorted({
        pair for of_peer in versions.values() for pair in of_peer.items()})))
    whole = {"machine": about, "versions": versions, "threads": done}
    target = options.json or environments.home() / "networks.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(whole))
    print(f"written: {target}")
    if old is not None:
        print(f"\nratio before and now, against {options.compare}")
        print("\n".join(table.comparison(old, whole)))


if __name__ == "__main__":
    main()
