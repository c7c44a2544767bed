"""`mxc report`: all that can be shown of a model, on one page."""
from __future__ import annotations

import argparse
import os
from typing import Any

from mxc.cli import bench, inspect, machine, profile
from mxc.cli.bench import add_threads_argument, seconds
from mxc.cli.inputs import Given, Shape, add_input_arguments, read_inputs
from mxc.cli.model import UsageError, add_model_arguments, is_artifact, parse_shapes, progress
from mxc.cli.output_files import check_ending, check_place, write_text
from mxc.cli.runnable import Bound, open_bound, open_model
from mxc.cli.tables import print_json
from mxc.cli.verify import compared
from mxc.compiler.system import env
from mxc.compiler.system.input_files import is_regular

DESCRIPTION = """Write a page of HTML on a model: what is in its file, its layers, its graph as a picture, the plan of
its memory, where the time of a run goes, how far it is from the reference interpreter, and how long runs take. It is
what `mxc inspect`, `profile`, `verify` and `bench` print, for one set of inputs, in one file that needs nothing else:
no network, no script. It can be read on a phone and printed. Inputs and parameters that are not given are made up.
Exit code 1, with the page written, when an output is wrong."""
EXAMPLES = """
  mxc report net-symbol.json --shape data=1,3,224,224 -o report.html
  mxc report net.mxc --params net-0000.params -o report.html
  mxc report net-symbol.json --input data=@image.npy --threads 1 --seconds 10 -o report.html"""
ITERATIONS = 10  # runs of which each kernel's least time counts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc report`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "random")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.html", help="the page (- for standard output)")
    parser.add_argument("--seconds", type=seconds, default=3.0, metavar="S",
                        help=f"measure runs for S seconds, {bench.LEAST} at least (default 3)")
    add_threads_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Look, measure, write; 1 when an output is wrong."""
    from mxc.cli.report_page import highlights, page_of

    if options.output != "-":
        check_ending("--output", options.output, ".html")
        check_place(options.output)
    elif options.json:
        raise UsageError("--output -: the page and --json cannot both go to standard output")
    if os.path.exists(options.model) and not is_regular(options.model):
        raise UsageError(f"{options.model}: expected a file, which is read several times, got a pipe or a folder")
    if options.threads:
        env.set("MXC_NUM_THREADS", str(options.threads))
    facts = machine.facts()  # before: the load is not this program's own
    shapes = parse_shapes(options.shape)
    given = read_inputs(options)
    with progress(f"looking into {options.model}") as tell:
        model = open_bound(options, shapes, given, "random", needs_values=False)
        model.run()
        tell("comparing with the reference interpreter")
        comparison = compared(model, None, None, nodes=False)
        tell("measuring")
        data = {"model": options.model, "file": options.output, **found_in(options, model),
                "profile": profile.measured(options.model, model, facts, ITERATIONS),
                "verification": comparison.data(options.model, model.parameters),
                "benchmark": benchmark(options, shapes, given, model, facts)}
        tell("drawing")
        write_text(options.output, page_of(data, model, comparison, inspect.title_of(options)))
    if options.json:
        print_json(data)
    elif options.output != "-":
        print(f"{options.output}: {', '.join(f'{name} {value}' for name, value in highlights(data).items())}")
    return 0 if comparison.right else 1


def found_in(options: argparse.Namespace, model: Bound) -> dict[str, Any]:
    """What the file holds, the layers, and the memory of a run, as plain data."""
    from mxc.cli import overview
    from mxc.cli.report_page import layers_of
    from mxc.visualization import table

    about = overview.of_artifact(options.model) if is_artifact(options.model) else overview.of_symbol(options)
    held = model.plan.memory(model.sizes, env.num_threads())
    return {"overview": about, "layers": table.as_data(layers_of(model)),
            "memory": inspect.memory_facts(model.executor.compiled()) | held}


def benchmark(options: argparse.Namespace, shapes: dict[str, Shape], given: Given, model: Bound,
              facts: dict[str, Any]) -> dict[str, Any]:
    """What `mxc bench` reports; of an artifact it is the artifact that runs. model: the same, with an executor. facts:
    of the machine."""
    from mxc.cli.report_page import WARM_UP

    timed = open_model(options, shapes, given, "random", needs_values=False) if is_artifact(options.model) else model
    timed.run()
    return (bench.subject(options.model, timed, facts) | bench.timed([timed], facts, WARM_UP, None, options.seconds)
            | {"memory": bench.held_by(timed)})
