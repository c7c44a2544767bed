"""Parameter types: parsing MXNet's string spellings, checking values, and printing them as MXNet's JSON has them.

A type is written in ops.yaml as `TYPE [in LOW..HIGH] [= DEFAULT]`; without a default the parameter is required.

| type | values | spellings read |
|---|---|---|
| int | int | `3`, `-1`, `007`; `3L` where None is admitted; True counts as 1 |
| float | float, rounded to float32 as MXNet keeps it | `0.5` `.5` `1e-3` `0.5f` `inf` `nan`; not `1e39`, too large |
| double | float | as float |
| bool | bool | `True` `1` `False` `0`, in any case; `none` too where None is admitted |
| str | str | anything |
| shape | tuple of int | `(3, 3)` `[3,3]` `(3,3,)` `3` `(3L, 3L)` `()` |
| bounds | tuple of int or None | as shape, `None` within |
| floats, doubles | tuple of float, floats rounded as float | as shape |
| enum(a, b) | str | one of them |
| dtype, dtype(float32, int32) | NumPy's name, or bfloat16 | a name; the list restricts it |

Spaces around a value and around the elements of a tuple do not count. `TYPE or None` admits `None` besides. For other
shapes and bounds that have a default None is the default: nothing was set. A range holds for an int, a float and each
element of a tuple: `int in 1.. = 1`.
"""
from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mxc.compiler.error import MXNetError, nearest
from mxc.compiler.ops.dtypes import dtype_name

DTYPES = ("float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool", "bfloat16")
REQUIRED = object()  # the default of a parameter that must be given

_SPEC = re.compile(r"(?P<base>\w+)(?:\((?P<choices>[^)]*)\))?(?P<none> or None)?"
                   r"(?: in (?P<low>-?\d+(?:\.\d+)?)?\.\.(?P<high>-?\d+(?:\.\d+)?)?)?(?:\s*=\s*(?P<default>.*))?")
_FLOAT = re.compile(r"([-+]?nan)(?:\(\w*\))?|([-+]?inf(?:inity)?)|"
                    r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)f?", re.ASCII | re.IGNORECASE)
_SINGLE = struct.Struct("<f")
_INTEGER = re.compile(r"[-+]?\d+", re.ASCII)
_LONG = re.compile(r"([-+]?\d+)\s*L", re.ASCII)  # Python 2 printed long integers so
_TRUE, _FALSE = ("true", "1"), ("false", "0")


