"""One program for mxc and for MXNet, run by both in processes of their own."""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from harness.environments import asked


def arguments(doc: str | None, cases: Sequence[str], threads: list[int]) -> argparse.Namespace:
    """What the command line says: of which cases, with how many threads, and in how many rounds. `peers` are the
    Pythons that have mxc and, unless there is none, MXNet."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet", metavar="PYTHON", help="has MXNet 1.9.1 (default: the peers' environment)")
    parser.add_argument("--threads", type=int, nargs="+", default=threads)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=cases, default=cases)
    args = parser.parse_args()
    args.peers = {"mxc": sys.executable}
    theirs = args.mxnet or asked("mxnet")
    if theirs:
        args.peers["mxnet"] = theirs
    return args


def answer(python: str, module: str, program: str, threads: int, **names: Any) -> Any:
    """What the last line that a program prints says, as JSON. In it `mx` is the module, and `names` have their values.

    Exits when it fails, with what it wrote on standard error.
    """
    given = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    settings = {"MXC_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([python, "-c", f"import {module} as mx\n{given}{program}"], capture_output=True, text=True,
                          env={**os.environ, **settings})
    if done.returncode:
        sys.exit(f"{module}, {', '.join(map(str, names.values()))}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])
