"""Every public name and parameter of MXNet 1.9.1's symbol interface is here, or the reason why it is not.

api/symbol.txt lists them, as the reference list of MXNet's Python interface does; `python tests/test_api.py` writes it
anew from there. Functions of operators that the table does not have yet are skipped.
"""
import importlib
import inspect
import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from mxc.compiler.ops import table

LIST = Path(__file__).parent / "api" / "symbol.txt"
REFERENCE = Path(__file__).parents[2] / "shared" / "reference" / "python_api.txt"
REGISTRY = REFERENCE.with_name("ops.json")
SECTIONS = ("mxnet.symbol", "mxnet.symbol.random", "mxnet.symbol.linalg", "mxnet.symbol.contrib",
            "mxnet.symbol.sparse", "mxnet.symbol.image", "mxnet.executor", "mxnet.name", "mxnet.attribute")

CTYPES = "a helper of MXNet's calls into its C library, which mxc does not have"
METACLASS = "a helper by which MXNet makes its own classes"
EXCEPTIONS = {  # what is not there, or has other parameters
    **{f"mxnet.executor.{name}": CTYPES for name in ("c_array_buf", "c_handle_array", "c_str_array", "check_call",
                                                    "py_str")},
    **{f"mxnet.{module}.{name}": METACLASS for module in ("name", "attribute")
       for name in ("classproperty", "with_metaclass")},
    "mxnet.executor.Executor": "bind and simple_bind make executors; MXNet's constructor takes a handle of its library",
    "mxnet.executor.Executor.__del__": "Python frees an executor's memory",
    "mxnet.symbol.Group": "create_fn is None instead of Symbol by default, which means the same",
}
NEEDS = {"foreach": "_foreach", "while_loop": "_while_loop", "cond": "_cond"}  # functions and the operators they make


class Name(NamedTuple):
    """A line of the list: where it is, the class it is a member of, its name, and its parameters unless it has none."""

    section: str
    owner: str
    name: str
    parameters: str | None

    def __str__(self) -> str:
        return ".".join(filter(None, (self.section, self.owner, self.name)))


def extract(text: str) -> str:
    """The sections of the reference list, without what is no name; classes as defaults by their name alone."""
    chosen = [part for part in re.split(r"^(?=\[)", text, flags=re.MULTILINE)
              if part.startswith(tuple(f"[{s}]\n" for s in SECTIONS))]
    lines = [line for part in chosen for line in part.rstrip().splitlines() if line and not line.startswith("also:")]
    return re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", "\n".join(lines)) + "\n"


def read(text: str) -> list[Name]:
    """The names of a list."""
    found, section, owner = [], "", ""
    for line in text.splitlines():
        if line.startswith("["):
            section, owner = line[1:-1], ""
        elif line.startswith("class "):
            match = re.match(r"class (\w+)(?:\(\w*\))?(\(.*\))?$", line)
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
    return str(inspect.Signature(plain))


def find(name: Name):
    """The object of that name in mxc. Raises AttributeError when it is not there."""
    place = importlib.import_module(name.section.replace("mxnet", "mxc", 1))
    return getattr(getattr(place, name.owner) if name.owner else place, name.name)


def operator_of(name: Name) -> str | None:
    """The operator that the function of a namespace applies; None when it is no operator's function."""
    if name.name in NEEDS:
        return NEEDS[name.name]
    made = re.search(r"attr=None, out=None, \*\*kwargs\)$|^\(\*(?!shape)\w+, \*\*kwargs\)$", name.parameters or "")
    space = name.section.removeprefix("mxnet.symbol").lstrip(".")
    return f"_{space}_{name.name}" if made and space else None


NAMES = read(LIST.read_text()) if LIST.exists() else []


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_name_and_parameters(name: Name):
    operator = operator_of(name)
    if operator is not None and not table.has(operator):
        pytest.skip(f"there is no operator {operator} yet")
    if str(name) in EXCEPTIONS:
        return
    found = find(name)
    if name.parameters is not None:
        wanted = name.parameters
        if wanted.startswith("(*"):  # a variable number of inputs: what they are called cannot be said in a call
            assert re.fullmatch(r"\(\*\w+, \*\*kwargs\)", described(found))
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
def test_the_list_is_the_references():
    assert LIST.read_text() == extract(REFERENCE.read_text())


@pytest.mark.skipif(not REGISTRY.exists(), reason="the facts about MXNet's registry are not there")
def test_parameters_are_in_mxnets_order():
    """Programs give them by position."""
    registry = json.loads(REGISTRY.read_text())
    for op in table.all_operators():
        real = [name for name in registry.get(op.name, {}).get("params", {}) if name in op.params]
        assert [name for name in op.params if name in real] == real, op.name


def test_operators_show_up_in_their_namespaces():
    for space in ("contrib", "linalg", "image", "random", "sparse"):
        module = importlib.import_module(f"mxc.symbol.{space}")
        for operator in (name for name in table.names() if name.startswith(f"_{space}_")):
            name = operator.removeprefix(f"_{space}_")
            assert name in dir(module) and getattr(module, name).__module__ == f"mxc.symbol.{space}"
        with pytest.raises(AttributeError, match=f"{space}.*no_such_operator"):
            module.no_such_operator  # noqa: B018


if __name__ == "__main__":
    LIST.parent.mkdir(exist_ok=True)
    LIST.write_text(extract(REFERENCE.read_text()))