@dataclass(frozen=True)
class ParamType:
    """One parameter: `base` type, `choices` of an enum or dtype, `optional` (None allowed), range, default."""

    base: str
    choices: tuple[str, ...] = ()
    optional: bool = False
    low: float | None = None
    high: float | None = None
    default: object = REQUIRED

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def unset(self) -> object:
        """The value that None stands for; REQUIRED where None is not admitted."""
        if self.optional:
            return None
        return self.default if isinstance(self.default, tuple) and self.base in ("shape", "bounds") else REQUIRED

    def __str__(self) -> str:
        text = self.base + (f"({', '.join(self.choices)})" if self.choices else "")
        text += " or None" if self.optional else ""
        if self.low is not None or self.high is not None:
            text += f" in {_bound(self.low)}..{_bound(self.high)}"
        return text

    def parse(self, text: str) -> object:
        """The value that a string spells. Raises MXNetError that says what was expected."""
        stripped = text.strip()
        none = stripped == "None" or (self.base == "bool" and stripped.lower() == "none")
        if none and self.unset is not REQUIRED:
            return self.unset
        if self.optional and self.base == "int":
            stripped = _LONG.sub(r"\1", stripped)
        try:
            value = _PARSERS[self.base](stripped)
        except ValueError:
            raise MXNetError(f"expected {self}, got {text!r}") from None
        return self.check(value)

    def convert(self, value: object) -> object:
        """The value for a Python value (a string is parsed). Raises MXNetError that says what was expected."""
        if isinstance(value, str):
            return self.parse(value)
        if value is None:
            if self.unset is not REQUIRED:
                return self.unset
            raise MXNetError(f"expected {self}, got None")
        if self.base in ("str", "enum"):
            return self.parse(str(value))
        try:
            if self.base == "dtype":
                return self.parse(dtype_name(value))
            return self.check(_CONVERTERS[self.base](value))
        except (TypeError, ValueError, OverflowError):
            raise MXNetError(f"expected {self}, got {value!r}") from None

    def check(self, value: object) -> object:
        """`value` itself when it is one of the choices and within the range; else raises MXNetError."""
        if self.choices and value not in self.choices:
            hint = nearest(str(value), self.choices)
            raise MXNetError(f"expected one of {', '.join(self.choices)}, got {value!r}{hint}")
        for element in value if isinstance(value, tuple) else (value,):
            if element is None or isinstance(element, str):
                continue
            low, high = self.low is None or element >= self.low, self.high is None or element <= self.high
            if not (low and high):  # NaN fails both comparisons: it is in no range.
                raise MXNetError(f"expected {self}, got {value!r}")
        return value

    def text(self, value: object) -> str:
        """The string that MXNet writes for `value` in JSON: `(3, 3)`, `True`, `None`, `0.5`."""
        if self.base == "float" and isinstance(value, float):
            return _float32_text(value)
        if self.base == "floats" and isinstance(value, tuple):
            inner = ", ".join(_float32_text(float(v)) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        return str(value)


def parse_type(spec: str) -> ParamType:
    """The type that a string in ops.yaml describes. Raises MXNetError when it is not one."""
    match = _SPEC.fullmatch(spec.strip())
    base = match["base"] if match else ""
    if not match or base not in _PARSERS:
        raise MXNetError(f"{spec!r} is not a parameter type{nearest(base, _PARSERS)}")
    choices = tuple(c.strip() for c in match["choices"].split(",")) if match["choices"] else ()
    if base == "enum" and not choices:
        raise MXNetError(f"{spec!r}: expected the choices, enum(a, b)")
    if base == "dtype" and not choices:
        choices = DTYPES
    low, high = (float(match[k]) if match[k] else None for k in ("low", "high"))
    plain = ParamType(base, choices, bool(match["none"]), low, high)
    if match["default"] is None:
        return plain
    return ParamType(base, choices, plain.optional, low, high, plain.parse(match["default"]))


def _bound(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _float32(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]
    try:
        rounded: float = _SINGLE.unpack(_SINGLE.pack(number))[0]
    except OverflowError:  # The number is finite, but too large for float32.
        raise ValueError(value) from None
    return rounded


def _float32_text(value: float) -> str:
    number = np.float32(value)
    return str(float(value)) if float(number) != value else str(float(str(number)))


def _int64(value: int) -> int:
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(value)
    return value


def _parse_int(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return _int64(int(text))


def _parse_float(text: str) -> float:
    match = _FLOAT.fullmatch(text)
    if not match:
        raise ValueError(text)
    number = float(match[match.lastindex or 0])
    if np.isinf(number) and "inf" not in text.lower():  # A number like 1e400 does not fit into 64 bits.
        raise ValueError(text)
    return number


def _parse_bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def _elements(text: str) -> list[str]:
    """The elements of "(a, b)", "[a, b]", "(a, b]", as MXNet reads it, or "a"; Python 2's long suffix is dropped."""
    parts = [text]
    if text[:1] in ("(", "["):
        if len(text) < 2 or text[-1] not in (")", "]"):
            raise ValueError(text)
        inner = text[1:-1].strip()
        if not inner:
            return []
        parts = [p.strip() for p in inner.split(",")]
        if parts[-1] == "" and len(parts) > 1:
            parts.pop()
    return [_LONG.sub(r"\1", p) for p in parts]


def _tuple_of(read: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: tuple(read(part) for part in _elements(text))


def _convert_int(value: object) -> int:
    if isinstance(value, (float, np.floating)) and not value.is_integer():
        raise ValueError(value)
    return _int64(int(value))  # type: ignore[call-overload]


def _convert_bool(value: object) -> bool:
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _convert_tuple(one: Callable[[object], object]) -> Callable[[object], object]:
    return lambda value: tuple(one(v) for v in value) if hasattr(value, "__iter__") else (one(value),)


_PARSERS: dict[str, Callable[[str], object]] = {
    "int": _parse_int, "float": lambda t: _float32(_parse_float(t)), "double": _parse_float, "bool": _parse_bool,
    "str": str, "enum": str, "dtype": str, "shape": _tuple_of(_parse_int),
    "bounds": _tuple_of(lambda t: None if t == "None" else _parse_int(t)),
    "floats": _tuple_of(lambda t: _float32(_parse_float(t))), "doubles": _tuple_of(_parse_float),
}
_CONVERTERS: dict[str, Callable[[object], object]] = {
    "int": _convert_int, "float": _float32, "double": float, "bool": _convert_bool,  # type: ignore[dict-item]
    "shape": _convert_tuple(_convert_int), "bounds": _convert_tuple(lambda v: None if v is None else _convert_int(v)),
    "floats": _convert_tuple(_float32), "doubles": _convert_tuple(float),  # type: ignore[arg-type]
}
