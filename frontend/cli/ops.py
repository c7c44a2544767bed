"""`mxc ops`: the operators, or one operator's inputs, parameters and formula."""
from __future__ import annotations

import argparse
from typing import Any

from mxc.cli.model import UsageError
from mxc.cli.tables import print_facts, print_json, print_table, print_text
from mxc.compiler.error import nearest

DESCRIPTION = """List the operators that models may have, or show one: what it computes, its inputs, parameters with
their defaults, other names, kind, formula and gradient."""
EXAMPLES = """
  mxc ops
  mxc ops Convolution
  mxc ops broadcast_mul --json
  mxc ops --fallback"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc ops`."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="an operator's name or alias")
    parser.add_argument("--fallback", action="store_true",
                        help="only those that have no kernels: plans run them as Python, by what is said")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the table, or the operator. Raises UsageError for a name that is none, or beside --fallback."""
    from mxc.compiler.ops import table

    if options.fallback:
        if options.name is not None:
            raise UsageError(f"--fallback lists operators, so {options.name!r} cannot be beside it")
        print_fallbacks([facts(op) for op in table.all_operators() if op.is_host], options.json)
        return 0
    if options.name is None:
        found = [facts(op) for op in table.all_operators() if not op.name.startswith("_mxc_")]  # the compiler's own
        found.sort(key=lambda each: str(each["name"]).lower())
        if options.json:
            print_json(found)
        else:
            print_table(("operator", "kind", "inputs", "what it computes"),
                        [(each["name"], each["kind"], ", ".join(text.partition(" ")[0] for text in each["inputs"]),
                          each["doc"]) for each in found])
        return 0
    if not table.has(options.name):
        raise UsageError(f"there is no operator {options.name!r}{nearest(options.name, table.names())}\n"
                         "`mxc ops` lists them")
    one = facts(table.get(options.name))
    if options.json:
        print_json(one)
    else:
        show(one)
    return 0


def print_fallbacks(found: list[dict[str, Any]], as_json: bool) -> None:
    """Print the operators that Python computes, also those that the compiler makes of others."""
    found.sort(key=lambda each: str(each["name"]).lower())
    if as_json:
        print_json(found)
    else:
        print_table(("operator", "family", "by", "what it computes"),
                    [(each["name"], each["family"], each["host"], each["doc"]) for each in found])


def facts(op: Any) -> dict[str, Any]:
    """What the operator table says of an operator, as plain data."""
    inputs = []
    for spec in op.inputs:
        condition = f" {'unless' if spec.negated else 'if'} {spec.condition}" if spec.condition else ""
        inputs.append(f"{spec.name}{'*' if spec.variadic else ''}{condition}")
    parameters = {name: {"type": str(kind), "required": kind.required} |
                  ({} if kind.required else {"default": kind.text(kind.default)}) for name, kind in op.params.items()}
    return {"name": op.name, "doc": op.doc, "kind": op.kind.name.lower(), "family": op.family, "host": op.host,
            "aliases": list(op.aliases),
            "inputs": inputs, "learned": list(op.parameters), "auxiliary_states": list(op.aux),
            "outputs": list(op.outputs), "visible_outputs": op.visible or len(op.outputs), "parameters": parameters,
            "formula": formula(op), "gradient": gradient(op)}


def formula(op: Any) -> str:
    """What an element of the result is, as ops.yaml has it; empty when a rule in Python says it."""
    if op.reduce is not None:
        final = "" if op.reduce.final == "acc" else f", then {op.reduce.final}"
        return f"{op.reduce.combine} of {op.reduce.body}{final}"
    return chosen(op.expr)


def gradient(op: Any) -> str:
    """How the gradient of each input is found, or that there is none."""
    if not op.differentiable:
        return "none"
    if isinstance(op.grad, dict):
        return "; ".join(f"{name}: {chosen(text)}" for name, text in op.grad.items())
    if op.grad is not None:
        return f"rule {op.grad}"
    return "that of the operators it is made of" if op.is_made_of_others else "the formula's derivative"


def chosen(expr: Any) -> str:
    """An expression; one that a parameter's value selects as `PARAMETER=VALUE: EXPRESSION`, a part for each."""
    if isinstance(expr, dict):
        return "; ".join(f"{name}={value}: {text}" for name, texts in expr.items() for value, text in texts.items())
    return expr or ""


def show(one: dict[str, Any]) -> None:
    """Print an operator for people."""
    print_text(f"{one['name']}: {one['doc']}")
    print()
    hidden = one["visible_outputs"] != len(one["outputs"])
    lines = {"kind": one["kind"], "computed by": one["host"], "aliases": ", ".join(one["aliases"]),
             "inputs": ", ".join(one["inputs"]),
             "learned": ", ".join(one["learned"]), "auxiliary states": ", ".join(one["auxiliary_states"]),
             "outputs": ", ".join(one["outputs"]) + (f" (shown: {one['visible_outputs']})" if hidden else ""),
             "formula": one["formula"], "gradient": one["gradient"]}
    print_facts({name: text for name, text in lines.items() if text})
    if one["parameters"]:
        print()
        print_table(("parameter", "type", "default"),
                    [(name, each["type"], "(required)" if each["required"] else each["default"])
                     for name, each in one["parameters"].items()])
