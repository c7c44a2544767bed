"""What variables' attributes state of their shapes and dtypes."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.graph.graph import Node, Shape
from mxc.compiler.ops.params import parse_type

# The numbers that MXNet's files hold for dtypes.
DTYPE_CODES = {0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool",
               12: "bfloat16"}
_SHAPE = parse_type("shape")  # reads `__shape__` attributes as it reads parameters, (8L, 3L) of Python 2 too


def attribute_shape(node: Node) -> Shape | None:
    """The shape that the variable's `__shape__` attribute gives, if any. Raises MXNetError when it is no shape."""
    text = node.attrs.get("__shape__")
    if text is None or text == "None":
        return None
    try:
        return _SHAPE.parse(text)  # type: ignore[return-value]
    except MXNetError:
        raise MXNetError(f"variable {node.name!r}: its attribute __shape__ is {text!r}; "
                         "expected a shape such as (2, 3)") from None


def attribute_dtype(node: Node) -> str | None:
    """The dtype that the variable's `__dtype__` attribute gives: a number as in MXNet's files, or a name."""
    text = node.attrs.get("__dtype__")
    if text is None or text in ("None", "-1"):
        return None
    if text in DTYPE_CODES.values():
        return text
    if text.isdigit() and int(text) in DTYPE_CODES:
        return DTYPE_CODES[int(text)]
    raise MXNetError(f"variable {node.name!r}: its attribute __dtype__ is {text!r}; expected one of "
                     + ", ".join(f"{code} ({name})" for code, name in DTYPE_CODES.items()))
