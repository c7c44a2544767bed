"""Docstrings of operator functions, from the table: what an operator computes, its inputs, parameters and outputs."""
from __future__ import annotations

from mxc.compiler.ops.operator import InputSpec, Operator


def describe(op: Operator, name: str, value: str) -> str:
    """The docstring of the function `name` of an operator. value: what it takes and gives, "Symbol" or "NDArray"."""
    alias = f" (this is its alias {name})" if name != op.name else ""
    lines = [op.doc or f"Apply operator {op.name}.", "", f"Operator {op.name}{alias}."]
    if isinstance(op.expr, str) and op.signature is None:
        lines.append(f"Computes `{op.expr}`.")
    lines += ["", "Parameters", "----------", *(_input(spec, value) for spec in op.inputs)]
    lines += [f"{aux} : {value}, auxiliary state: training changes it" for aux in op.aux]
    for key, kind in op.params.items():
        lines.append(f"{key} : {kind}, " + ("required" if kind.required else f"default {kind.text(kind.default)}"))
    if value == "Symbol":
        lines += ["name : str, optional", "    Name of the resulting symbol; an automatic one when left out.",
                  "attr : dict of str to str, optional", "    Attributes of the node, such as `__lr_mult__`."]
    else:
        lines += ["out : NDArray, optional", "    Where the result is written."]
    shown = op.outputs[:op.visible] if isinstance(op.visible, int) and op.visible else op.outputs
    return "\n".join([*lines, "", "Returns", "-------", value, f"    Outputs: {', '.join(shown)}"])


def _input(spec: InputSpec, value: str) -> str:
    condition = f", {'unless' if spec.negated else 'if'} {spec.condition}" if spec.condition else ""
    return f"*{spec.name} : {value}s{condition}" if spec.variadic else f"{spec.name} : {value}{condition}"
