"""`mxc verify`: what is compiled against the reference interpreter, or against outputs that were recorded elsewhere."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mxc.cli import expected as expected_file
from mxc.cli.inputs import Given, Shape, add_input_arguments, read_inputs
from mxc.cli.model import UsageError, add_model_arguments, checked, is_number, parse_shapes, positive, progress
from mxc.cli.output_files import check_ending, check_place
from mxc.cli.runnable import MADE_UP, open_bound
from mxc.cli.tables import print_json

if TYPE_CHECKING:
    import numpy as np

    from mxc.cli.differences import Difference
    from mxc.cli.search import Found, Search
    from mxc.compiler.graph.graph import Entry

DESCRIPTION = """Run a model as it is compiled and operator by operator with the reference interpreter, and compare the
outputs; with --expected, compare with the outputs in a file, which may be those of Apache MXNet. An output is right
when no value differs by more than the tolerance times the largest value, and NaN and infinities are where they should
be; integers have to be equal. Where the tolerance does not hold, the reference runs in float64 too, and once more with
every value rounded otherwise: a difference of up to four times what that changes is rounding, and no fault, if every
operator alone is right. Inputs and parameters that are not given are made up. Exit code 1 when an output or an operator
is wrong; --nodes finds the first operator that is."""
EXAMPLES = """
  mxc verify net-symbol.json --shape data=1,3,224,224
  mxc verify net-symbol.json --input data=@image.npy --tolerance 1e-5
  mxc verify net-symbol.json --expected mxnet.npz
  mxc verify net-symbol.json --input data=@image.npy --save-expected net.npz
  mxc verify net-symbol.json --shape data=1,3,224,224 --nodes
  mxc verify net-symbol.json --shape data=1,3,224,224 --worst 10"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc verify`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "random")
    parser.add_argument("--tolerance", type=tolerance, metavar="T",
                        help="relative to an output's largest value, and then for rounding too (default: 1e-4 for "
                        "float32, 1e-5 with MXC_STRICT=1; 1e-2 for float16, 1e-9 for float64)")
    parser.add_argument("--expected", metavar="FILE.npz",
                        help="compare with the outputs in this file, for the inputs in it that are not given; "
                        "--save-expected, `mxc run --output` and examples/expected_of_mxnet.py write such files")
    parser.add_argument("--save-expected", metavar="FILE.npz",
                        help="write the inputs and the outputs, if they are right, for --expected of another day, "
                        "machine or version")
    parser.add_argument("--nodes", action="store_true",
                        help="compare the outputs of each operator, all compiled to be outputs, with the reference of "
                        "the same inputs; where that finds nothing, find the smallest part of the graph that is wrong")
    parser.add_argument("--worst", type=positive, metavar="N",
                        help="as --nodes, but print only the N operators that are furthest off")
    parser.add_argument("--wrong", action="store_true", help="as --nodes, but print only the operators that are wrong")


def tolerance(text: str) -> float:
    """An option's number of at least 0."""
    return float(checked(text, is_number(text, 0), "a number from 0 on, as 1e-4"))


def run(options: argparse.Namespace) -> int:
    """Compare, print; 1 when an output or a node is wrong."""
    from mxc.cli.differences import ROUNDING, as_data, judged
    from mxc.cli.reference import of_executor

    check_ending("--save-expected", options.save_expected, ".npz")
    check_place(options.save_expected)
    shapes = parse_shapes(options.shape)
    given = read_inputs(options)
    recorded = None if options.expected is None else expected_file.read(options.expected)
    if recorded is not None:
        add_inputs(given, shapes, recorded)
    with progress(f"running {options.model}"):
        model = open_bound(options, shapes, given, "random", needs_values=False)
        model.run()
        values = model.values()
    wanted = [None] * len(values) if recorded is None else recorded.of(model.outputs)
    with progress(f"comparing {options.model} with the reference interpreter"):
        reference = of_executor(model.executor)
        outputs = [judged(name, "", value, reference, entry, options.tolerance, other)
                   for name, value, entry, other in zip(model.outputs, values, reference.graph.outputs, wanted,
                                                        strict=True)]
    wrong = [each for each in outputs if not each.right]
    nodes: list[Difference] = []
    first, found = "", None
    if options.nodes or options.worst or options.wrong or any(each.verdict == ROUNDING for each in outputs):
        from mxc.cli.search import Search

        with progress(f"comparing the operators of {options.model}"):
            search = Search(model.executor, model.symbol, reference, options.tolerance)
            nodes = search.nodes()
            first = next((each.name for each in nodes if not each.right), "")
            last = first_by_reference(search, values) if wrong and not first else None
            if last is not None:
                found = search.smallest(last)
                first = found.name
    right = not wrong and not first
    if right and options.save_expected is not None:
        expected_file.write(options.save_expected, {name: model.executor.arg_dict[name].asnumpy()
                                                    for name in model.inputs}, dict(zip(model.outputs, values,
                                                                                        strict=True)))
    report = {"model": options.model, "parameters": model.parameters, "expected": options.expected,
              "outputs": [as_data(each) for each in outputs], "nodes": [as_data(each) for each in nodes],
              "first_wrong": first or None, "layers_of_its_kernel": found.layers if found else None, "right": right}
    if options.json:
        print_json(report)
    else:
        show(options, model, outputs, nodes, first, found)
    return 0 if right else 1


def add_inputs(given: Given, shapes: dict[str, Shape], recorded: expected_file.Expected) -> None:
    """Take the inputs that were not given from a file. Raises UsageError where --shape says something else."""
    for name, array in recorded.inputs.items():
        if given.has(name):
            continue
        if array.shape != shapes.get(name, array.shape):
            raise UsageError(f"--shape {name}: {recorded.path} has {name} with the shape {array.shape}, not "
                             f"{shapes[name]}")
        given.arrays[name], shapes[name] = array, array.shape


def first_by_reference(search: Search, values: Sequence[np.ndarray]) -> Entry | None:
    """The first of the model's outputs that is wrong by the reference; None: what was expected is of something else."""
    from mxc.cli.differences import judged

    reference = search.reference
    return next((entry for value, entry in zip(values, reference.graph.outputs, strict=True)
                 if not judged("", "", value, reference, entry, search.allowed).right), None)


def show(options: argparse.Namespace, model: Any, outputs: Sequence[Difference], nodes: Sequence[Difference],
         first: str, found: Found | None) -> None:
    """Print the comparison for people."""
    from mxc.cli.differences import print_differences

    if model.parameters == MADE_UP:
        print("parameters are made up")
    if nodes and (options.nodes or options.worst or options.wrong):
        listed = [each for each in nodes if not each.right] if options.wrong else list(nodes)
        if options.worst:
            listed = sorted(listed, key=lambda each: -each.max_rel / (each.tolerance or 1.0))[:options.worst]
        if listed:
            print_differences("node", listed)
        if len(listed) < len(nodes):
            wrong = sum(not each.right for each in nodes)
            print(f"{len(nodes)} outputs of operators, {wrong} of them wrong")
        print()
    print_differences("output", outputs)
    if found is not None:
        print(f"first wrong: {first} (alone, with all that it reads fused; its kernel is of {found.layers})")
    elif first:
        print(f"first wrong: {first}")
    elif any(not each.right for each in outputs):
        print("mxc and its reference agree: other parameters or inputs were used for what was expected, or operators "
              "mean something else there" if nodes else "--nodes finds the first operator that is wrong")
    elif options.save_expected is not None:
        print(f"written: {options.save_expected}")
