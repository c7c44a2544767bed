"""`mxc verify`: what is compiled against the reference interpreter, which runs operator by operator with NumPy."""
from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from mxc.cli.inputs import add_input_arguments, read_inputs
from mxc.cli.model import add_model_arguments, parse_shapes, progress
from mxc.cli.runnable import MADE_UP, open_bound
from mxc.cli.tables import print_json, print_table
from mxc.compiler.system import env

if TYPE_CHECKING:
    import numpy as np

DESCRIPTION = """Run a model as it is compiled and operator by operator with the reference interpreter, and compare the
outputs. An output is right when no value differs by more than the tolerance times the largest value, and NaN and
infinities are where they should be; integers have to be equal. Inputs and parameters that are not given are made up.
Exit code 1 when an output is wrong; --nodes then finds the first operator that is."""
EXAMPLES = """
  mxc verify net-symbol.json --shape data=1,3,224,224
  mxc verify net-symbol.json --input data=@image.npy --tolerance 1e-5
  mxc verify net-symbol.json --shape data=1,3,224,224 --nodes"""
TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-9}  # relative to the largest value; others are equal
STRICT = 1e-5  # the tolerance for float32 with MXC_STRICT=1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc verify`."""
    add_model_arguments(parser)
    add_input_arguments(parser, "random")
    parser.add_argument("--tolerance", type=tolerance, metavar="T",
                        help="relative to an output's largest value (default: 1e-4 for float32, 1e-5 with "
                        "MXC_STRICT=1; 1e-2 for float16, 1e-9 for float64)")
    parser.add_argument("--nodes", action="store_true",
                        help="compare the outputs of each operator, all compiled to be outputs, with the reference of "
                        "the same inputs; where that finds nothing, find the smallest part of the graph that is wrong")


