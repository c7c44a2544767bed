"""What an installation of mxc requires, as its metadata declare it, and whether that is there.

mxc has no dependency that reads metadata, so this reads of PEP 508 (requirements and markers) and PEP 440 (versions)
what packages use: releases are compared, and all pre-releases of a release count as older than it and as one version.
"""
from __future__ import annotations

import ast
import operator
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

DISTRIBUTION = "mxc-compiler"
LONGEST = 200  # characters of an error that are shown
_REQUIREMENT = re.compile(r"\s*(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^]]*)\])?\s*(?P<versions>[^;@]*)(?:@[^;]*)?"
                          r"(?:;(?P<marker>.*))?", re.DOTALL)
_CLAUSE = re.compile(r"(===|~=|==|!=|<=|>=|<|>)\s*(.+)")
_VERSION = re.compile(r"v?(?:\d+!)?(\d+(?:\.\d+)*)[-_.]?([a-z]*)")
_BEFORE = ("a", "b", "c", "rc", "alpha", "beta", "pre", "preview", "dev")
_VERSIONS = ("python_version", "python_full_version", "implementation_version", "platform_release")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}
_OPERATORS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True)
class Requirement:
    """A distribution, which of its extras and versions (`>=2.0,<3`; empty: any) are wanted, and when (marker)."""

    name: str
    extras: tuple[str, ...]
    versions: str
    marker: str

    def __str__(self) -> str:
        return self.name + (f"[{','.join(self.extras)}]" if self.extras else "") + self.versions

    def applies(self, extra: str = "") -> bool:
        """Whether it is wanted here, by the distribution itself or with one of its extras."""
        return not self.marker or marker_holds(self.marker, extra)


@dataclass(frozen=True)
class Declared:
    """Versions of Python, and requirements, those of extras among them."""

    python: str
    requirements: tuple[Requirement, ...]

    def of(self, extra: str = "") -> list[Requirement]:
        """What is wanted here: by the distribution itself, or by an extra besides."""
        return [each for each in self.requirements if each.applies(extra) and not (extra and each.applies())]


def declared(package: Path) -> Declared | None:
    """What the installed metadata say, or the pyproject.toml beside a folder of the checkout; None without either.

    package: the folder of mxc's modules. Metadata come with any installation, editable ones too.
    """
    try:
        found = metadata.distribution(DISTRIBUTION)
        (python,) = found.metadata.get_all("Requires-Python") or ("",)
        return Declared(python, tuple(map(parse, found.requires or ())))
    except metadata.PackageNotFoundError:
        pass
    import tomllib

    root = (package / "__init__.py").resolve().parents[1]  # the file may be a link: an editable installation's are
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    except (OSError, ValueError, KeyError):
        return None
    requirements = [parse(text) for text in project.get("dependencies", ())]
    for extra, texts in project.get("optional-dependencies", {}).items():
        for each in map(parse, texts):
            marker = f"({each.marker}) and extra == {extra!r}" if each.marker else f"extra == {extra!r}"
            requirements.append(Requirement(each.name, each.extras, each.versions, marker))
    return Declared(project.get("requires-python", ""), tuple(requirements))


def parse(text: str) -> Requirement:
    """A requirement as metadata have it: `NAME[EXTRA] >=1.0; MARKER`. Raises ValueError when it is none."""
    match = _REQUIREMENT.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a requirement")
    extras = tuple(filter(None, (part.strip() for part in (match["extras"] or "").split(","))))
    versions = match["versions"].strip().removeprefix("(").removesuffix(")").replace(" ", "")
    return Requirement(match["name"], extras, versions, (match["marker"] or "").strip())


def lacking(requirement: Requirement) -> Iterator[str]:
    """What of a requirement, and of the extras that it names, is not there or too old: `numpy 1.26.4 (needs >=2.0)`."""
    todo, seen = [requirement], set()
    while todo:
        each = todo.pop()
        if each in seen:
            continue
        seen.add(each)
        wanted = needs(each)
        version = installed(each.name)
        if version is None:
            yield f"{each.name} is not installed{wanted}"
        elif not meets(version, each.versions):
            yield f"{each.name} {version}{wanted}"
        elif each.extras:
            inner = tuple(map(parse, metadata.requires(each.name) or ()))
            todo += [found for extra in each.extras for found in Declared("", inner).of(extra)]


