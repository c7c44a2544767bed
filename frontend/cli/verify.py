"""`mxc verify`: what is compiled against the reference interpreter, or against outputs that were recorded elsewhere."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mxc.cli import expected as expected_file
from mxc.cli.inputs import Given, Shape, add_input_arguments, read_inputs
from mxc.cli.model import (
    UsageError,
    add_model_arguments,
    checked,
    is_artifact,
    is_number,
    open_artifact,
    parse_shapes,
    positive,
    progress,
)
from mxc.cli.output_files import check_apart, check_ending, check_place
from mxc.cli.runnable import MADE_UP, Bound, open_bound
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
                        "float32, 1e-5 with MXC_STRICT=1; 1e-2 for float16, 8e-2 for bfloat16, 1e-9 for float64)")
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
    check_ending("--save-expected", options.save_expected, ".npz")
    check_apart(options, options.save_expected)
    check_place(options.save_expected)
    shapes = parse_shapes(options.shape)
    given = read_inputs(options)
    recorded = None if options.expected is None else expected_file.read(options.expected)
    if recorded is not None:
        add_inputs(given, shapes, recorded)
    with progress(f"running {options.model}"):
        model = open_bound(options, shapes, given, "random", needs_values=False)
        model.run()
        values = model.values() if not is_artifact(options.model) else stored_values(options, model)
    wanted = None if recorded is None else recorded.of(dict(zip(model.outputs, values, strict=True)))
    with progress(f"comparing {options.model} with the reference interpreter"):
        found = compared(model, options.tolerance, wanted, options.nodes or options.worst or options.wrong, values)
    if found.right and options.save_expected is not None:
        expected_file.write(options.save_expected, {name: model.executor.arg_dict[name].asnumpy()
                                                    for name in model.inputs}, dict(zip(model.outputs, values,
                                                                                        strict=True)))
    if options.json:
        print_json(found.data(options.model, model.parameters, options.expected))
    else:
        show(options, model, found)
    return 0 if found.right else 1


class Comparison(NamedTuple):
    """How a model's outputs, and where they were looked at those of its operators, stand to what was expected.

    first: the first operator's output that is wrong; "" for none. part: what is said of it where it is right alone.
    """

    outputs: list[Difference]
    nodes: list[Difference]
    first: str
    part: Found | None

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.first and all(each.right for each in self.outputs)

    def data(self, path: str, parameters: str, expected: str | None = None) -> dict[str, Any]:
        """As plain data. path: of the model. parameters, expected: the files that these come from."""
        from mxc.cli.differences import as_data

        return {"model": path, "parameters": parameters, "expected": expected,
                "outputs": [as_data(each) for each in self.outputs], "nodes": [as_data(each) for each in self.nodes],
                "first_wrong": self.first or None, "layers_of_its_kernel": self.part.layers if self.part else None,
                "right": self.right}


def stored_values(options: argparse.Namespace, model: Bound) -> list[np.ndarray]:
    """The outputs as programs get them from an artifact: with what it prepared of its own parameters, and its batches
    cut and filled up. Where it has no parameters, or draws random numbers, those of the executor."""
    predictor = open_artifact(argparse.Namespace(model=options.model, params=None, dtype=[]))
    if predictor.missing_params or model.plan.draws:
        return model.values()
    found = predictor.predict(**{name: model.executor.arg_dict[name].asnumpy() for name in model.inputs})
    return [found[name] for name in model.outputs]


def compared(model: Bound, allowed: float | None, wanted: Sequence[np.ndarray] | None, nodes: bool,
             values: Sequence[np.ndarray] | None = None) -> Comparison:
    """The outputs of a model that has run against the reference's, or against those that are wanted.

    allowed: the tolerance; None: that of the dtypes. nodes: compare those of the operators too, which is also done
    where an output is off by rounding. values: the outputs, where they are not those of the model's executor.
    """
    from mxc.cli.differences import ROUNDING, judged
    from mxc.cli.reference import of_executor
    from mxc.cli.search import Search

    values, reference = model.values() if values is None else values, of_executor(model.executor)
    others: Sequence[np.ndarray | None] = [None] * len(values) if wanted is None else wanted
    outputs = [judged(name, "", value, reference, entry, allowed, other) for name, value, entry, other in
               zip(model.outputs, values, reference.graph.outputs, others, strict=True)]
    if not nodes and all(each.verdict != ROUNDING for each in outputs):
        return Comparison(outputs, [], "", None)
    search = Search(model.executor, model.symbol, reference, allowed)
    found = search.nodes()
    first = next((each.name for each in found if not each.right), "")
    wrong = any(not each.right for each in outputs)
    last = first_by_reference(search, values) if wrong and not first else None
    part = None if last is None else search.smallest(last)
    return Comparison(outputs, found, first if part is None else part.name, part)


def add_inputs(given: Given, shapes: dict[str, Shape], recorded: expected_file.Expected) -> None:
    """Take the inputs that were not given from a file. Raises UsageError where --shape says something else, and where
    nobody gives any: random ones are not those of which the outputs there were made."""
    if not recorded.inputs and not (given.arrays or given.words or given.pictures or given.archives or given.unnamed):
        raise UsageError(f"--expected {recorded.path}: it has outputs alone, and no inputs (in/NAME): give those that "
                         "they were made of with --input")
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


def show(options: argparse.Namespace, model: Any, found: Comparison) -> None:
    """Print the comparison for people."""
    from mxc.cli.differences import print_differences

    outputs, nodes, first, part = found
    if model.parameters == MADE_UP:
        print("parameters are made up")
    elif is_artifact(options.model) and model.parameters != options.model:
        print(f"parameters are those of {model.parameters}")
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
    if part is not None:
        print(f"first wrong: {first} (alone, with all that it reads fused; its kernel is of {part.layers})")
    elif first:
        print(f"first wrong: {first}")
    elif any(not each.right for each in outputs):
        print("mxc and its reference agree: other parameters or inputs were used for what was expected, or operators "
              "mean something else there" if nodes else "--nodes finds the first operator that is wrong")
    elif options.save_expected is not None:
        print(f"written: {options.save_expected}")
