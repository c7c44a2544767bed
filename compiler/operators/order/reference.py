"""The reference of sorting, scans and histograms."""
from __future__ import annotations

import math

import numpy as np

from mxc.compiler.operators.order.shape import count_of
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _order(data: np.ndarray, axis: int, ascending: bool) -> np.ndarray:
    """Places of the numbers along `axis` in order; equal ones by place, NaN last."""
    reversible = data.astype(np.float64) if data.dtype.kind == "f" else data.astype(np.int64)
    return np.argsort(reversible if ascending else -reversible, axis, kind="stable")


def topk(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The k largest numbers (or smallest) along an axis, of all the data for axis None: values and places, or a mask
    that is 1 where they are."""
    data = inputs[0].reshape(-1) if params.axis is None else inputs[0]
    axis = 0 if params.axis is None else params.axis
    k = count_of(params, data.shape[axis])
    assert isinstance(k, int)
    order = _order(data, axis, bool(params.is_ascend)).take(range(k), axis)
    if params.ret_typ == "mask":
        mask = np.zeros(data.shape)
        np.put_along_axis(mask, order, 1, axis)
        return [mask.reshape(inputs[0].shape)]
    values = np.take_along_axis(data, order, axis)
    return [order] if params.ret_typ == "indices" else [values, order]


def sort(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """All numbers along an axis in order, and their places."""
    data = inputs[0].reshape(-1) if params.axis is None else inputs[0]
    axis = 0 if params.axis is None else params.axis
    order = _order(data, axis, bool(params.is_ascend))
    return [np.take_along_axis(data, order, axis), order]


def argsort(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The places that sort along an axis."""
    return sort(params, inputs, is_train, rng)[1:]


def argsort_rows(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                 ) -> list[np.ndarray]:
    """The first k places of each row's order."""
    return [_order(inputs[0], 1, bool(params.is_ascend))[:, :params.k]]


def take_along(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
               ) -> list[np.ndarray]:
    """out[r, j] = data[r, order[r, j]]."""
    return [np.take_along_axis(inputs[0], inputs[1].astype(np.int64), 1)]


def put_along(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """out[r, order[r, j]] = data[r, j], 0 elsewhere."""
    data, order = inputs
    out = np.zeros((len(data), params.n), data.dtype)
    np.put_along_axis(out, order.astype(np.int64), data, 1)
    return [out]


def cumsum(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Running sums along an axis, or of all the data for axis None; computed in the output's dtype."""
    kind = params.dtype or ("int64" if inputs[0].dtype == bool else inputs[0].dtype)
    assert isinstance(kind, (str, np.dtype))
    data = inputs[0].astype(kind)
    axis = None if params.axis is None else int(params.axis)
    return [np.cumsum(data, axis, dtype=data.dtype)]


def cumsum_rows(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                ) -> list[np.ndarray]:
    """Sums along axis 1, of three, in the output's dtype; from the end where `reverse`."""
    step = -1 if params.reverse else 1
    return [cumsum(Params({**params, "axis": 1}), [inputs[0][:, ::step]], is_train, rng)[0][:, ::step]]


def searchsorted_rows(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """How many of each row, which does not fall, are at most each number."""
    data, numbers = inputs
    return [(data[:, :, None] <= numbers[:, None, :]).sum(1, dtype=np.int32)]


def histogram(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Counts between edges, and the edges: given, or equally spaced over `range`."""
    data = inputs[0]
    if params.bin_cnt is None:
        edges = inputs[1]
    else:
        count, (low, high) = params.bin_cnt, params.range
        edges = np.array([(low * (count - i) + high * i) / count for i in range(count + 1)]).astype(data.dtype)
    return [_counts(data, edges), edges]


def histogram_counts(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                     ) -> list[np.ndarray]:
    """Counts between given edges."""
    return [_counts(*inputs)]


def _counts(data: np.ndarray, edges: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(edges) - 1, np.int64)
    for x in data.reshape(-1):
        if not math.isnan(x) and edges[0] <= x <= edges[-1]:
            counts[min(int((edges <= x).sum()), len(counts)) - 1] += 1
    return counts