def fault(required: Requirement) -> tuple[str, str] | None:
    """What is wrong with a required distribution, as `not installed (needs >=2.0)`, and the command that mends it; None
    when it is there, in a version that is enough, and its packages can be imported."""
    reasons = "; ".join(lacking(required))
    if reasons:
        return reasons.removeprefix(f"{required.name} ").removeprefix("is "), f"pip install --upgrade '{required}'"
    for module in modules(required.name):
        try:
            import_module(module)
        except Exception as error:  # whatever a broken package raises
            return (f"{installed(required.name)}{needs(required)}, cannot be imported: {in_a_line(error)}",
                    f"pip install --force-reinstall '{required}'")
    return None


def needs(required: Requirement) -> str:
    """The versions that are wanted, as a text to append; empty when any will do."""
    return f" (needs {required.versions})" if required.versions else ""


def in_a_line(error: Exception | str) -> str:
    """What an error says, in one line of a length that can be read: NumPy explains a broken installation in thirty."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def installed(name: str) -> str | None:
    """The version of a distribution; None when it is not installed."""
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, KeyError):  # a broken one has no version
        return None


def modules(name: str) -> list[str]:
    """The packages that a distribution has for others to import, where it lists its files."""
    files = metadata.distribution(name).files or ()
    found = {path.parts[0] for path in files if len(path.parts) == 2 and path.name == "__init__.py"}
    return sorted(name for name in found if not name.startswith("_"))


def meets(version: str, versions: str) -> bool:
    """Whether a version is among those that a requirement allows, as `>=2.0,<3` or `~=1.4`."""
    for clause in filter(None, map(str.strip, versions.split(","))):
        match = _CLAUSE.fullmatch(clause)
        if not match or not _clause_holds(version, match[1], match[2].strip()):
            return False
    return True


def _clause_holds(version: str, sign: str, wanted: str) -> bool:
    if sign == "===":
        return version == wanted
    if sign == "~=":
        prefix = wanted.rpartition(".")[0]
        return _order(version) >= _order(wanted) and _clause_holds(version, "==", f"{prefix}.*")
    if wanted.endswith(".*"):
        numbers = _numbers(wanted[:-2])
        return (_numbers(version)[:len(numbers)] == numbers) == (sign == "==")
    return _COMPARE[sign](_order(version), _order(wanted))


def _numbers(version: str) -> tuple[int, ...]:
    match = _VERSION.match(version.lower())
    return tuple(map(int, match[1].split("."))) if match else ()


def _order(version: str) -> tuple[tuple[int, ...], int]:
    """The release's numbers, without zeros at the end, and -1, 0 or 1: before it, itself, after it."""
    numbers = list(_numbers(version))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    match = _VERSION.match(version.lower())
    letters = match[2] if match else ""
    return tuple(numbers), -1 if letters in _BEFORE else int(letters in ("post", "r", "rev"))


def marker_holds(marker: str, extra: str = "") -> bool:
    """Whether an environment marker holds here. One that cannot be read holds: better told too much than too little."""
    implementation = sys.implementation.version
    names = {
        "os_name": os.name, "sys_platform": sys.platform, "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(), "platform_release": platform.release(),
        "platform_system": platform.system(), "platform_version": platform.version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "python_full_version": platform.python_version(), "implementation_name": sys.implementation.name,
        "implementation_version": ".".join(map(str, implementation[:3])), "extra": extra,
    }
    try:
        return _holds(ast.parse(marker.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, KeyError):
        return True


def _holds(node: ast.expr, names: dict[str, str]) -> bool:
    """A marker's text is an expression of Python too, but for its operators ~= and ===."""
    if isinstance(node, ast.BoolOp):
        return (all if isinstance(node.op, ast.And) else any)(_holds(each, names) for each in node.values)
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        raise ValueError(ast.unparse(node))
    sides = (node.left, node.comparators[0])
    left, right = (names[side.id] if isinstance(side, ast.Name) and side.id in names else
                   str(ast.literal_eval(side)) for side in sides)
    sign = node.ops[0]
    if isinstance(sign, ast.In | ast.NotIn):
        return (left in right) == isinstance(sign, ast.In)
    compare = _OPERATORS[type(sign)]
    if any(isinstance(side, ast.Name) and side.id in _VERSIONS for side in sides):
        return _clause_holds(left, compare, right)
    if any(isinstance(side, ast.Name) and side.id == "extra" for side in sides):
        left, right = (re.sub(r"[-_.]+", "-", side).lower() for side in (left, right))
    return _COMPARE[compare](left, right)