def tolerance(text: str) -> float:
    """An option's number of at least 0."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError
    return number


@dataclass
class Difference:
    """How far an output or a node, `name`, is from the reference. max_abs: the largest difference; infinite where
    shapes, NaN or infinities differ. max_rel: max_abs over the largest value of the reference."""

    name: str
    operator: str
    max_abs: float
    max_rel: float
    tolerance: float

    @property
    def right(self) -> bool:
        """Whether it is within the tolerance."""
        return self.max_rel <= self.tolerance


def compare(name: str, operator: str, value: np.ndarray, reference: np.ndarray, allowed: float | None) -> Difference:
    """The difference of a compiled value from the reference. allowed: the tolerance; None: that of the dtype."""
    import numpy as np

    if allowed is None:
        strict = env.flag("MXC_STRICT") and reference.dtype.name == "float32"
        allowed = STRICT if strict else TOLERANCES.get(reference.dtype.name, 0.0)
    if value.shape != reference.shape:
        return Difference(name, operator, np.inf, np.inf, allowed)
    a, b = value.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return Difference(name, operator, np.inf, np.inf, allowed)
    worst = float(np.abs(a[finite] - b[finite]).max(initial=0))
    scale = float(np.abs(b[finite]).max(initial=0)) or 1.0
    return Difference(name, operator, worst, worst / scale, allowed)


def run(options: argparse.Namespace) -> int:
    """Compare, print; 1 when an output or a node is wrong."""
    shapes = parse_shapes(options.shape)
    given = read_inputs(options.input, shapes)
    with progress(f"running {options.model}"):
        model = open_bound(options, shapes, given, "random", needs_values=False)
        model.run()
        values = model.values()
    with progress(f"running {options.model} with the reference interpreter"):
        check = Reference(model.executor, options.tolerance)
        outputs = [compare(name, "", value, check.values[entry], options.tolerance)
                   for name, value, entry in zip(model.outputs, values, check.graph.outputs, strict=True)]
    wrong = [each for each in outputs if not each.right]
    nodes: list[Difference] = []
    first, where = "", ""
    if options.nodes:
        with progress(f"comparing the operators of {options.model}"):
            nodes = check.nodes(model.symbol)
            first = next((each.name for each in nodes if not each.right), "")
            if wrong and not first:
                first, where = check.smallest(model.symbol), "alone, with all that it reads fused"
    report = {"model": options.model, "parameters": model.parameters, "outputs": [as_data(each) for each in outputs],
              "nodes": [as_data(each) for each in nodes], "first_wrong": first or None,
              "right": not wrong and not first}
    if options.json:
        print_json(report)
    else:
        show(options, model, outputs, nodes, first, where)
    return 0 if report["right"] else 1


class Reference:
    """What the reference interpreter gives for an executor's arguments. values: of every output of every node."""

    def __init__(self, executor: Any, allowed: float | None):
        from mxc.compiler.targets.reference import interpreter

        self.executor, self.allowed = executor, allowed
        self.graph = executor._core.graph
        args, aux = ({name: array.asnumpy() for name, array in each.items()}
                     for each in (executor.arg_dict, executor.aux_dict))
        self.values = interpreter.run(self.graph, args, aux, False, draws(executor))

    def nodes(self, symbol: Any) -> list[Difference]:
        """The difference of each operator's outputs from the reference of the inputs that it had, in order."""
        from mxc.compiler.graph.graph import Entry
        from mxc.compiler.targets.reference.interpreter import evaluate

        executor = self._bound(symbol.get_internals())
        graph = executor._core.graph
        values = {entry: output.asnumpy() for entry, output in
                  zip(graph.outputs, executor.forward(is_train=False), strict=True)}
        found, rng = [], draws(executor)
        for node in graph.nodes:
            if node.op is None:
                continue
            results = evaluate(node, [values[e] for e in node.inputs], False, rng)
            for index, (name, result) in enumerate(zip(node.op.output_names(node.params), results, strict=True)):
                entry = Entry(node, index)
                if entry in values:
                    found.append(compare(f"{node.name}_{name}", node.op.name, values[entry], result, self.allowed))
                values.setdefault(entry, result)
        return found

    def smallest(self, symbol: Any) -> str:
        """The first output of an operator, in order, that is wrong when it is compiled alone with what it needs."""
        from mxc.compiler.graph.graph import Entry

        internals, names, graph = symbol.get_internals(), symbol.get_internals().list_outputs(), symbol.graph
        places = [i for i, entry in enumerate(internals.entries) if entry.node.op is not None]
        low, high = 0, len(places) - 1  # places[high] is wrong
        while low < high:
            middle = (low + high) // 2
            node, index = internals.entries[places[middle]]
            (output,) = self._bound(internals[places[middle]]).forward(is_train=False)
            expected = self.values[Entry(self.graph.nodes[graph.ids[node]], index)]
            if compare("", "", output.asnumpy(), expected, self.allowed).right:
                low = middle + 1
            else:
                high = middle
        return names[places[low]]

    def _bound(self, symbol: Any) -> Any:
        """An executor of a part of the graph on the same arguments."""
        args, states = symbol.list_arguments(), symbol.list_auxiliary_states()
        return symbol.bind(self.executor._ctx, {name: self.executor.arg_dict[name] for name in args}, grad_req="null",
                           aux_states={name: self.executor.aux_dict[name] for name in states})


def draws(executor: Any) -> Any:
    """The random numbers of an executor's last run."""
    from mxc.compiler.ops.philox import Draws

    return Draws(*executor._core._draws[0])


def as_data(each: Difference) -> dict[str, Any]:
    """A difference for JSON, which has no infinities."""
    return {name: str(value) if value == float("inf") else value for name, value in asdict(each).items()} | {
        "right": each.right}


def show(options: argparse.Namespace, model: Any, outputs: Sequence[Difference], nodes: Sequence[Difference],
         first: str, where: str) -> None:
    """Print the comparison for people."""
    if model.parameters == MADE_UP:
        print("parameters are made up")
    if nodes:
        print_table(("node", "operator", "max abs", "max rel", "tolerance", ""),
                    [(each.name, each.operator, *numbers(each)) for each in nodes], right=(2, 3, 4))
        print()
    print_table(("output", "max abs", "max rel", "tolerance", ""),
                [(each.name, *numbers(each)) for each in outputs], right=(1, 2, 3))
    if first:
        print(f"first wrong: {first}{f' ({where})' if where else ''}")
    elif not all(each.right for each in outputs) and not options.nodes:
        print("--nodes finds the first operator that is wrong")


def numbers(each: Difference) -> tuple[str, str, str, str]:
    """The columns of a difference."""
    return f"{each.max_abs:.2e}", f"{each.max_rel:.2e}", f"{each.tolerance:.0e}", "ok" if each.right else "WRONG"
