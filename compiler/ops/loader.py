"""Reads ops.yaml into Operators and checks it: every complaint names the line.

How to add an operator: one entry in ops.yaml (operator.py documents the keys); how to add a rule: see rules.py.
"""
from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from mxc.compiler.error import MXNetError, nearest
from mxc.compiler.ops.expr import names_of
from mxc.compiler.ops.operator import FLOAT16, NO_GRADIENT, InputSpec, Kind, Operator, Reduce
from mxc.compiler.ops.params import parse_type
from mxc.compiler.ops.rules import HOMES, SHARED, families, find_rule, rules_of

KEYS = frozenset(["op", "doc", "aliases", "kind", "float16", "inputs", "named", "named_outputs", "variadic", "counted",
                  "parameters", "aux", "aux_behind", "aux_if", "starts", "outputs", "count", "visible", "unwatched",
                  "params", "expr", "grad", "reduce", "update", "many", "common", "along", "host", "samples", *HOMES])
_REDUCE_KEYS = {"combine", "body", "final"}
COMBINES = ("sum", "prod", "max", "min", "argmax", "argmin")
# The rules that an operator of a kind has where its entry names none.
DEFAULTS: dict[Kind, dict[str, str]] = {
    Kind.ELEMENTWISE: {"shape": "same_shape", "dtype": "same_dtype"},
    Kind.BROADCAST: {"shape": "broadcast", "dtype": "same_dtype"},
    Kind.INJECTIVE: {"dtype": "same_dtype"},
    Kind.REDUCTION: {"shape": "reduce", "dtype": "same_dtype"},
    Kind.ANCHOR: {"dtype": "same_dtype"},
    Kind.OPAQUE: {"dtype": "same_dtype"},
}
GENERATED_RULES = {"dtype": "first_dtype", "sparse": "at_first"}  # of gradient operators, see backward_operator.py


def packaged() -> str:
    """The text of the package's ops.yaml."""
    return importlib.resources.files("mxc.compiler").joinpath("ops.yaml").read_text(encoding="utf-8")


def load(text: str | None = None) -> list[Operator]:
    """Every operator of a table's text (default: the package's). Raises MXNetError listing every complaint."""
    source = TableText(packaged() if text is None else text)
    complaints = list(source.complaints)
    operators: list[Operator] = []
    for chunk in source.chunks:
        try:
            operators.append(source.operator(chunk))
        except MXNetError as error:
            complaints.append(str(error))
    if complaints:
        raise MXNetError("\n".join(complaints))
    return operators


@dataclass(frozen=True)
class Chunk:
    """The text of one entry, its first line's number, the operator's name, aliases and family."""

    line: int
    name: str
    aliases: tuple[str, ...]
    text: str
    family: str


class _LineError(MXNetError):
    """A complaint about one line inside of an entry."""

    def __init__(self, line: int, text: str):
        super().__init__(text)
        self.line = line


@dataclass
class _Entry:
    line: int
    family: str
    values: dict[str, Any]
    lines: dict[str, int]


_START = re.compile(r"^- ", re.MULTILINE)
_FAMILY = re.compile(r"- family: (\w+)$", re.MULTILINE)
_NAME = re.compile(r"- op: (\S+)")
_ALIASES = re.compile(r"^  aliases: *\[([^\]]*)\]", re.MULTILINE)
_ANCHOR = re.compile(r"[ \[]&(\w+)")
_REFERENCE = re.compile(r"[ \[]\*(\w+)")


