"""Functions that make symbols without operator functions of the same form: constants, ranges, splits, histograms."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mxc.compiler.error import ArgumentError
from mxc.compiler.ops import table
from mxc.symbol import construct

if TYPE_CHECKING:
    from mxc.symbol.symbol import Symbol


def _make(op: str, inputs: dict[str, Symbol], attrs: dict[str, Any], name: str | None = None,
          attr: dict[str, str] | None = None, **kwargs: Any) -> Symbol:
    """`op` applied; kwargs: further attributes, which the operator refuses unless they are `__x__`."""
    return construct.apply(table.get(op), op, inputs, {**attrs, **kwargs}, name, attr)


def zeros(shape: int | Sequence[int], dtype: Any = None, **kwargs: Any) -> Symbol:
    """Zeros of `shape`. -1 is a dimension that inference completes, and so is 0 out of the scope `np_shape`.

    dtype: float32 unless given. kwargs: name, attr.
    """
    return _make("_zeros", {}, {"shape": shape, "dtype": dtype or "float32"}, **kwargs)


def ones(shape: int | Sequence[int], dtype: Any = None, **kwargs: Any) -> Symbol:
    """Ones of `shape`. dtype: float32 unless given. kwargs: name, attr."""
    return _make("_ones", {}, {"shape": shape, "dtype": dtype or "float32"}, **kwargs)


def full(shape: int | Sequence[int], val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """`val` in every element of `shape`. dtype: float32 unless given. kwargs: name, attr."""
    return _make("_full", {}, {"shape": shape, "dtype": dtype or "float32", "value": float(val)}, **kwargs)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1, infer_range: bool = False,
           name: str | None = None, dtype: Any = None) -> Symbol:
    """start, start + step, ... below `stop`, each `repeat` times; with one number it is the end and 0 the start.

    infer_range: take the length from what the result is used with. dtype: float32 unless given.
    """
    return _make("_arange", {}, {"start": start, "stop": stop, "step": step, "repeat": repeat,
                                 "infer_range": infer_range, "dtype": dtype or "float32"}, name)


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """N rows, M columns (0: as many as rows) with ones on the k-th diagonal. dtype: float32 unless given."""
    return _make("_eye", {}, {"N": N, "M": M, "k": k, "dtype": dtype or "float32"}, **kwargs)


def linspace(start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None,
             dtype: Any = None) -> Symbol:
    """`num` evenly spaced numbers from `start` to `stop`, which is the last unless `endpoint` is False."""
    return _make("_linspace", {}, {"start": start, "stop": stop, "num": num, "endpoint": endpoint,
                                   "dtype": dtype or "float32"}, name)


def histogram(a: Symbol, bins: int | Symbol = 10, range: tuple[float, float] | None = None, **kwargs: Any) -> Symbol:
    """Counts and edges of `bins` bins over `range`; or of the bins whose edges the symbol `bins` gives.

    Raises ValueError for a number of bins without a range, and for bins that are neither.
    """
    from mxc.symbol.symbol import Symbol

    if isinstance(bins, Symbol):
        return _make("_histogram", {"data": a, "bins": bins}, {}, **kwargs)
    if not isinstance(bins, (int, np.integer)):
        raise ArgumentError(f"histogram: bins must be a whole number or a symbol, got {type(bins)}")
    if range is None:
        raise ArgumentError("histogram: `range` must be given with a number of bins: a symbol has no values to take "
                            "it from")
    return _make("_histogram", {"data": a}, {"bin_cnt": bins, "range": range}, **kwargs)


def split_v2(ary: Symbol, indices_or_sections: int | Sequence[int], axis: int = 0,
             squeeze_axis: bool = False) -> Symbol:
    """`ary` cut along `axis` into so many equal parts, or before each of the given indices.

    squeeze_axis: drop the axis, which must have length 1 in every part. Raises ValueError for anything but a positive
    number or a tuple.
    """
    if isinstance(indices_or_sections, int) and indices_or_sections > 0:
        indices, sections = [], indices_or_sections
    elif isinstance(indices_or_sections, tuple):
        indices, sections = [0, *indices_or_sections], 0
    else:
        raise ArgumentError("indices_or_sections must be a number of parts from 1 on, or a tuple of indices, got "
                            f"{indices_or_sections!r}")
    return _make("_split_v2", {"data": ary}, {"indices": indices, "axis": axis, "squeeze_axis": squeeze_axis,
                                              "sections": sections})
