"""What dtype rules share: `def NAME(params, ins, outs) -> (ins, outs)` on NumPy's names; None: not known (yet). And
bfloat16, which NumPy does not have.

A bfloat16 is the upper half of a float32. Arrays hold its 16 bits under the dtype that MXNet's programs know it by,
`numpy.dtype([("bfloat16", numpy.uint16)])`, with which NumPy moves elements but does not compute. What NumPy would
convert are the bits, so arrays that may be of bfloat16 are converted by the functions here alone.
"""
from __future__ import annotations

import functools

import numpy as np

from mxc.compiler.error import MXNetError

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])
NARROW = ("float16", "bfloat16")  # dtypes that are computed in float32
MIXED = (*NARROW, "float32")  # dtypes between which automatic mixed precision casts, narrow ones first

Dtypes = list[str | None]
_UNKNOWN = {None}


def merge_dtypes(dtypes: Dtypes) -> str | None:
    """The one dtype of all that are known. Raises MXNetError when they differ."""
    known = {*dtypes} - _UNKNOWN
    if len(known) > 1:
        raise MXNetError(f"expected the same dtype, got {' and '.join(d for d in dict.fromkeys(dtypes) if d)}")
    return known.pop() if known else None


def require_kind(dtype: str | None, kind: str, what: str) -> None:
    if dtype is not None and kind not in dtype:
        raise MXNetError(f"expected {what} of a{'n' if kind == 'int' else ''} {kind} dtype, got {dtype}")


@functools.lru_cache(maxsize=256)
def dtype_name(dtype: object) -> str:
    """The name of a dtype given as a name, a NumPy dtype or a scalar type, also another package's bfloat16. Raises
    TypeError for what is no dtype."""
    if isinstance(dtype, str) and dtype == "bfloat16":
        return "bfloat16"
    found = np.dtype(dtype)  # type: ignore[call-overload]
    return "bfloat16" if found == BFLOAT16 else str(found.name)


@functools.cache
def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype of arrays of a dtype of that name."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def scalar_type(name: str) -> type | np.dtype:
    """What programs know a dtype by: NumPy's scalar type, or BFLOAT16, which has none of its own."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name).type


def is_number(dtype: np.dtype, kinds: str = "biuf") -> bool:
    """Whether arrays of NumPy's dtype hold numbers of these kinds, of which bfloat16 is an "f"."""
    return dtype.kind in kinds or ("f" in kinds and dtype == BFLOAT16)


def epsilon(dtype: np.dtype) -> float:
    """By how much the next number after 1 is larger, of a float dtype."""
    return 2.0**-7 if dtype == BFLOAT16 else float(np.finfo(dtype).eps)


def lowest(name: str) -> float:
    """The lowest finite number of a float dtype."""
    return float(widened(np.array(0xFF7F, np.uint16).view(BFLOAT16)) if name == "bfloat16" else np.finfo(name).min)


def widened(array: np.ndarray) -> np.ndarray:
    """The array in float32 where it is of bfloat16, else itself."""
    if array.dtype != BFLOAT16:
        return array
    return (array["bfloat16"].astype(np.uint32) << 16).view(np.float32)


def narrowed(array: np.ndarray) -> np.ndarray:
    """Numbers as bfloat16: rounded to the nearest one, halves to the even one; NaN stays NaN."""
    wide = np.ascontiguousarray(array, np.float32)
    bits = wide.view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    rounded = np.where(np.isnan(wide), (bits >> 16) | 0x40, rounded)
    return rounded.astype(np.uint16).view(BFLOAT16).reshape(np.shape(array))


def converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array in that dtype as NumPy converts numbers, bfloat16 included; itself where it is of it."""
    if array.dtype == dtype:
        return array
    array = widened(array)
    with np.errstate(all="ignore"):
        return narrowed(array) if dtype == BFLOAT16 else array.astype(dtype, copy=False)


def write(target: np.ndarray, values: np.ndarray) -> None:
    """Write numbers to an array, converted to its dtype and broadcast."""
    if target.dtype == BFLOAT16 or values.dtype == BFLOAT16:
        values = converted(values, target.dtype)
    with np.errstate(all="ignore"):
        np.copyto(target, values, casting="unsafe")


def add(target: np.ndarray, values: np.ndarray) -> None:
    """Add numbers of the array's dtype to it."""
    write(target, widened(target) + widened(values))


def ones(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """A new array of ones."""
    return converted(np.ones(shape, np.float32 if dtype == "bfloat16" else dtype), numpy_dtype(dtype))
