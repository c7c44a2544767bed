"""What there is in a model's file, from the file alone: nothing is bound, compiled or run."""
from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import mxc
from mxc.cli.model import Shape, is_known, listed, parameter_file
from mxc.cli.tables import Table, print_facts, print_table
from mxc.cli.unbound import described
from mxc.compiler.error import MXNetError, UnsupportedError
from mxc.compiler.graph import json_ir
from mxc.compiler.graph.compose import output_name
from mxc.compiler.graph.graph import Entry, Graph, Node
from mxc.compiler.graph.summary import learned_inputs
from mxc.compiler.ops.operator import Kind
from mxc.compiler.passes.infer_dtype import attribute_dtype
from mxc.compiler.passes.infer_shape import infer_shape
from mxc.compiler.system import env, input_files

if TYPE_CHECKING:
    from mxc.runtime.artifact import StoredPlan

# Pixels along an axis of pictures that networks were trained on; the first with which all shapes go together is
# guessed, and with the parameters in a file hardly another one does.
PIXELS = (224, 299, 256, 32, 28, 112, 416, 512, 300, 96, 64, 48, 24, 12, 8)
COLOURS = 3


class Shapes(NamedTuple):
    """shapes: of every node's outputs as infer_shape gives them. guessed: the names of inputs whose shapes are guessed,
    for they follow from nothing."""

    shapes: Any
    guessed: dict[str, Shape]


def of_symbol(options: argparse.Namespace) -> dict[str, Any]:
    """What a Symbol JSON file and the parameters beside it hold, as plain data.

    Raises ModelFileError for a file that is no graph.
    """
    content = input_files.content(options.model)  # once, for it may be a pipe
    operators = json_ir.count_operators(content, options.model)
    path = parameter_file(options)
    about: dict[str, Any] = {"model": options.model, "operators": operators, "unsupported": []}
    try:
        graph = json_ir.read_bytes(content, options.model)
    except UnsupportedError as error:
        return about | {"unsupported": [line.strip() for line in str(error).splitlines()[1:]]}
    parameters = {} if path is None else described(path)
    found = shapes_of(graph, {name: shape for name, (shape, _) in parameters.items()})
    states = {e.node for node in graph.nodes for e in node.states}
    learned = _learned(graph, parameters)
    inputs = [node for node in graph.variables if node not in learned and node not in states]

    def entry(entry: Entry) -> Shape | None:
        shape = found.shapes[graph.ids[entry.node]][entry.index]
        return shape if is_known(shape) else None

    return about | {
        "inputs": [{"name": node.name, "dtype": attribute_dtype(node) or "float32", "shape": entry(Entry(node)),
                    "guessed": node.name in found.guessed} for node in inputs],
        "outputs": [{"name": output_name(e), "shape": entry(e)} for e in graph.outputs],
        "parameters": _sizes([(node.name, entry(Entry(node))) for node in graph.variables if node in learned]),
        "auxiliary_states": _sizes([(node.name, entry(Entry(node))) for node in graph.variables if node in states]),
        "file_of_parameters": None if path is None else {"file": path, "arrays": len(parameters), "bytes": sum(
            math.prod(shape) * _itemsize(dtype) for shape, dtype in parameters.values())},
        "without_values": [node.name for node in graph.variables if (node in learned or node in states)
                           and node.name not in parameters] if path is not None else None}


def shapes_of(graph: Graph, known: Mapping[str, Shape]) -> Shapes:
    """The shapes of a graph's entries for these of its variables, with guesses for inputs where they do not follow."""
    known = {name: shape for name, shape in known.items() if name in {node.name for node in graph.variables}}
    found = infer_shape(graph, known, partial=True)
    guessed: dict[str, Shape] = {}
    for node in graph.variables:
        if node.name in known or is_known(found[graph.ids[node]][0]) or node.name.endswith("label"):
            continue
        for shape in _guesses(graph, node, known):
            try:
                tried = infer_shape(graph, {**known, **guessed, node.name: shape}, partial=True)
            except MXNetError:
                continue
            found, guessed[node.name] = tried, shape
            break
    return Shapes(found, guessed)


