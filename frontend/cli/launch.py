"""`mxc launch`: runs a program in several processes that train together."""
from __future__ import annotations

import argparse
import math
import os
import sys
from typing import Any

from mxc.cli.cache import size
from mxc.cli.model import UsageError

LEAST_STORE = 75 << 20  # bytes: Ray takes no fewer
DESCRIPTION = """Run a command as several workers, whose kvstores share values on servers ('dist_sync', 'dist_async') or
sum them without ('dist_allreduce'), on this machine or on a cluster of Ray's (pip install 'mxc-compiler[dist]'). What
workers print comes with their rank in front. When one fails the others end too, within ten seconds; with dist_async the
others go on. More is in docs/distributed.md.
The exit code is 0, or that of the first worker that failed: 128 and the signal's number for one that was killed."""
EXAMPLES = """
  mxc launch -n 4 python train.py --epochs 10
  mxc launch -n 8 -s 2 --address 10.0.0.1:6379 --upload python train.py
  mxc launch -n 4 --restarts 2 python train_async.py"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc launch`."""
    parser.add_argument("-n", "--workers", type=int, required=True, metavar="N", help="how many workers")
    parser.add_argument("-s", "--servers", type=int, default=1, metavar="N",
                        help="how many servers (default: 1; dist_allreduce needs none)")
    parser.add_argument("--address", default="", metavar="HOST:PORT",
                        help="a cluster of Ray's that runs already (default: one of this machine alone is started)")
    parser.add_argument("--cpus", type=float, default=1, metavar="N", help="CPUs of each worker (default: 1)")
    parser.add_argument("--gpus", type=float, default=0, metavar="N", help="GPUs of each worker (default: 0)")
    parser.add_argument("--resource", type=pair, action="append", default=[], metavar="NAME=N",
                        help="a resource of Ray's that each worker takes")
    parser.add_argument("--env", type=pair, action="append", default=[], metavar="NAME=VALUE",
                        help="an environment variable of the workers")
    parser.add_argument("--restarts", type=int, default=0, metavar="N",
                        help="dist_async: how often a worker that failed is started again (default: 0)")
    parser.add_argument("--upload", action="store_true",
                        help="send this folder to the cluster's machines, and run there")
    parser.add_argument("--store", type=size, metavar="BYTES",
                        help="memory of the object store of a cluster that is started, as 500M (default: Ray's)")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="COMMAND", help="what each worker runs")


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, value


def run(options: argparse.Namespace) -> int:
    """Start the workers and servers, wait for them; the exit code. Raises UsageError for what cannot be started."""
    from mxc.kvstore.launcher import Job, Launcher

    if not options.program:
        raise UsageError("there is no command: give it behind the options, as `mxc launch -n 2 python train.py`")
    if options.workers < 1 or options.servers < 0:
        raise UsageError("-n and -s: there must be at least one worker, and no fewer servers than 0")
    try:
        resources = {name: float(value) for name, value in options.resource}
    except ValueError:
        raise UsageError("--resource: a number must follow the name, as NAME=1") from None
    for name, value in (("--cpus", options.cpus), ("--gpus", options.gpus), ("--restarts", options.restarts),
                        *((f"--resource {name}", value) for name, value in resources.items())):
        if not 0 <= value < math.inf:
            raise UsageError(f"{name}: expected a number from 0, got {value}")
    if options.store is not None and options.store < LEAST_STORE:
        raise UsageError(f"--store: Ray's object store has at least {LEAST_STORE >> 20} MiB, got {options.store} bytes")
    job = Job(options.program, options.workers, options.servers, options.address, options.cpus, options.gpus, resources,
              dict(options.env), options.restarts, options.store, os.getcwd(), options.upload)
    code = Launcher(job, say).run()
    return code if code >= 0 else 128 - code


def say(who: str, line: str) -> None:
    """Print a worker's line, or one of the launcher's own, which goes to standard error."""
    stream: Any = sys.stdout if who else sys.stderr
    print(f"[{who}] {line}" if who else f"mxc launch: {line}", file=stream, flush=True)
