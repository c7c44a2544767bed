"""Tolerances by dtype, and comparisons of arrays that report where they differ most."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mxc.compiler.ops.dtypes import BFLOAT16, widened
from mxc.ndarray import NDArray

Tolerance = float | Mapping[np.dtype, float] | None
SMALLEST = 1e-20  # in place of a tolerance of 0, since errors are divided by tolerances

_EXACT = dict.fromkeys((np.dtype(n) for n in ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")), 0.0)


def default_rtols() -> dict[np.dtype, float]:
    """The relative tolerance of each dtype."""
    return {np.dtype("float16"): 1e-2, BFLOAT16: 8e-2, np.dtype("float32"): 1e-4, np.dtype("float64"): 1e-5, **_EXACT}


def default_atols() -> dict[np.dtype, float]:
    """The absolute tolerance of each dtype."""
    return {np.dtype("float16"): 1e-1, BFLOAT16: 1e-1, np.dtype("float32"): 1e-3, np.dtype("float64"): SMALLEST,
            **_EXACT}


def default_numeric_eps() -> dict[np.dtype, float]:
    """The step of finite differences for each float dtype: a power of two, so that it adds exactly."""
    return {np.dtype("float16"): 2.0**-6, np.dtype("float32"): 2.0**-9, np.dtype("float64"): 2.0**-14}


def effective_dtype(dat: Any) -> np.dtype:
    """The dtype whose tolerances hold for an array: its own."""
    return np.dtype(dat.dtype)


def get_tolerance(dat: Any, tol: Tolerance, default_tol: Mapping[np.dtype, float]) -> float:
    """The tolerance for an array: `tol` itself, or its entry for the dtype; None: the default's entry. 0 for a number
    without a dtype."""
    if tol is not None and not isinstance(tol, Mapping):
        return tol
    table = default_tol if tol is None else tol
    return table[effective_dtype(dat)] if hasattr(dat, "dtype") else 0


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """(rtol, atol) for comparing two arrays: the larger of what each dtype asks for."""
    return (max(get_tolerance(x, rtol, default_rtols()), get_tolerance(y, rtol, default_rtols())),
            max(get_tolerance(x, atol, default_atols()), get_tolerance(y, atol, default_atols())))


def get_atol(atol: float | None = None, dtype: Any = np.dtype(np.float64)) -> float:  # noqa: B008
    """`atol`, or the default of a dtype when it is None."""
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_rtol(rtol: float | None = None, dtype: Any = np.dtype(np.float64)) -> float:  # noqa: B008
    """`rtol`, or the default of a dtype when it is None."""
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_etol(etol: float | None = None) -> float:
    """The share of elements that may differ: `etol`, or 0 when it is None."""
    return 0 if etol is None else etol


def numpy_of(value: Any) -> np.ndarray:
    """The values of an NDArray, an array, a number or nested lists; those of bfloat16 in float32."""
    return widened(value.asnumpy() if isinstance(value, NDArray) else np.asarray(value))


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have one shape and equal elements."""
    return np.array_equal(numpy_of(a), numpy_of(b))


def almost_equal(a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None, equal_nan: bool = False,
                 use_broadcast: bool = True) -> bool:
    """Whether |a - b| <= atol + rtol * |b| everywhere; see `assert_almost_equal`."""
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = numpy_of(a), numpy_of(b)
    if not use_broadcast:
        checkShapes(a, b)
    return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))


def checkShapes(a: Any, b: Any) -> None:
    """Raise AssertionError unless two arrays have the same shape."""
    if a.shape != b.shape:
        raise AssertionError(f"\nItems are not equal: a.shape = {a.shape} and b.shape = {b.shape} are not equal"
                             f"{_both(a, b)}")


def locationError(a: Any, b: Any, index: tuple[int, ...], names: Sequence[str], maxError: bool = False) -> str:
    """A line that tells where two arrays differ, and their elements there."""
    what = "maximum error" if maxError else "error"
    place = tuple(int(i) for i in index)
    return f"Location of {what}: {place}, {names[0]}={a[index]:.8f}, {names[1]}={b[index]:.8f}"