class TableText:
    """A table's text, cut into its entries, which are parsed one by one: a program uses few of all operators.

    complaints: what is wrong with the whole: text outside of entries, names that occur twice.
    """

    def __init__(self, text: str):
        starts = [m.start() for m in _START.finditer(text)]
        self.complaints = []
        for number, row in enumerate(text[:starts[0] if starts else None].splitlines(), 1):
            if row.strip() and not row.startswith("#"):
                self.complaints.append(f"ops.yaml:{number}: expected a list of operators, got {row!r}")
        self.chunks: list[Chunk] = []
        self._anchors: dict[str, str] = {}
        line, family = 1, SHARED
        for begin, end in zip([0, *starts], [*starts, len(text)], strict=True):
            part = text[begin:end]
            if of_all := _FAMILY.match(part):
                family = of_all[1]
            elif part.startswith("- "):
                name, aliases = _NAME.match(part), _ALIASES.search(part)
                names = aliases[1].split(",") if aliases else []
                self.chunks.append(Chunk(line, name[1] if name else "?", tuple(n.strip() for n in names), part,
                                         family))
                self._anchors.update(dict.fromkeys(_ANCHOR.findall(part), part))
            line += part.count("\n")
        self.by_name: dict[str, Chunk] = {}
        for chunk in self.chunks:
            for each in (chunk.name, *chunk.aliases):
                if each in self.by_name:
                    first = self.by_name[each]
                    self.complaints.append(f"ops.yaml:{chunk.line}: {each} is the operator {first.name} already "
                                           f"(line {first.line})")
                self.by_name[each] = chunk
        self._parsed: dict[int, Operator] = {}

    def operator(self, chunk: Chunk) -> Operator:
        """The operator of one entry. Raises MXNetError that names the line."""
        if chunk.line not in self._parsed:
            try:
                operator = _operator(self._entry(chunk))
                if (operator.name, operator.aliases) != (chunk.name, chunk.aliases):
                    raise MXNetError(f"operator {operator.name}: expected the entry to begin with `- op: NAME`, and "
                                     "aliases as [a, b]")
                if operator.many:
                    operator.inputs_of_one = len(self.operator(self.by_name[operator.many]).inputs) - operator.common
                self._parsed[chunk.line] = operator
            except _LineError as error:
                raise MXNetError(f"ops.yaml:{error.line}: {error}") from None
            except MXNetError as error:
                raise MXNetError(f"ops.yaml:{chunk.line}: {error}") from None
        return self._parsed[chunk.line]

    def _entry(self, chunk: Chunk) -> _Entry:
        """The entry read as YAML, after the entries whose anchors it refers to."""
        needed, more = {chunk.text}, [chunk.text]
        while more:
            found = {self._anchors[name] for name in _REFERENCE.findall(more.pop()) if name in self._anchors}
            more += found - needed
            needed |= found
        before = "".join(part for part in dict.fromkeys(self._anchors.values()) if part in needed - {chunk.text})
        offset = chunk.line - before.count("\n")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            reader = loader(before + chunk.text)
            root = reader.get_single_node()
            assert isinstance(root, yaml.SequenceNode)  # The text begins with "- ", where it was cut: it is a list.
            node = root.value[-1]
            if not isinstance(node, yaml.MappingNode):
                raise MXNetError("expected a mapping with the key op")
            lines: dict[str, int] = {}
            for key, _ in node.value:
                if key.value in lines:
                    raise _LineError(key.start_mark.line + offset, f"the key {key.value} is there twice")
                lines[key.value] = key.start_mark.line + offset
            return _Entry(chunk.line, chunk.family, reader.construct_document(node), lines)
        except yaml.YAMLError as error:
            raise MXNetError(str(error)) from None


def _operator(entry: _Entry) -> Operator:
    raw = entry.values
    for key in raw:
        if key not in KEYS:
            raise _LineError(entry.lines[key], f"unknown key {key!r}{nearest(key, KEYS)}")
    for key in ("op", "kind"):
        if key not in raw:
            raise MXNetError(f"operator {raw.get('op', '?')}: the key {key} is missing")
    name = raw["op"]
    if str(raw["kind"]).upper() not in Kind.__members__:
        kinds = [each.lower() for each in Kind.__members__]
        raise _LineError(entry.lines["kind"], f"operator {name}: unknown kind {raw['kind']!r}"
                         f"{nearest(str(raw['kind']), kinds)}; expected one of {', '.join(kinds)}")
    if raw.get("float16", "passed") not in FLOAT16:
        raise _LineError(entry.lines["float16"], f"operator {name}: float16: expected {' or '.join(FLOAT16)}, got "
                         f"{raw['float16']!r}")
    try:
        params = {k: parse_type(str(v)) for k, v in (raw.get("params") or {}).items()}
        inputs = tuple(_input(str(text)) for text in raw.get("inputs", ()))
    except MXNetError as error:
        raise MXNetError(f"operator {name}: {error}") from None
    outputs = tuple(raw.get("outputs", ("output",)))
    numbered = outputs[0].endswith("*")
    if raw.get("count"):
        outputs = tuple(o.rstrip("*") for o in outputs)
    kind = Kind[raw["kind"].upper()]
    rules = dict(DEFAULTS[kind]) | {role: raw[role] for role in HOMES if isinstance(raw.get(role), str)}
    if raw.get("grad") in NO_GRADIENT:
        del rules["grad"]
    operator = Operator(
        name=name, kind=kind, inputs=inputs, params=params, aliases=tuple(raw.get("aliases", ())),
        variadic=raw.get("variadic", ""), counted=raw.get("counted", ""),
        parameters=tuple(raw.get("parameters", ())), aux=tuple(raw.get("aux", ())),
        aux_behind=raw.get("aux_behind", ""), aux_if=str(raw.get("aux_if", "")), starts=raw.get("starts", {}),
        outputs=outputs, count=str(raw.get("count", "")), numbered=numbered,
        visible=raw.get("visible", 0), named=bool(raw.get("named")),
        named_outputs=bool(raw.get("named_outputs")), unwatched=tuple(raw.get("unwatched", ())),
        expr=_expr(raw.get("expr")), grad=_grad(raw.get("grad")), float16=raw.get("float16", ""),
        reduce=_reduce(name, raw.get("reduce")), rules=rules, family=entry.family, many=raw.get("many", ""),
        common=int(raw.get("common", 0)), along=raw.get("along", ""),
        update={str(k): str(v) for k, v in (raw.get("update") or {}).items()},
        host=str(raw.get("host", "")), samples=tuple(raw.get("samples", ())), doc=str(raw.get("doc", "")),
        line=entry.line)
    _check_expressions(operator)
    return operator


