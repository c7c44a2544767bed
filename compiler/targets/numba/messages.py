"""What Numba says of a function that it cannot compile, in a sentence."""
from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_INDEX = re.compile(r"(?:getitem|setitem)\(array\([^()]*, (\d+)d, \w+\), (?:Uni)?Tuple\(([^()]*)\)")
_CALL = re.compile(r">>> ([^\n]+)")
_BINDING = re.compile(r"Cannot bind .* to signature '(.*?)' due to \"TypeError: (.*?)\"", re.DOTALL)
_CONSTANT = re.compile(r"Literal\[(\w+)\]\([^()]*\)")
MAKES = "it makes an array, a list or a text, for which compiled code has no memory; expected numbers and its arrays"


def needs(symbol: str) -> str:
    """What is wrong with a function that needs one of Numba's library."""
    if symbol.startswith("NRT_"):
        return MAKES
    return (f"it needs {symbol}, which only Numba's library has; expected loops, and functions of math and numpy on "
            "numbers")


def short(text: str) -> str:
    """The point of a message of Numba's, which goes on for many lines."""
    plain = _CONSTANT.sub(r"\1", _COLOURS.sub("", text))
    if "modify readonly array" in plain:
        return "it writes to an array that is read only: an input"
    index = _INDEX.search(plain)
    if index is not None:
        given = index[2].split(" x ")
        count = int(given[1]) if len(given) == 2 and given[1].isdigit() else index[2].count(",") + 1
        if count > int(index[1]):
            return f"an array of {index[1]} axes is read or written at {count} indices"
    binding = _BINDING.search(plain)
    if binding is not None:
        return f"a function with the parameters {binding[1]} is called with others: {binding[2]}"
    call = _CALL.search(plain)
    if call is not None:
        return f"there is no compiled form of {call[1].strip()}"
    lines = [line.strip() for line in plain.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("Failed in", "During:", "File ", "<source"))]
    return kept[0].rstrip(".") if kept else "Numba refuses it"
