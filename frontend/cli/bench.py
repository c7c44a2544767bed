"""`mxc bench`: how long a run takes."""
from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from mxc.cli import machine, memory, provenance
from mxc.cli.clients import LEAST, measured
from mxc.cli.inputs import add_input_arguments, read_inputs
from mxc.cli.model import (
    UsageError,
    add_model_arguments,
    checked,
    is_artifact,
    is_number,
    parse_shapes,
    positive,
    progress,
)
from mxc.cli.runnable import MADE_UP, Bound, Stored, open_bound, open_model
from mxc.cli.tables import print_facts, print_json, print_text
from mxc.compiler.error import ModelFileError
from mxc.compiler.system import env
from mxc.compiler.system.input_files import content

DESCRIPTION = """Measure how long one run of a model takes, for inference: the least time, percentiles and the mean, in
milliseconds, and how many runs a second that makes; and how much memory it takes: parameters as they were given, what
is prepared of them, the arena between kernels, what of all this runs hold, and the whole process. With --clients,
several threads run the model at once, each on arrays of its own, as a service does for its clients. Parameters are made
up where there is no file of them: times do not depend on them. With --compare, say how the least time, which other
programs disturb least, stands to that of an earlier --json; of several clients, how the runs a second do."""
EXAMPLES = """
  mxc bench net-symbol.json --shape data=1,3,224,224
  mxc bench net-symbol.json --shape data=1,3,224,224 --threads 1 --seconds 10 --json > old.json
  mxc bench net-symbol.json --shape data=1,3,224,224 --threads 1 --compare old.json --fail-if-slower 5%
  mxc bench net.mxc --clients 4 --threads 1"""
PERCENTILES = (50, 90, 99)
MOST_REPORT = 1 << 30  # bytes of a report that --compare reads at most: it has the time of each run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc bench`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "random")
    parser.add_argument("--clients", type=positive, default=1, metavar="N",
                        help="threads that run the model at once, each one run after the other (default 1)")
    parser.add_argument("--warm-up", type=count, default=3, metavar="N",
                        help="runs of each client that are not measured (default 3)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--iterations", type=positive, metavar="N", help="measure N runs of each client")
    length.add_argument("--seconds", type=seconds, default=3.0, metavar="S",
                        help=f"measure runs for S seconds, {LEAST} of each client at least (default 3)")
    add_threads_argument(parser)
    parser.add_argument("--compare", metavar="OLD.json", help="compare with what --json printed earlier")
    parser.add_argument("--fail-if-slower", type=percent, metavar="P%",
                        help="with --compare: exit code 1 when it is slower by more than P %%")


def add_threads_argument(parser: argparse.ArgumentParser) -> None:
    """The option --threads."""
    parser.add_argument("--threads", type=positive, metavar="N",
                        help="threads that run the model (default: MXC_NUM_THREADS, or the CPUs)")


def count(text: str) -> int:
    """An option's number of at least 0."""
    return int(checked(text, text.isdecimal(), "a whole number of at least 0"))


def seconds(text: str) -> float:
    """An option's number above 0."""
    return float(checked(text, is_number(text, 1e-9, 1e6), "a number of seconds above 0 and below a million"))


def percent(text: str) -> float:
    """A number of per cent: `5%` or `5`."""
    number = text.removesuffix("%")
    return float(checked(number, is_number(number, 0, 1e6), "a number of per cent from 0 on, as 5%"))


def run(options: argparse.Namespace) -> int:
    """Measure, print, compare; 1 when --fail-if-slower says so."""
    if options.fail_if_slower is not None and options.compare is None:
        raise UsageError("--fail-if-slower: than what? give --compare OLD.json with it")
    old = None if options.compare is None else read_report(options.compare)
    if options.threads:
        env.set("MXC_NUM_THREADS", str(options.threads))
    facts = machine.facts()  # before: the load is not this program's own
    shapes = parse_shapes(options.shape)
    given = read_inputs(options)
    with progress(f"compiling {options.model}"):
        # Several clients of a symbol prepare its parameters each for itself, so these stay.
        opened = open_bound if options.clients > 1 and not is_artifact(options.model) else open_model
        model = opened(options, shapes, given, "random", needs_values=False)
        model.run()
        clients = [model, *(model.clone() for _ in range(options.clients - 1))]
    report = subject(options.model, model, facts)
    if old is not None and report["inputs"] != old["inputs"]:
        raise UsageError(f"--compare {options.compare}: it has other inputs: {inputs_text(old)}; this is "
                         f"{inputs_text(report)}")
    if old is not None and old["clients"] != options.clients:
        raise UsageError(f"--compare {options.compare}: it has --clients {old['clients']}; this is --clients "
                         f"{options.clients}")
    with progress(f"measuring {options.model}"):
        report |= timed(clients, facts, options.warm_up, options.iterations, options.seconds)
    report["memory"] = held_by(model)
    code = 0
    if old is not None:
        report["comparison"] = compared(report, old, options.compare)
        limit = options.fail_if_slower
        code = int(limit is not None and report["comparison"]["slower_percent"] > limit)
    if options.json:
        print_json(report)
    else:
        show(report, options, code)
    return code


