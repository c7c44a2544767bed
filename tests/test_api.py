"""Every public name and parameter of MXNet 1.9.1's interface is here, or the reason why it is not.

api/FAMILY.txt lists a family of sections as the reference list of MXNet's Python interface does, and api/FAMILY.py says
which: SECTIONS, and EXCEPTIONS, from names that are not there or have other parameters to reasons.
`python tests/test_api.py [FAMILY ...]` writes the lists anew from the reference list, where that is there;
`tests/golden/make_golden.py` asks MXNet itself. Functions of operators that the table does not have yet are skipped.
"""
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from mxc.compiler.ops import table

FOLDER = Path(__file__).parent / "api"
REFERENCE = Path(__file__).parents[2] / "shared" / "reference" / "python_api.txt"
REGISTRY = REFERENCE.with_name("ops.json")
NEEDS = {name: f"_{name}" for name in ("multi_adamw_update", "multi_mp_adamw_update", "multi_lamb_update",
                                       "multi_mp_lamb_update")}  # functions and the operators they make


class Name(NamedTuple):
    """A line of the list: where it is, the class it is a member of, its name, and its parameters unless it has none."""

    section: str
    owner: str
    name: str
    parameters: str | None

    def __str__(self) -> str:
        return ".".join(filter(None, (self.section, self.owner, self.name)))


def extract(text: str, family: str) -> str:
    """A family's sections of the reference list, without what is no name; classes as defaults by their name alone."""
    chosen = [part for part in re.split(r"^(?=\[)", text, flags=re.MULTILINE)
              if part.startswith(tuple(f"[{s}]\n" for s in FAMILIES[family].SECTIONS))]
    lines = [line for part in chosen for line in part.rstrip().splitlines() if line and not line.startswith("also:")]
    return classes_by_name("\n".join(lines)) + "\n"


def classes_by_name(text: str) -> str:
    """Classes and functions as defaults by their name alone."""
    return re.sub(r"<class '[\w.]*?(\w+)'>|<function (\w+) at \w+>", r"\1\2", text)


def read(text: str) -> list[Name]:
    """The names of a list."""
    found, section, owner = [], "", ""
    for line in text.splitlines():
        if line.startswith("["):
            section, owner = line[1:-1], ""
        elif line.startswith("class "):
            match = re.match(r"class (\w+)(?:\([\w,]*\))?(\(.*\))?$", line)
            assert match, line
            owner = match[1]
            found.append(Name(section, "", owner, match[2]))
        else:
            match = re.match(r"( *)(\w+)(\(.*\))?", line)
            assert match, line
            owner = owner if match[1] else ""
            found.append(Name(section, owner, match[2], match[3]))
    return found


def described(function) -> str:
    """The parameters of a function as the list has them: names, defaults, stars."""
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = re.sub(r"<mxc\.([\w.]+) object at 0x\w+>", r"<mxnet.\1 object>", str(inspect.Signature(plain)))
    return classes_by_name(re.sub(r"<module '(\w+)' from '.*?'>", r"\1", text))


def find(name: Name):
    """The object of that name in mxc. Raises AttributeError when it is not there."""
    place = importlib.import_module(name.section.replace("mxnet", "mxc", 1))
    return getattr(getattr(place, name.owner) if name.owner else place, name.name)


def is_missing_class(name: str) -> bool:
    """Whether the exceptions name a class that is not there, so that its members are not either."""
    module, _, owner = name.replace("mxnet", "mxc", 1).rpartition(".")
    return bool(owner) and name in EXCEPTIONS and not hasattr(importlib.import_module(module), owner)


def operator_of(name: Name) -> str | None:
    """The operator that the function of a namespace applies; None when it is no operator's function."""
    if name.name in NEEDS and (name.section.startswith("mxnet.symbol") or "multi" in name.name):
        return NEEDS[name.name]
    made = re.search(r"attr=None, out=None, \*\*kwargs\)$|out=None, name=None, \*\*kwargs\)$|"
                     r"^\(\*(?!shape)\w+, \*\*kwargs\)$", name.parameters or "")
    space = re.sub(r"^mxnet\.(symbol|ndarray)\.?", "", name.section)
    return f"_{space}_{name.name}" if made and space else None


FAMILIES = {path.stem: importlib.import_module(f"api.{path.stem}") for path in sorted(FOLDER.glob("*.py"))}
EXCEPTIONS = {name: reason for family in FAMILIES.values() for name, reason in family.EXCEPTIONS.items()}
NAMES = [name for path in sorted(FOLDER.glob("*.txt")) for name in read(path.read_text())]


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_name_and_parameters(name: Name):
    operator = operator_of(name)
    if operator is not None and not table.has(operator):
        pytest.skip(f"there is no operator {operator} yet")
    if str(name) in EXCEPTIONS or is_missing_class(f"{name.section}.{name.owner}"):
        return
    found = find(name)
    if name.parameters is not None:
        wanted = name.parameters
        variadic = r"\(\*\w+, \*\*kwargs\)"
        if re.fullmatch(variadic, wanted):  # what a variable number of inputs is called cannot be said in a call
            assert re.fullmatch(variadic, described(found))
        elif inspect.isclass(found):
            assert described(found.__init__) == wanted
        else:
            assert described(found) == wanted


def test_exceptions_are_exceptions():
    listed = {str(name): name for name in NAMES}
    for name in EXCEPTIONS:
        try:
            found = find(listed[name])
        except AttributeError:
            continue
        assert described(found) != listed[name].parameters, f"{name} is as in MXNet: no exception"


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference list is not there")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_list_is_the_references(family: str):
    assert (FOLDER / f"{family}.txt").read_text() == extract(REFERENCE.read_text(), family)


@pytest.mark.skipif(not REGISTRY.exists(), reason="the facts about MXNet's registry are not there")
def test_parameters_are_in_mxnets_order():
    """Programs give them by position."""
    registry = json.loads(REGISTRY.read_text())
    for op in table.all_operators():
        real = [name for name in registry.get(op.name, {}).get("params", {}) if name in op.params]
        assert [name for name in op.params if name in real] == real, op.name


@pytest.mark.parametrize(("library", "spaces"), [
    ("mxc.symbol", ("contrib", "linalg", "image", "random", "sparse")),
    ("mxc.ndarray", ("contrib", "linalg", "image", "sparse"))])
def test_operators_show_up_in_their_namespaces(library: str, spaces: tuple[str, ...]):
    for space in spaces:
        module = importlib.import_module(f"{library}.{space}")
        for operator in (name for name in table.names() if name.startswith(f"_{space}_")):
            name = operator.removeprefix(f"_{space}_")
            assert name in dir(module) and getattr(module, name).__module__.startswith(library)
        with pytest.raises(AttributeError, match=f"{space}.*no_such_operator"):
            module.no_such_operator  # noqa: B018


if __name__ == "__main__":
    for _family in sys.argv[1:] or FAMILIES:
        (FOLDER / f"{_family}.txt").write_text(extract(REFERENCE.read_text(), _family))
