"""The reference of operators that read and write at indices."""
from __future__ import annotations

import numpy as np

from mxc.compiler.error import ArgumentIndexError, MXNetError
from mxc.compiler.ops.expr import as_dtype, number_as
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]


def integers(array: np.ndarray, dtype: str = "int64") -> np.ndarray:
    """An index as integers: floats are truncated; NaN and numbers that do not fit become the lowest integer."""
    return as_dtype(array, np.dtype(dtype)).astype("int64", copy=False)


def bounded(index: np.ndarray, size: int, mode: str) -> np.ndarray:
    """Integers brought into 0..size-1: wrapped or clipped."""
    return index % size if mode == "wrap" else np.minimum(np.maximum(index, 0), size - 1)


def checked(index: np.ndarray, low: int, high: int, what: str) -> np.ndarray:
    """`index` itself, as integers. Raises MXNetError where a number, before it is truncated, is not in low..high. Where
    negative ones count from the end that is an ArgumentIndexError, as for MXNet's gather_nd but not for its take."""
    fits = (index >= low) & (index <= high)
    if not fits.all():
        kind = ArgumentIndexError if low < 0 else MXNetError
        raise kind(f"expected indices from {low} to {high} {what}, got {index[~fits].flat[0]}")
    return integers(np.where(index < 0, index + (high + 1), index))


