"""The tables of docs/sparse.md: what operators make of arrays that are kept in parts, and which updates are lazy.

    python tests/sparse_page.py --write     to be run after a change of sparse forms, and its difference to be read
"""
from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import NamedTuple

from documents import with_tables

from mxc.compiler.ops import table
from mxc.compiler.ops.operator import Operator, Params
from mxc.compiler.ops.sparse_form import form_of
from mxc.compiler.ops.storage import DEFAULT, STORAGES

DOCUMENT = Path(__file__).parents[1] / "docs" / "sparse.md"
# Parameters with which an operator has its sparse form, where the defaults do not do; the page says them.
WITH: dict[str, dict[str, object]] = {
    "Concat": {"dim": 0}, "sum": {"axis": 0}, "mean": {"axis": 0}, "_square_sum": {"axis": 1},
}
REQUIRED: dict[str, dict[str, object]] = {
    "clip": {"a_min": -1, "a_max": 1}, "slice": {"begin": (0,), "end": (1,)}, "FullyConnected": {"num_hidden": 1},
    "Embedding": {"input_dim": 1, "output_dim": 1}, "_contrib_SparseEmbedding": {"input_dim": 1, "output_dim": 1},
    "add_n": {"num_args": 2}, "_sparse_adagrad_update": {"lr": 1}, "_contrib_group_adagrad_update": {"lr": 1},
    "sgd_update": {"lr": 1}, "sgd_mom_update": {"lr": 1}, "adam_update": {"lr": 1}, "ftrl_update": {"lr": 1},
}
# What parameters change, in words.
WHERE = {
    "dot": "with transpose_a, csr, x → row_sparse; `forward_stype` asks for another one",
    "clip": "where 0 is kept", "norm": "ord=2",
    "_contrib_quadratic": "where c is 0", "slice": "without steps", "Concat": "dim=0",
    "take": "axis=0, mode clip or wrap",
    "sum": "axis 0 or 1, without keepdims", "mean": "axis 0 or 1, without keepdims",
    "_square_sum": "axis 0 or 1; row_sparse with axis=1 and keepdims",
    **dict.fromkeys(("_plus_scalar", "_minus_scalar"), "kept as it is where the scalar is 0"),
    **dict.fromkeys(("_equal_scalar", "_not_equal_scalar", "_greater_scalar", "_greater_equal_scalar", "_lesser_scalar",
                     "_lesser_equal_scalar"), "where it gives 0 of 0"),
}
SCALAR = 1.0  # what operators with a scalar are asked with, but for comparisons that give 1 of 0 by it
SCALARS = {"_not_equal_scalar": 0.0, "_lesser_scalar": 0.0, "_lesser_equal_scalar": -1.0}
KINDS = tuple(reversed(STORAGES))


def users_rules() -> list[Operator]:
    return [op for op in table.all_operators() if "sparse" in op.rules and not op.name.startswith("_mxc_")]


class Found(NamedTuple):
    """An operator with parameters computes `out` of inputs of the storage types `ins`."""

    params: Params
    ins: tuple[str, ...]
    out: str

    def __str__(self) -> str:
        return f"{', '.join(self.ins)} → {self.out}"


def forms(op: Operator) -> list[Found]:
    """All that the operator computes on parts."""
    given = {**REQUIRED.get(op.name, {}), **WITH.get(op.name, {})}
    if "scalar" in op.params:
        given["scalar"] = SCALARS.get(op.name, SCALAR)
    if op.variadic:
        given[op.variadic] = 2
    found = []
    for stype in STORAGES if "stype" in op.params else ("",):
        params = op.make_params({**given, "stype": stype} if stype else given)
        for stypes in itertools.product(KINDS, repeat=len(op.input_names(params))):
            form = form_of(op, params, stypes) if {*stypes} != {DEFAULT} or stype else None
            if form is not None and form.compute is not None and not (stype and stypes[0] == stype):
                found.append(Found(params, stypes, form.outs[0]))
    return found


def operators() -> str:
    """A row for all operators that make the same of the same."""
    rows: dict[tuple[str, str], list[str]] = {}
    for op in users_rules():
        if not op.in_place and forms(op):
            rows.setdefault(("; ".join(map(str, forms(op))), WHERE.get(op.name, "")), []).append(op.name)
    text = "\n| operators | make of | with |\n|---|---|---|\n"
    for (shown, where), names in sorted(rows.items(), key=lambda row: (-len(row[1]), row[1])):
        text += f"| {', '.join(f'`{name}`' for name in sorted(names, key=str.lower))} | {shown} | {where} |\n"
    return text + "\n"


def updates() -> str:
    """The updates that change the rows of a row_sparse gradient alone, by how the weight is kept."""
    text = "\n| update | of a weight that is | without lazy_update |\n|---|---|---|\n"
    for op in users_rules():
        if op.in_place:
            rule, params = op.rule("sparse"), op.make_params(REQUIRED[op.name])
            count = len(op.input_names(params)) - 2
            kinds = [kind for kind in STORAGES[:2] if rule(op, params, (kind, "row_sparse", *[kind] * count))]
            text += f"| `{op.name}` | {', '.join(kinds)} | {'all rows' if 'lazy_update' in op.params else ''} |\n"
    return text + "\n"


TABLES = {"operators": operators, "updates": updates}


def written(text: str) -> str:
    """The document `text` with each table as it is now."""
    return with_tables(text, TABLES)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