def _input(text: str) -> InputSpec:
    words = text.split(maxsplit=2)
    if len(words) == 3 and words[1] in ("if", "unless"):
        return InputSpec(words[0].rstrip("*"), words[2], words[1] == "unless", words[0].endswith("*"))
    if len(words) != 1:
        raise MXNetError(f"input {text!r}: expected NAME, NAME*, `NAME if COND` or `NAME unless COND`")
    name, star, endings = text.partition("*")
    return InputSpec(name, variadic=bool(star), endings=tuple(endings.split("|")))


def _expr(raw: Any) -> str | dict[str, dict[str, str]] | None:
    if raw is None:
        return None
    if isinstance(raw, dict):
        if len(raw) != 1:
            raise MXNetError("expr: expected {PARAMETER: {VALUE: EXPRESSION, ...}}")
        return {k: {str(v): str(e) for v, e in choices.items()} for k, choices in raw.items()}
    return str(raw)


def _grad(raw: Any) -> dict[str, str | dict[str, dict[str, str]]] | str | None:
    if not isinstance(raw, dict):
        return raw
    return {k: formula for k, v in raw.items() if (formula := _expr(v)) is not None}


def _reduce(name: str, raw: Any) -> Reduce | None:
    if raw is None:
        return None
    unknown = [k for k in raw if k not in _REDUCE_KEYS]
    if unknown or raw.get("combine") not in COMBINES:
        known = ", ".join(COMBINES)
        raise MXNetError(f"operator {name}: reduce: expected combine ({known}), body and final, got {raw}")
    return Reduce(raw["combine"], str(raw["body"]), str(raw.get("final", "acc")))


def texts_of(formula: str | dict[str, dict[str, str]]) -> list[str]:
    return [formula] if isinstance(formula, str) else [e for choices in formula.values() for e in choices.values()]


def _check_expressions(op: Operator) -> None:
    """Every name of an expression is an input or a parameter (of a gradient also og, out and count)."""
    inputs = [i.name for i in op.inputs]
    known = dict.fromkeys([*inputs, *op.params])

    def check(text: str, extra: set[str], what: str) -> None:
        unknown = names_of(text) - known.keys() - extra
        if unknown:
            names = ", ".join([*known, *sorted(extra - known.keys())])
            raise MXNetError(f"operator {op.name}: {what} {text!r}: unknown name {', '.join(sorted(unknown))}; "
                             f"expected {names or 'numbers alone'}")

    if op.expr is not None and not op.sums:
        for text in texts_of(op.expr):
            check(text, set(), "expr")
    for name in op.starts.keys() - {*inputs, *op.aux}:
        raise MXNetError(f"operator {op.name}: starts: {name} is not an input")
    if op.reduce:
        check(op.reduce.body, set(), "reduce body")
        check(op.reduce.final, {"acc", "count"}, "reduce final")
    lines: set[str] = set()
    for name, text in op.update.items():
        check(text, lines, f"update {name}:")
        lines.add(name)
    if op.update and "out" not in lines:
        raise MXNetError(f"operator {op.name}: update: the line of out is missing")
    if isinstance(op.grad, dict):
        for name, formula in op.grad.items():
            if name not in inputs:
                raise MXNetError(f"operator {op.name}: grad: {name} is not an input")
            for text in texts_of(formula):
                check(text, {"og", "out", "count"}, "grad")


def lint(operators: Iterable[Operator], roles: Iterable[str] = tuple(HOMES)) -> list[str]:
    """Complaints, each with its line: about families that do not exist, rules that the table names but that do not
    exist, rules that exist but are not named, and operators that run as Python and do not say by what, or that say so
    and have code."""
    complaints, used = [], set()
    operators, roles = list(operators), tuple(roles)
    for op in operators:
        if op.family not in families():
            complaints.append(f"ops.yaml:{op.line}: operator {op.name}: there is no family {op.family!r}"
                              f"{nearest(op.family, families())}; expected a folder compiler/operators/{op.family}")
        if bool(op.host) != op.is_host:
            complaints.append(f"ops.yaml:{op.line}: operator {op.name}: " + (
                f"it has kernels, so `host: {op.host}` is wrong" if op.host else
                "it has neither a decomposition nor a routine; say by what the host computes it, as `host: LAPACK`"))
        for role, name in op.rules.items():
            try:
                used.add(find_rule(role, op.family, name))
            except MXNetError as error:
                if role in roles:
                    complaints.append(f"ops.yaml:{op.line}: operator {op.name}: {error}")
    for defaults in (*DEFAULTS.values(), GENERATED_RULES):
        used |= {find_rule(role, SHARED, name) for role, name in defaults.items()}
    for family in families():
        for role in roles:
            for name, function in rules_of(role, family).items():
                if function not in used:
                    used.add(function)  # it may be a rule of several roles, by its parameters
                    code = function.__code__
                    complaints.append(f"{code.co_filename}:{code.co_firstlineno}: no operator uses the {role} rule "
                                      f"{name}")
    return complaints