def take(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """NumPy's take with integer indices that are clipped, wrapped or refused."""
    data, indices = inputs
    size = data.shape[params.axis]
    if params.mode == "raise":
        return [np.take(data, checked(indices, 0, size - 1, f"along axis {params.axis}"), params.axis)]
    return [np.take(data, bounded(integers(indices), size, params.mode), params.axis)]


def embedding(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Rows of the weight; indices are clipped."""
    data, weight = inputs
    return [weight[bounded(integers(data), params.input_dim, "clip")]]


def bound_index(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Integers in 0..size-1."""
    return [bounded(integers(inputs[0]), params.size, params.mode)]


def checked_index(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Row-major positions of the indices in the columns; the least allowed is 0, or minus the extent."""
    parts = []
    for axis, (index, extent) in enumerate(zip(inputs[0], params.shape, strict=True)):
        parts.append(checked(index, -extent if params.negative else 0, extent - 1, f"of extent {extent}, row {axis}"))
    return [np.ravel_multi_index(parts, params.shape)]


def flat_index(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Row-major positions of the indices in the columns; -1 for those outside."""
    parts = integers(inputs[0])
    extents = np.reshape(params.shape, (-1,) + (1,) * (parts.ndim - 1))
    inside = ((parts >= 0) & (parts < extents)).all(axis=0)
    flat = np.ravel_multi_index(list(np.where(inside, parts, 0)), params.shape)
    return [np.where(inside, flat, -1)]


def _picked(index: np.ndarray, axis: int, shape: tuple[int, ...], mode: str) -> np.ndarray:
    """pick's index with the axis of extent 1, in range."""
    kept = (*shape[:axis], 1, *shape[axis + 1:])
    return bounded(integers(index, "int32"), shape[axis], mode).reshape(kept)


def pick(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """One element of each line along `axis`."""
    data, index = inputs
    axis = params.axis % data.ndim
    out = np.take_along_axis(data, _picked(index, axis, data.shape, params.mode), axis)
    return [out if params.keepdims or data.ndim == 1 else out.squeeze(axis)]


def unpick(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """What flows in at the index along `axis`, zeros elsewhere."""
    grad = inputs[0] if params.kept else np.expand_dims(inputs[0], params.axis)
    shape = (*grad.shape[:params.axis], params.size, *grad.shape[params.axis + 1:])
    out = np.zeros(shape, grad.dtype)
    np.put_along_axis(out, _picked(inputs[1], params.axis, shape, params.mode), grad, params.axis)
    return [out]


def batch_take(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """One element of each row; indices are clipped."""
    data, indices = inputs
    return [data[np.arange(len(data)), np.clip(indices, 0, data.shape[1] - 1)]]


def one_hot(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """`on_value` at the index, `off_value` elsewhere; an index outside has no place."""
    here = integers(inputs[0], "int32")[..., None] == np.arange(params.depth)
    on, off = (number_as(n, params.dtype) for n in (params.on_value, params.off_value))
    return [np.where(here, on, off)]


def onehot_encode(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """1 at the index, 0 elsewhere; of the second array only the shape counts."""
    return [integers(inputs[0], "int32")[:, None] == np.arange(inputs[1].shape[1])]


def fill_element(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """lhs with one element of each row replaced; an index outside replaces nothing."""
    lhs, mhs, rhs = inputs
    here = integers(rhs, "int32")[:, None] == np.arange(lhs.shape[1])
    return [np.where(here, mhs[:, None], lhs)]


def gather_nd(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The data at the indices that the columns hold; raises MXNetError for one outside."""
    data, indices = inputs
    return [data[tuple(checked(index, -extent, extent - 1, f"along axis {axis}")
                       for axis, (index, extent) in enumerate(zip(indices, data.shape, strict=False)))]]


def _written(base: np.ndarray, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """base with the values at the indices that the columns hold, one after the other."""
    out = base.copy()
    columns = integers(indices).reshape(len(indices), -1)
    values = values.reshape((columns.shape[1], *base.shape[len(indices):]))
    for j, column in enumerate(columns.T):
        if all(0 <= i < extent for i, extent in zip(column, base.shape, strict=False)):
            out[tuple(column)] = values[j]
    return out


def scatter_nd(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Zeros with the data at the indices; the last of several wins, one outside is left out."""
    return [_written(np.zeros(params.shape, inputs[0].dtype), *inputs)]


def scatter_set_nd(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """lhs with rhs at the indices."""
    return [_written(*inputs)]


def index_copy(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Old with rows of new at the indices."""
    old, indices, new = inputs
    return [_written(old, new, indices[None])]


def ravel(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Row-major positions of the columns; nothing is checked."""
    position = np.zeros(inputs[0].shape[1], "int64")
    for part, extent in zip(integers(inputs[0]), params.shape, strict=True):
        position = position * extent + part
    return [position]


def unravel(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Indices of row-major positions, with quotients as in C; the first axis takes what is left."""
    position, parts = integers(inputs[0]), []
    for extent in reversed(params.shape[1:]):
        quotient = np.sign(position) * np.sign(extent) * (abs(position) // max(abs(extent), 1)) * (extent != 0)
        parts.append(position - quotient * extent)
        position = quotient
    return [np.stack([position, *reversed(parts)])]


def scatter_add(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Rows of data added one after the other; an index outside of 0..rows-1 is left out."""
    data, indices = inputs
    out = np.zeros((data.shape[0], params.rows, data.shape[2]), data.dtype)
    for j, row in enumerate(indices.astype(np.int64)):
        if 0 <= row < params.rows:
            out[:, row] += data[:, j]
    return [out]


def scatter_rows(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """Zeros with rows of data at the indices, one after the other; an index outside is left out."""
    data, indices = inputs
    return [_written(np.zeros((params.rows, data.shape[1]), data.dtype), data, indices[None])]


def scatter_set(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """base with rows of data at the indices, one after the other; an index outside is left out."""
    base, data, indices = inputs
    return [_written(base, data, indices[None])]


def count_sketch(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """out[..., h[j]] is the sum of s[j] * data[..., j]"""
    return sketch_of_size(Params({"size": params.out_dim, "backward": False}), inputs, is_train, rng)


def sketch_of_size(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The sketch, or backward s[j] * data[..., h[j]]; places that there are not are left out"""
    data, (places,), (signs,) = inputs[0].astype(np.float64), inputs[1], inputs[2].astype(np.float64)
    out = np.zeros((*data.shape[:-1], params.size))
    for j, (place, sign) in enumerate(zip(places.astype(np.float64), signs, strict=True)):
        if 0 <= place < (data if params.backward else out).shape[-1]:
            if params.backward:
                out[..., j] = sign * data[..., int(place)]
            else:
                out[..., int(place)] += sign * data[..., j]
    return [out]