def _guesses(graph: Graph, node: Node, known: Mapping[str, Shape]) -> list[Shape]:
    """Shapes that an input may have, by the first layer that reads it through elementwise operators alone."""
    users = graph.consumers()
    entries, seen = [Entry(node)], set[Node]()
    while entries:
        for user, position in users.get(entries.pop(0), ()):
            if user in seen or user.op is None:
                continue
            seen.add(user)
            weight = known.get(user.inputs[1].node.name) if len(user.inputs) > 1 else None
            if user.op.name == "Convolution" and position == 0:
                channels = weight[1] * user.params.num_group if weight else COLOURS
                return [(1, channels, *(size,) * len(user.params.kernel)) for size in PIXELS]
            if user.op.name == "FullyConnected" and position == 0:
                return [(1, weight[1])] if weight else []
            if user.op.kind <= Kind.BROADCAST or user.op.name in ("BatchNorm", "Flatten", "Pad"):
                entries.append(Entry(user))
    return []


def _learned(graph: Graph, parameters: Mapping[str, Any]) -> set[Node]:
    """The variables that are parameters: operators read them as such, or the file has them."""
    found = {node for node in graph.variables if node.name in parameters}
    for node in graph.nodes:
        if node.op is not None:
            found |= {entry.node for entry in learned_inputs(node) if entry.node.op is None}
    return found - {e.node for node in graph.nodes for e in node.states}


def _sizes(found: list[tuple[str, Shape | None]]) -> dict[str, Any]:
    """How many arrays, and how many elements; None where a shape is not known."""
    elements = None if any(shape is None for _, shape in found) else sum(math.prod(shape or ()) for _, shape in found)
    return {"arrays": len(found), "elements": elements}


def _itemsize(dtype: str) -> int:
    from mxc.compiler.ops.dtypes import numpy_dtype

    return numpy_dtype(dtype).itemsize


def of_artifact(path: str) -> dict[str, Any]:
    """What an artifact holds, as plain data. Raises ModelFileError for one that is damaged."""
    from mxc.compiler import targets
    from mxc.runtime.artifact import Artifact

    artifact = Artifact(path, mxc.VERSION)
    first = artifact.plans[0]
    plans = []

    def sizes(stored: StoredPlan) -> dict[str, int]:
        """The bytes of parameters and states."""
        return {name: math.prod(shape) * _itemsize(stored.dtypes[name]) for name, shape in stored.shapes.items()
                if name not in (*artifact.inputs, *artifact.optional)}

    for stored in artifact.plans:
        plan = artifact.plan(stored)
        plans.append({"mode": stored.mode, "inputs": {name: list(stored.shapes[name]) for name in artifact.inputs},
                      "outputs": {name: list(shape) for name, (_, shape) in
                                  zip(artifact.outputs, stored.outputs, strict=True)},
                      "operators": plan.nodes, "kernels": sum(step.phase != "prepare" for step in plan.steps),
                      **plan.memory(sizes(stored), env.num_threads())})
    made_for = artifact.parts
    return {"model": path, "bytes": Path(path).stat().st_size, "mxc": made_for.get("mxc", "").split(" ")[0],
            "target": made_for.get("target", "cpu"), "cpu": made_for.get("cpu", ""),
            "cpu_level": targets.host().level_of(set(made_for.get("features", "").split())),
            "system": f"{made_for.get('system', '')} {made_for.get('machine', '')}",
            "settings": made_for.get("settings", ""), "runs_here": not artifact.stale,
            "why_not": artifact.stale or None, "can_be_compiled_here": not artifact.gpu_fault(),
            "inputs": [{"name": name, "dtype": first.dtypes[name], "optional": name in artifact.optional}
                       for name in (*artifact.inputs, *artifact.optional)],
            "outputs": [{"name": name, "dtype": dtype} for name, (dtype, _) in
                        zip(artifact.outputs, first.outputs, strict=True)],
            "parameters": {"arrays": len(artifact.facts), "bytes": sum(
                               math.prod(shape) * _itemsize(dtype) for dtype, shape in artifact.facts.values()),
                           "as_given": len(artifact.parameters)},
            "other_batches": artifact.batches.mixed or None,
            "sections": {name: len(section) for name, section in artifact.contents.sections.items()},
            "plans": plans}


