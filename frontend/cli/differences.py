"""How far a compiled value is from what it should be, and whether rounding alone explains it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.cli.tables import Table, print_table, print_text
from mxc.compiler.ops.dtypes import converted, dtype_name, is_number
from mxc.compiler.system import env

if TYPE_CHECKING:
    from mxc.cli.reference import Reference
    from mxc.compiler.graph.graph import Entry

# Relative to the largest value; others are equal.
TOLERANCES = {"float16": 1e-2, "bfloat16": 8e-2, "float32": 1e-4, "float64": 1e-9}
STRICT = 1e-5  # the tolerance for float32 with MXC_STRICT=1
# How many times as much as it changes when every value is rounded otherwise a result may be off by rounding. Of the 18
# saved networks and SE-ResNeXt, those further off than 5e-6 were so by 1.3 times at most; the largest was 8, at 1.6e-6.
AMPLIFIED = 4
OK, ROUNDING, WRONG = "ok", "rounding", "WRONG"


@dataclass(frozen=True)
class Difference:
    """How far an output or a node, `name`, is from what was expected.

    max_abs: the largest difference; infinite where shapes, NaN or infinities differ. max_rel: max_abs over the largest
    expected value. tolerance: for max_rel. demanded: whether the user gave it. values, nan: how many values there are,
    and how many of them are NaN in both.

    Measured where the tolerance does not hold, over the largest expected value: off, expected_off: how far the compiled
    and the expected value are from the reference in float64; swayed: how much that changes when all values are rounded
    otherwise.
    """

    name: str
    operator: str
    max_abs: float
    max_rel: float
    tolerance: float
    demanded: bool = False
    values: int = 0
    nan: int = 0
    off: float | None = None
    expected_off: float | None = None
    swayed: float | None = None

    @property
    def verdict(self) -> str:
        """OK within the tolerance, ROUNDING where it is not but rounding explains it, else WRONG."""
        if self.max_rel <= self.tolerance:
            return OK
        return ROUNDING if self.swayed is not None and self.max_rel <= AMPLIFIED * self.swayed else WRONG

    @property
    def right(self) -> bool:
        """Whether it is as it should be: within a tolerance that was given, or else not WRONG."""
        return self.verdict == OK or (self.verdict == ROUNDING and not self.demanded)

    @property
    def about(self) -> str:
        """What was measured in float64, for people; empty where nothing was."""
        if self.swayed is None:
            return ""
        what = "rounding, amplified" if self.verdict == ROUNDING else "more than rounding"
        return (f"{what}: in float64 mxc is off by {self.off:.1e}, what was expected by {self.expected_off:.1e}; "
                f"rounding every value otherwise changes it by {self.swayed:.1e}")


def compare(name: str, operator: str, value: np.ndarray, expected: np.ndarray, allowed: float | None) -> Difference:
    """The difference of a compiled value from an expected one. allowed: the tolerance; None: that of the dtype."""
    tolerance = allowed
    if tolerance is None:
        dtype = dtype_name(expected.dtype)
        tolerance = STRICT if env.flag("MXC_STRICT") and dtype == "float32" else TOLERANCES.get(dtype, 0.0)
    found = Difference(name, operator, np.inf, np.inf, tolerance, allowed is not None, expected.size)
    if value.shape != expected.shape:
        return found
    a, b = _wide(value), _wide(expected)
    found = replace(found, nan=int((np.isnan(a) & np.isnan(b)).sum()))
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return found
    worst = float(np.abs(a[finite] - b[finite]).max(initial=0))
    return replace(found, max_abs=worst, max_rel=worst / _scale(b))


def judged(name: str, operator: str, value: np.ndarray, reference: Reference, entry: Entry, allowed: float | None,
           expected: np.ndarray | None = None) -> Difference:
    """The difference of a compiled value from the reference's of that entry, or from another expected one; weighed in
    float64 where it is more than the tolerance."""
    expected = reference.values[entry] if expected is None else expected
    found = compare(name, operator, value, expected, allowed)
    if found.verdict == OK or not np.isfinite(found.max_rel) or not is_number(expected.dtype, "f"):
        return found
    exact, scale = reference.exact[entry], _scale(_wide(expected))
    off, expected_off, swayed = (_largest(_wide(each) - exact) / scale
                                 for each in (value, expected, reference.swayed[entry]))
    return replace(found, off=off, expected_off=expected_off, swayed=swayed)


def _wide(values: np.ndarray) -> np.ndarray:
    return converted(values, np.dtype(np.float64))


def _scale(values: np.ndarray) -> float:
    """The largest finite value; 1 where there is none but zeros."""
    return _largest(values) or 1.0


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0))


def as_data(each: Difference) -> dict[str, Any]:
    """A difference for JSON, which has no infinities."""
    return {name: str(value) if value == np.inf else value for name, value in asdict(each).items()} | {
        "verdict": each.verdict, "right": each.right}


def table_of(what: str, found: Sequence[Difference]) -> Table:
    """A table of differences. what: they are of."""
    operators = any(each.operator for each in found)
    columns = (what, *(["operator"] * operators), "max abs", "max rel", "tolerance", "")
    rows = [(each.name, *([each.operator] * operators), f"{each.max_abs:.2e}", f"{each.max_rel:.2e}",
             f"{each.tolerance:.0e}", each.verdict) for each in found]
    return Table(columns, rows, range(len(columns) - 4, len(columns) - 1))


def notes_of(found: Sequence[Difference]) -> list[str]:
    """What else there is to say of differences."""
    notes = []
    for each in found:
        if each.about:
            notes.append(f"{each.name}: {each.about}")
        if each.nan:
            nothing = ", so nothing was compared" if each.nan == each.values else ""
            notes.append(f"{each.name}: {each.nan} of {each.values} values are NaN in both{nothing}")
    return notes


def print_differences(what: str, found: Sequence[Difference]) -> None:
    """A table of differences, and below it what else there is to say of them. what: they are of."""
    print_table(*table_of(what, found))
    for note in notes_of(found):
        print_text(f"note: {note}")
