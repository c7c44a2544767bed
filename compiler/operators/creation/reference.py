"""The reference of operators that make arrays from numbers and shapes."""
from __future__ import annotations

import numpy as np

from mxc.compiler.operators.creation import shape as shapes
from mxc.compiler.operators.creation.shape import arange_length, index_axes
from mxc.compiler.ops.expr import as_dtype, number_as
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws

Arrays = list[np.ndarray]


def arange(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """start, start + step, ...; each `repeat` times. start and step are cast to the dtype first, as MXNet does."""
    start, stop, step, repeat = (params[k] for k in ("start", "stop", "step", "repeat"))
    count = arange_length(params)
    assert count is not None and isinstance(repeat, int)
    dtype = np.dtype(str(params["dtype"]))
    first, each = (np.asarray(number_as(float(v), dtype.name), dtype)  # type: ignore[arg-type]
                   for v in (0.0 if stop is None else start, step))
    return [first + each * as_dtype(np.arange(count) // repeat, dtype)]


def shape_array(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The extents."""
    return [np.array(inputs[0].shape, "int64")]


def size_array(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """The number of elements."""
    return [np.array([inputs[0].size], "int64")]


def index_array(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """For each element its index along each of `axes`."""
    axes = index_axes(params, inputs[0].ndim)
    return [np.moveaxis(np.indices(inputs[0].shape)[list(axes)], 0, -1)]


def arange_like(params: Params, inputs: Arrays, is_train: bool, rng: Draws) -> Arrays:
    """start, start + step, ...; each `repeat` times; start and step are cast to the data's dtype first."""
    shape = shapes.arange_like(params, [inputs[0].shape], [None])[1][0]
    assert shape is not None
    dtype = inputs[0].dtype
    first, each = (np.asarray(number_as(v, dtype.name), dtype) for v in (params.start, params.step))
    count = np.arange(np.prod(shape)) // params.repeat
    return [(first + each * as_dtype(count, dtype)).reshape(shape)]


def eye(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Ones on the k-th diagonal."""
    return [np.eye(params.N, params.M if params.M > 0 else params.N, params.k)]


def linspace(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """num numbers from start to stop, which is the last of them with `endpoint`."""
    steps = params.num - 1 if params.endpoint else params.num
    if not steps:
        return [np.full(params.num, params.start)]
    return [params.start + np.arange(params.num) * ((params.stop - params.start) / steps)]
