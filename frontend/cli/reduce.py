"""`mxc reduce`: the smallest part of a model that still fails, as files that `mxc verify` takes."""
from __future__ import annotations

import argparse
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mxc.cli import expected as expected_file
from mxc.cli.inputs import add_input_arguments, read_inputs
from mxc.cli.model import UsageError, add_model_arguments, parse_shapes, progress
from mxc.cli.output_files import check_apart
from mxc.cli.runnable import open_bound
from mxc.cli.tables import print_json, print_table
from mxc.cli.verify import add_inputs, tolerance

if TYPE_CHECKING:
    from mxc.cli.reduction import Part

DESCRIPTION = """Find the smallest part of a model that fails a check as the whole model does, and write it as a model
of its own: PREFIX-symbol.json, PREFIX-0000.params, and PREFIX-expected.npz with its inputs and what its outputs should
be. The check is that of `mxc verify`: outputs are more than rounding away from the reference interpreter's, or
compiling or running the model raises an error. Another check is a command: it fails when its exit code is the one that
it has for the whole model, and not 0. What the part reads of operators that are left out is an input, with the
reference's values."""
EXAMPLES = """
  mxc reduce net-symbol.json --shape data=1,3,224,224
  mxc reduce net-symbol.json --input data=@image.npy --output small
  mxc reduce net-symbol.json --shape data=1,3,224,224 --check 'python check.py {}-symbol.json {}-expected.npz'
  mxc verify small-symbol.json --expected small-expected.npz"""
PLACE = "{}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc reduce`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "random")
    parser.add_argument("--expected", metavar="FILE.npz", help="take inputs that are not given from this file")
    parser.add_argument("--tolerance", type=tolerance, metavar="T",
                        help="relative to an output's largest value, as of `mxc verify`")
    parser.add_argument("--check", metavar="COMMAND",
                        help=f"the check: a shell command, in which {PLACE} stands for a part's PREFIX (default: as "
                        "`mxc verify`)")
    parser.add_argument("-o", "--output", metavar="PREFIX",
                        help="what the names of the files begin with (default: NAME-reduced, in this directory)")


def run(options: argparse.Namespace) -> int:
    """Reduce, write the files, print what is left."""
    from mxc.cli.reduction import operators_of, outcome, reduce
    from mxc.cli.reference import of_executor

    if options.check is not None and PLACE not in options.check:
        raise UsageError(f"--check {options.check}: expected a command with {PLACE} in it, for the PREFIX of a part")
    prefix = options.output or f"{Path(options.model).name.removesuffix('.json').removesuffix('-symbol')}-reduced"
    check_apart(options, *files_of(Path(prefix)))
    shapes = parse_shapes(options.shape)
    given = read_inputs(options)
    if options.expected is not None:
        add_inputs(given, shapes, expected_file.read(options.expected))
    with progress(f"reducing {options.model}") as told, tempfile.TemporaryDirectory() as folder:
        model = open_bound(options, shapes, given, "random", needs_values=False)
        whole = of_executor(model.executor)
        if options.check is None:
            check: Callable[[Part], object] = partial(outcome, allowed=options.tolerance)
        else:
            check = Command(options.check, Path(folder, "part"), set(model.inputs)).outcome
        seen: list[object] = []

        def fails(part: Part) -> bool:
            found = check(part)
            seen.append(found)
            return bool(found) and found == seen[0]

        part = reduce(whole, fails, told)
    if part is None:
        about = ("; of the file of --expected it takes the inputs alone, and compares with the reference interpreter"
                 if options.expected is not None and options.check is None else "")
        raise UsageError(f"{options.model} passes the check: there is nothing to reduce{about}\n"
                         "give the inputs, parameters and settings with which it fails")
    files = write(part, Path(prefix), set(model.inputs))
    report = {"model": options.model, "fails": str(seen[0]), "operators_before": len(operators_of(whole.graph)),
              "operators": [
            {"name": node.name, "operator": node.op.name} for node in part.operators if node.op is not None],
        "inputs": {name: list(part.given[name].shape) for name in part.given
                   if name in part.cut or name in model.inputs}, "files": files._asdict(), "checks": len(seen)}
    print_json(report) if options.json else show(report, options.tolerance)
    return 0


class Command(NamedTuple):
    """A check by a command. place: the prefix of the files that it reads. inputs: of the whole model."""

    text: str
    place: Path
    inputs: set[str]

    def outcome(self, part: Part) -> int:
        """The exit code for a part."""
        write(part, self.place, self.inputs)
        line = self.text.replace(PLACE, shlex.quote(str(self.place)))
        return subprocess.run(line, shell=True, capture_output=True, check=False).returncode


class Files(NamedTuple):
    """The files of a part."""

    symbol: str
    params: str
    expected: str


def files_of(prefix: Path) -> Files:
    """What the files of a part are called."""
    return Files(f"{prefix}-symbol.json", f"{prefix}-0000.params", f"{prefix}-expected.npz")


def write(part: Part, prefix: Path, inputs: set[str]) -> Files:
    """Write a part. inputs: of the whole model; with what was cut off they are the part's own, and all else that it
    reads are parameters. Raises FileAccessError when the file system does not allow it."""
    import mxc as mx

    files = files_of(prefix)
    own = {name for name in part.given if name in inputs or name in part.cut}
    states = part.symbol.list_auxiliary_states()
    part.symbol.save(files.symbol)
    mx.nd.save(files.params, {f"{'aux' if name in states else 'arg'}:{name}": mx.nd.array(value, dtype=value.dtype)
                              for name, value in part.given.items() if name not in own})
    outputs = dict(zip(part.symbol.list_outputs(), (part.reference.values[e] for e in part.graph.outputs), strict=True))
    expected_file.write(files.expected, {name: part.given[name] for name in sorted(own)}, outputs)
    return files


def show(report: dict[str, Any], allowed: float | None) -> None:
    """Print what is left, for people."""
    print(f"{len(report['operators'])} of {report['operators_before']} operators are left, after {report['checks']} "
          f"checks; the part fails as the model does: {report['fails']}")
    print_table(("node", "operator"), [(each["name"], each["operator"]) for each in report["operators"]])
    files = report["files"]
    with_tolerance = "" if allowed is None else f" --tolerance {allowed:g}"
    print(f"written: {', '.join(files.values())}\n\n  mxc verify {files['symbol']} --expected {files['expected']}"
          f"{with_tolerance}")