def held_by(model: Bound | Stored) -> dict[str, int | None]:
    """The bytes that runs of a model hold, and those of the process: see `Plan.memory`, `memory.of_process`."""
    return {**model.plan.memory(model.sizes, env.num_threads()), "process_bytes": memory.of_process()}


def subject(path: str, model: Bound | Stored, facts: dict[str, Any]) -> dict[str, Any]:
    """What is measured, as plain data. path: of the model. facts: of the machine."""
    return {"model": path, "inputs": {name: {"shape": list(shape), "dtype": dtype}
                                      for name, (shape, dtype) in model.inputs.items()},
            "parameters": model.parameters, "machine": facts, "versions": provenance.versions(),
            "digests": {"model": provenance.file_digest(path),
                        "parameters": provenance.file_digest(model.parameters),
                        "kernels": provenance.kernels_digest(model.kernels())}}


def timed(clients: Sequence[Bound | Stored], facts: dict[str, Any], warm_up: int, iterations: int | None,
          limit: float) -> dict[str, Any]:
    """What runs of a model by these clients take, as plain data: see `clients.measured`. facts: of the machine.
    warm_up: runs of each client before that."""
    for client in clients:
        for _ in range(warm_up):
            client.run()
    found = measured([client.run for client in clients], iterations, limit)
    times = [time for each in found.times for time in each]
    least = statistics(times)
    spread = least["p50"] / least["min"] if len(clients) == 1 else 1.0  # clients disturb each other
    return {"clients": len(clients), "iterations": len(times), "milliseconds": least,
            "throughput": round(found.throughput, 3),
            "times": [[round(time, 5) for time in each] for each in found.times],
            "advice": machine.advice(facts, spread)}


def statistics(times: Sequence[float]) -> dict[str, float]:
    """min, the percentiles and the mean."""
    import numpy as np

    found = {"min": min(times)} | {f"p{p}": float(np.percentile(times, p)) for p in PERCENTILES}
    return {name: round(value, 5) for name, value in (found | {"mean": sum(times) / len(times)}).items()}


def read_report(path: str) -> dict[str, Any]:
    """What `--json` printed into a file. Raises ModelFileError when it is something else."""
    try:
        report = {"clients": 1, **json.loads(content(path, MOST_REPORT))}
        inputs_text(report)
        facts = {**report["machine"], **report.get("versions", {}), **report.get("digests", {})}
        measured = report["milliseconds"]["min"] > 0 and (report["clients"] == 1 or report["throughput"] > 0)
        if measured and facts and isinstance(report["model"], str):
            return report
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise ModelFileError(path, "expected what `mxc bench --json` prints")


def compared(report: dict[str, Any], old: dict[str, Any], path: str) -> dict[str, Any]:
    """How the least time stands to the old one, of several clients the throughput, and what differs besides."""
    now, before = ({"model": each["model"], **each["machine"], **each.get("versions", {}),
                    **{f"digest of the {what}": digest for what, digest in each.get("digests", {}).items()}}
                   for each in (report, old))
    known = ("model", "digest of the model", "cpu", "cpus", "threads", *report["versions"], "digest of the kernels")
    differs = {name: [before[name], now[name]] for name in known if name in before and now[name] != before[name]}
    measure = "min" if report["clients"] == 1 else "throughput"
    was = old["milliseconds"]["min"] if measure == "min" else old["throughput"]
    ratio = report["milliseconds"]["min"] / was if measure == "min" else was / report["throughput"]
    return {"file": path, f"old_{measure}": was, "slower_percent": round((ratio - 1) * 100, 2), "differs": differs}


def inputs_text(report: dict[str, Any]) -> str:
    """The inputs as `NAME dtype SHAPE`."""
    return ", ".join(f"{name} {each['dtype']} {'x'.join(map(str, each['shape']))}"
                     for name, each in report["inputs"].items())


def facts_of(report: dict[str, Any], warm_up: int) -> dict[str, str]:
    """What a report says of the times. warm_up: runs before them."""
    by = f"by {report['clients']} clients at once, each " if report["clients"] > 1 else ""
    return ({"runs": f"{report['iterations']}, {by}after {warm_up} to warm up"}
            | {name: f"{value:.3f} ms" for name, value in report["milliseconds"].items()}
            | {"rate": f"{report['throughput']:,.1f} runs a second"})


def show(report: dict[str, Any], options: argparse.Namespace, code: int) -> None:
    """Print a report for people."""
    print_facts({"model": report["model"] + (" (made-up parameters)" if report["parameters"] == MADE_UP else ""),
                 "inputs": inputs_text(report), "machine": machine.text(report["machine"]),
                 "memory": memory.text(report["memory"])}
                | facts_of(report, options.warm_up))
    for line in report["advice"]:
        print_text(f"note: {line}")
    if (comparison := report.get("comparison")) is not None:
        for name, (before, now) in comparison["differs"].items():
            print(f"note: {name} was {before}, is {now}")
        change = comparison["slower_percent"]
        measure, was = ("min", f"{comparison['old_min']:.3f} ms") if "old_min" in comparison else (
            "rate", f"{comparison['old_throughput']:,.1f} runs a second")
        print(f"{measure} {abs(change):.1f} % {'slower' if change > 0 else 'faster'} than {comparison['file']} ({was})")
        if code:
            print(f"slower by more than {options.fail_if_slower:g} %")
