"""Upgrades of Symbol JSON that older MXNet versions wrote, applied in the file's own terms before nodes are made.

| written before | what changes |
|---|---|
| 0.9.0 | inputs that a node does not list (auxiliary states were not stored) become variables NODE_INPUT |
| 0.9.4 | variables whose operator knows how they start (moving statistics, ...) get that as `__init__` |
| 0.9.5 | `axis` "-1" of argmax and argmin meant: flatten first; the attribute is dropped |
| 1.9.1 | `lr_mult` and the other hidden keys become `__lr_mult__`; `weight_lr_mult` goes to that input's variable |
"""
from __future__ import annotations

from dataclasses import dataclass, field

from mxc.compiler.graph.compose import hidden_key, input_names, split_key
from mxc.compiler.graph.graph import Entry, Node, variable
from mxc.compiler.ops.operator import Operator, Params

NOW = 10901  # MXNet 1.9.1: the version whose files need no upgrade, and that mxc writes
UNVERSIONED = 800  # files without a version are from 0.8.0 or before
LISTS_ALL_INPUTS = 900
STORES_STARTS = 904
KEEPS_NEGATIVE_AXIS = 905


@dataclass
class Record:
    """A node as the file has it: attribute spellings merged, inputs as (node, output) pairs.

    for_inputs: attributes found on the node that belong to the variables of its inputs: {input: {key: value}}.
    """

    op: str
    name: str
    attrs: dict[str, str]
    inputs: list[tuple[int, int]]
    subgraphs: list[dict] = field(default_factory=list)
    for_inputs: dict[str, dict[str, str]] = field(default_factory=dict)


def upgrade_attributes(record: Record, version: int, op: Operator | None) -> None:
    """Bring the attributes of one node to today's form. op: its operator; None for a variable."""
    if version < KEEPS_NEGATIVE_AXIS and record.op in ("argmax", "argmin") and record.attrs.get("axis") == "-1":
        del record.attrs["axis"]
    if version >= NOW:
        return
    known = {spec.name for spec in op.inputs} | set(op.aux) if op is not None else set()
    upgraded: dict[str, str] = {}
    plain: dict[str, str] = {}
    for key, value in record.attrs.items():
        parts = split_key(key)
        if parts is not None and parts[0] in known and (op is None or key not in op.params):
            record.for_inputs.setdefault(parts[0], {})[hidden_key(parts[1])] = value
        elif hidden_key(key) != key:
            plain[hidden_key(key)] = value
        else:
            upgraded[key] = value
    record.attrs = {**upgraded, **plain}


def missing_inputs(record: Record, version: int, op: Operator, params: Params, entries: list[Entry]) -> list[Entry]:
    """Variables for the inputs that a file from before 0.9.0 does not list for this node."""
    if version >= LISTS_ALL_INPUTS:
        return []
    made = []
    for name in input_names(op, params)[len(entries):]:
        made.append(Entry(variable(f"{record.name}_{name}", record.attrs)))
    return made


def hand_down(record: Record, version: int, node: Node) -> None:
    """Give the input variables of `node` the attributes that were written on the operator for them. In files from
    before 0.9.4 they also get the `__init__` that the operator knows."""
    if not record.for_inputs and version >= STORES_STARTS:
        return
    assert node.op is not None
    for name, entry in zip(input_names(node.op, node.params), node.inputs, strict=True):
        if not entry.node.is_variable:
            continue
        entry.node.attrs.update(record.for_inputs.get(name, {}))
        start = node.op.starts.get(name) if version < STORES_STARTS else None
        if start is not None:
            entry.node.attrs.setdefault("__init__", start)