def assert_almost_equal(a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None,
                        names: Sequence[str] = ("a", "b"), equal_nan: bool = False, use_broadcast: bool = True,
                        mismatches: tuple[int, int] = (10, 10)) -> None:
    """Raise AssertionError unless |a - b| <= atol + rtol * |b| everywhere.

    a, b: NDArrays, arrays or numbers. rtol, atol: numbers, or by dtype; None: the larger of both dtypes' defaults.
    names: what to call the two. use_broadcast: shapes that broadcast are compared so, else they must be equal.
    mismatches: how many of the largest errors are printed (the first number).
    An error is told in tolerances: |a - b| / (atol + rtol * |b|).
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    first, second = numpy_of(a), numpy_of(b)
    if not use_broadcast:
        checkShapes(first, second)
    _compare(first, second, rtol, atol, 0, names, equal_nan, mismatches)


def assert_almost_equal_with_err(a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None,
                                 etol: float | None = None, names: Sequence[str] = ("a", "b"),
                                 equal_nan: bool = False, mismatches: tuple[int, int] = (10, 10)) -> None:
    """As `assert_almost_equal`, but a share of up to `etol` (0 to 1) of the elements may differ."""
    rtol, atol = get_tols(a, b, rtol, atol)
    _compare(numpy_of(a), numpy_of(b), rtol, atol, get_etol(etol), names, equal_nan, mismatches)


def assert_almost_equal_ignore_nan(a: Any, b: Any, rtol: Tolerance = None, atol: Tolerance = None,
                                   names: Sequence[str] = ("a", "b")) -> None:
    """As `assert_almost_equal`, leaving out the elements that are NaN in either array."""
    first, second = numpy_of(a).copy(), numpy_of(b).copy()
    skipped = np.isnan(first) | np.isnan(second)
    first[skipped] = second[skipped] = 0
    assert_almost_equal(first, second, rtol, atol, names)


def assert_allclose(a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True) -> None:
    """`assert_almost_equal` with the tolerances of NumPy's function of this name."""
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_exception(f: Callable[..., object], exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """Raise AssertionError unless f(*args, **kwargs) raises that exception."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{f} did not raise {exception_type.__name__}")


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """`assert_almost_equal` of arrays in nested tuples; where either is None nothing is compared."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple):
        for first, second in zip(t1, t2, strict=True):
            compare_ndarray_tuple(first, second, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def _compare(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, etol: float, names: Sequence[str],
             equal_nan: bool, mismatches: tuple[int, int]) -> None:
    """Raise AssertionError when more than a share of `etol` of the elements differ, after printing where most."""
    wrong = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    share = wrong.mean() if wrong.size else 0
    if share <= etol:
        return
    x, y = np.broadcast_arrays(a, b)
    errors = _errors(x, y, rtol, atol, wrong)
    order = np.argsort(-np.nan_to_num(errors.ravel(), nan=np.inf), kind="stable")
    # NaN cannot be said to be smaller than anything: it leads the list
    order = np.concatenate([order[np.isnan(errors.ravel()[order])], order[~np.isnan(errors.ravel()[order])]])
    places = [np.unravel_index(i, errors.shape) for i in order[:wrong.sum()]]
    tolerances = f"tolerance rtol={rtol:e}, atol={atol:e}"
    if not errors.ndim:
        raise AssertionError(f"\nItems are not equal:\nError {errors[()]:f} exceeds {tolerances}.\n{_both(a, b)}")
    print(f"\n*** Maximum errors for vector of size {errors.size}:  rtol={rtol}, atol={atol}\n")
    for number, place in enumerate(places[:max(mismatches[0], 0)], 1):
        print(f"{number:3}: Error {errors[place]:f}  {locationError(x, y, place, names)}")
    raise AssertionError(f"\nItems are not equal:\nError {errors[places[0]]:f} exceeds {tolerances} "
                         f"(mismatch {100 * share:f}%).\n{locationError(x, y, places[0], names, maxError=True)}"
                         f"{_both(a, b)}")


def _errors(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, wrong: np.ndarray) -> np.ndarray:
    """How many tolerances apart the elements are; 0 where they count as equal."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        return np.where(wrong, np.abs(x - y) / np.maximum(atol + rtol * np.abs(y), SMALLEST), 0)


def _both(a: np.ndarray, b: np.ndarray) -> str:
    with np.printoptions(threshold=4, suppress=True):
        return f"\n ACTUAL: {a!r}\n DESIRED: {b!r}"
