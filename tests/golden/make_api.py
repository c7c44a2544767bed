"""Write ../api/FAMILY.txt, names and parameters of MXNet 1.9.1's Python interface: with MXNet's Python.

Which modules, functions and classes there are is taken from the lists as they stand; a class's members and everything's
parameters are MXNet's. A line is a function, `class NAME(BASES)(parameters)`, or below it a member; the parameters of
classes are those of an `__init__` of their own.
"""
import importlib
import inspect
import re
import warnings
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "api"


def parameters(function):
    """Names and defaults; classes and functions as defaults by their name alone, objects without their place."""
    signature = inspect.signature(function)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    text = re.sub(r" at 0x\w+>", ">", str(inspect.Signature(plain)))
    text = re.sub(r"<module '([\w.]+)' from '.*?'>", r"\1", text)
    return re.sub(r"<class '[\w.]*?(\w+)'>|<function (\w+)>", r"\1\2", text)


def members(owner):
    """The lines of a class's own methods and properties; those with one underscore are nobody's business."""
    lines = []
    for name, value in sorted(vars(owner).items()):
        if (name.startswith("_") and not name.startswith("__")) or name == "__init__":
            continue
        function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(function, property):
            lines.append(f"    {name}: property")
        elif inspect.isfunction(function):
            kind = " " + type(value).__name__ if value is not function else ""
            lines.append(f"    {name}{parameters(function)}{kind}")
    return lines


def described(module, name):
    """The lines of a function or a class."""
    found = getattr(module, name)
    if not inspect.isclass(found):
        return [f"{name}{parameters(found)}"]
    bases = ", ".join(base.__name__ for base in found.__bases__ if base is not object)
    own = parameters(found.__init__) if "__init__" in vars(found) else ""
    return [f"class {name}({bases}){own}", *members(found)]


def main():
    warnings.simplefilter("ignore")
    for path in sorted(FOLDER.glob("*.txt")):
        lines = []
        for line in path.read_text().splitlines():
            if line.startswith("["):
                module = importlib.import_module(line[1:-1])
                lines.append(line)
            elif not line.startswith(" "):
                lines += described(module, re.match(r"(?:class )?(\w+)", line)[1])
        path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