def facts_of_symbol(about: dict[str, Any]) -> dict[str, str]:
    """What `of_symbol` gives of the model as a whole, in words; of one with something unknown the operators alone."""
    operators = ", ".join(f"{name} {count}" for name, count in about["operators"].items())
    facts = {"model": about["model"], "operators": f"{sum(about['operators'].values())}: {operators}"}
    if about["unsupported"]:
        return facts
    for what in ("parameters", "auxiliary_states"):
        sizes = about[what]
        count = "?" if sizes["elements"] is None else f"{sizes['elements']:,}"
        facts[what.replace("_", " ")] = f"{sizes['arrays']} arrays, {count} elements"
    file = about["file_of_parameters"]
    facts["values"] = "no file of parameters" if file is None else f"{file['file']}, {file['bytes'] / 1e6:,.1f} MB"
    if about["without_values"]:
        facts["values"] += f"; none for {listed(about['without_values'])}"
    return facts | {"unsupported": "nothing"}


def ends_of(about: dict[str, Any]) -> Table:
    """A table of a symbol's inputs and outputs."""
    from mxc.visualization.table import shape_text

    inputs = [("input", each["name"], each["dtype"], shape_text(each["shape"]), "guessed" * each["guessed"])
              for each in about["inputs"]]
    outputs = [("output", each["name"], "", shape_text(each["shape"]), "") for each in about["outputs"]]
    return Table(("", "name", "dtype", "shape", ""), inputs + outputs)


def show_symbol(about: dict[str, Any]) -> None:
    """Print what `of_symbol` gives, for people."""
    print_facts(facts_of_symbol(about))
    if about["unsupported"]:
        print("unsupported:")
        for line in about["unsupported"]:
            print(f"  {line}")
        return
    print()
    print_table(*ends_of(about))
    given = [each for each in about["inputs"] if each["guessed"] or each["shape"] is None]
    words = " ".join(f"--shape {each['name']}={','.join(map(str, each['shape'] or ('D', '...')))}" for each in given)
    print(f"\n  mxc inspect {about['model']} {words}".rstrip())


def facts_of_artifact(about: dict[str, Any]) -> dict[str, str]:
    """What `of_artifact` gives of the file as a whole, in words."""
    parameters = about["parameters"]
    whole = parameters["as_given"] == parameters["arrays"]
    again = "compiled again" if whole and about["can_be_compiled_here"] else "no"
    return {
        "model": f"{about['model']}, {about['bytes'] / 1e6:,.2f} MB", "made by": f"mxc {about['mxc']}",
        "made for": ", ".join(filter(None, (about["target"].replace("cpu", ""), about["system"].strip(), about["cpu"],
                                            about["settings"]))),
        "CPU level": about["cpu_level"] or "none",
        "runs here": "yes, as it is" if about["runs_here"] else f"{again}: {about['why_not']}",
        "parameters": f"{parameters['arrays']} arrays, {parameters['bytes'] / 1e6:,.2f} MB" +
                      f"; {parameters['as_given']} of them as they were given" * (not whole),
        "inputs": ", ".join(f"{each['name']} {each['dtype']}{' (optional)' * each['optional']}"
                            for each in about["inputs"]),
        "outputs": ", ".join(f"{each['name']} {each['dtype']}" for each in about["outputs"]),
        "other batches": f"no: {about['other_batches']}" if about["other_batches"] else "cut and filled up",
        "sections": ", ".join(f"{name} {size:,}" for name, size in about["sections"].items())}


def plans_of(about: dict[str, Any]) -> Table:
    """A table of an artifact's plans."""
    counts = ("prepared bytes", "arena bytes", "resident bytes")
    return Table(("plan", "inputs", "outputs", "kernels", *counts), [
        (plan["mode"], _shapes_text(plan["inputs"]), _shapes_text(plan["outputs"]), str(plan["kernels"]),
         *(f"{plan[name.replace(' ', '_')]:,}" for name in counts)) for plan in about["plans"]], (3, 4, 5, 6))


def show_artifact(about: dict[str, Any]) -> None:
    """Print what `of_artifact` gives, for people."""
    print_facts(facts_of_artifact(about))
    print()
    print_table(*plans_of(about))


def _shapes_text(shapes: Mapping[str, list[int]]) -> str:
    from mxc.visualization.table import shape_text

    return " ".join(f"{name}={shape_text(shape)}" for name, shape in shapes.items())
