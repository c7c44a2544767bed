"""Functions that make arrays: from values and shapes, ranges, and other arrays joined, split or counted."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.compiler.ops import dtypes
from mxc.compiler.ops.storage import DEFAULT
from mxc.compiler.system import opencv
from mxc.ndarray.ndarray import KINDS, NDArray, apply, wrapped
from mxc.ndarray.numpy_protocols import imported, writable
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.context import Context, context_of, current_context
from mxc.runtime.sparse_array import zeros as kept_zeros
from mxc.util import is_np_shape, np_shape

Shape = int | Sequence[int]


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A new array holding a copy of an array, a number or nested lists; a copy of an NDArray is recorded.

    dtype: by default that of an NDArray source, and float32 for every other source, NumPy arrays included. Objects and
    texts become numbers where NumPy can make them of it; None among them is NaN.
    Raises TypeError for anything that makes no array of numbers.
    """
    if isinstance(source_array, NDArray):  # of any storage type, which the copy has too
        copied = source_array.astype(source_array.dtype if dtype is None else dtype)
        return copied.as_in_context(ctx or current_context())
    try:
        values = np.asarray(source_array)
    except ValueError as error:
        raise ArgumentTypeError(f"source_array must be like an array: {error}") from None
    wanted = "float32" if dtype is None else dtype
    if values.dtype.kind in "OSU" and source_array is not None:
        values = _numbers(values, dtype_name(wanted))
    if not dtypes.is_number(values.dtype) and dtypes.dtype_name(values.dtype) != "bfloat16":
        raise ArgumentTypeError(f"source_array must be like an array of numbers, got {type(source_array)} of "
                                f"{values.dtype}; make numbers of it, as .astype('float32') does")
    return NDArray(Array.of(values, wanted, ctx or current_context()))


def _numbers(values: np.ndarray, dtype: str) -> np.ndarray:
    """Objects or texts as numbers, where NumPy can make numbers of them; else raises TypeError."""
    try:
        return dtypes.converted(values, dtypes.numpy_dtype(dtype))
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"source_array is of {values.dtype} and does not become numbers of {dtype}: {error}; "
                                "make numbers of it before, as .astype('float32') does where each element is one or "
                                "None") from None


def from_numpy(ndarray: np.ndarray, zero_copy: bool = True, array_cls: type[NDArray] = NDArray) -> NDArray:
    """An array of the same dtype on the memory of a C-contiguous NumPy array (zero_copy), or a copy of it.

    The NumPy array that is shared becomes read-only, as MXNet makes it: its memory now changes with the array's, which
    can be written to unless NumPy could not make the memory writable either. Anything with `__array_interface__` or
    `__array__` serves as well, and stays as it is. Raises ValueError for memory that cannot be shared or of a dtype
    that arrays do not have; TypeError for such a dtype where it is to be copied.
    """
    values = np.asarray(ndarray)
    if not zero_copy:
        return array_cls(Array.of(values, context=current_context()))
    try:
        memory = writable(values)
        shared = array_cls(Array.sharing(memory, current_context()), writable=memory.flags.writeable)
    except MXNetError as error:
        raise ArgumentError(f"from_numpy: {error}") from None
    if isinstance(ndarray, np.ndarray):
        ndarray.flags.writeable = False
    return shared


def from_dlpack(dlpack: Any) -> NDArray:
    """An array on the memory of a DLPack capsule, or of an object that makes one (`__dlpack__`), not copied: of the CPU
    or of a GPU. Raises ValueError for memory that is not contiguous, or is another device's."""
    memory = imported(dlpack)
    return NDArray(memory) if isinstance(memory, Array) else from_numpy(memory)


def to_dlpack_for_read(data: NDArray) -> Any:
    """A DLPack capsule on an array's memory, after all pending writes are done."""
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """A DLPack capsule for writing to an array's memory, after all pending work on it is done."""
    return data.to_dlpack_for_write()


def empty(shape: Shape, ctx: Context | None = None, dtype: Any = None, stype: str | None = None) -> NDArray:
    """A new array whose elements are arbitrary; one that is kept in parts (stype "row_sparse", "csr") stores none."""
    if stype not in (None, DEFAULT):
        return kept(stype, shape, ctx, dtype)
    dims = _extents(shape)
    return NDArray(Array.empty(dims, "float32" if dtype is None else dtype, ctx or current_context()))


def create(shape: Shape, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """The same as `empty`, as early programs write it."""
    return empty(shape, ctx, dtype)


def full(shape: Shape, val: float, ctx: Context | None = None, dtype: Any = np.float32,
         out: NDArray | None = None) -> NDArray:
    """A new array of one value (or `out`, filled with it); `val` may be an array that is broadcast."""
    if out is None and not _extents(shape) and not is_np_shape():
        raise _incomplete(shape)
    made = out if out is not None else empty(shape, ctx, dtype)
    made[:] = val
    return made


def zeros(shape: Shape, ctx: Context | None = None, dtype: Any = None, stype: str | None = None,
          **kwargs: Any) -> NDArray:
    """A new array of zeros, of a storage type ("default", "row_sparse", "csr"). kwargs: `out`, an array that is filled
    instead."""
    if stype not in (None, DEFAULT):
        return kept(stype, shape, ctx, dtype)
    return _constant("_zeros", 0, shape, ctx, dtype, kwargs)


def ones(shape: Shape, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """A new array of ones. kwargs: `out`, an array that is filled instead."""
    return _constant("_ones", 1, shape, ctx, dtype, kwargs)


def arange(start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1,
           infer_range: bool | None = None, ctx: Context | None = None, dtype: Any = np.float32) -> NDArray:
    """start, start + step, ... before stop (0 to start when stop is None), each `repeat` times.

    infer_range: only symbols take their length from where they are used; accepted and not used.
    """
    return _made("_arange", {"start": start, "stop": stop, "step": step, "repeat": repeat}, ctx, dtype, {})


def linspace(start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None,
             dtype: Any = np.float32) -> NDArray:
    """`num` values in equal steps from start to stop (included when `endpoint`)."""
    if num == 0:
        return empty((0,), ctx, dtype)
    return _made("_linspace", {"start": start, "stop": stop, "num": num, "endpoint": endpoint}, ctx, dtype, {})


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: Any = None, **kwargs: Any) -> NDArray:
    """An N x M array (M = 0: N x N), one on the k-th diagonal, else zero. kwargs: `out`."""
    return _made("_eye", {"N": N, "M": M, "k": k}, ctx, dtype, kwargs)


def _extents(shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple. Raises TypeError for anything else."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    try:
        return tuple(shape)
    except TypeError:
        raise ArgumentTypeError(f"a shape is an integer or a tuple of integers, got {shape!r}") from None


def _constant(op: str, val: float, shape: Shape, ctx: Context | None, dtype: Any, kwargs: dict[str, Any]) -> NDArray:
    """The array that a creation operator makes of a shape. Where NumPy's shape semantics hold, the shape may have
    extents of 0 or no axes.

    Elsewhere raises MXNetError for these: shape inference takes them for "unknown".
    """
    dims = _extents(shape)
    if any(isinstance(dim, (int, np.integer)) and dim < 0 for dim in dims):
        raise MXNetError(f"the shape {dims} has a negative dimension")
    if dims and 0 not in dims:
        return _made(op, {"shape": shape}, ctx, dtype, kwargs)
    if is_np_shape():
        return full(shape, val, ctx, dtype, kwargs.get("out"))
    raise _incomplete(shape)


def _incomplete(shape: Shape) -> MXNetError:
    return MXNetError(f"the shape {shape} is not complete: 0 and no dimensions mean \"unknown\"; use mx.nd.array([]) "
                      "for an empty array, or the scope mx.np_shape()")


def _made(op: str, params: dict[str, Any], ctx: Context | None, dtype: Any, kwargs: dict[str, Any]) -> NDArray:
    """The array that an operator without inputs makes. kwargs: out and name. Raises TypeError for other keywords."""
    out = kwargs.pop("out", None)
    kwargs.pop("name", None)
    if kwargs:
        raise ArgumentTypeError(f"{op.lstrip('_')}() got an unexpected argument {', '.join(map(repr, kwargs))}")
    where = current_context() if ctx is None else context_of(ctx)
    kind = dtype_name("float32" if dtype is None else dtype)
    return apply(op, [], {**params, "dtype": kind}, out, where)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """The arrays, joined along an axis. A single array is given back itself when `always_copy` is False.

    Raises ValueError for no arrays or several dtypes, MXNetError for shapes that do not fit.
    """
    if not arrays or not all(isinstance(a, NDArray) for a in arrays):
        raise ArgumentError("concatenate needs a list of at least one NDArray")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    if len({a.dtype for a in arrays}) > 1:
        raise ArgumentError("concatenate: the arrays have the dtypes "
                            f"{', '.join(dtype_name(a.dtype) for a in arrays)}; use astype to make them one")
    with np_shape():  # Arrays without elements may be joined in every scope.
        return apply("Concat", arrays, {"dim": axis})


def moveaxis(tensor: NDArray, source: int | Sequence[int], destination: int | Sequence[int]) -> NDArray:
    """A copy with the axes at `source` moved to `destination`, the others in their order.

    Raises ValueError for axes that do not exist or are named twice, and where the two are not equally many.
    """
    moved, places = _axes("source", source, tensor.ndim), _axes("destination", destination, tensor.ndim)
    if len(moved) != len(places):
        raise ArgumentError(f"moveaxis: `source` has {len(moved)} axes, `destination` {len(places)}")
    order = [a for a in range(tensor.ndim) if a not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return apply("transpose", [tensor], {"axes": tuple(order)})


def _axes(name: str, value: int | Sequence[int], count: int) -> list[int]:
    given = [value] if isinstance(value, (int, np.integer)) else list(value)
    found = [int(a) + count if a < 0 else int(a) for a in given]
    if any(not 0 <= a < count for a in found) or len(set(found)) < len(found):
        raise ArgumentError(f"moveaxis: `{name}` is {value}; expected different axes from {-count} to {count - 1}")
    return found


def histogram(a: NDArray, bins: int | NDArray = 10, range: tuple[float, float] | None = None) -> Sequence[NDArray]:
    """Counts of `bins` bins over `range` (by default from the least to the largest element), and their edges.

    bins: an array gives the edges themselves. Raises ValueError for bins that are neither.
    """
    if isinstance(bins, NDArray):
        return apply("_histogram", [a, bins], {})
    if not isinstance(bins, (int, np.integer)):
        raise ArgumentError(f"histogram: bins must be a whole number or an NDArray, got {type(bins)}")
    if range is not None:
        return apply("_histogram", [a], {"bin_cnt": bins, "range": range})
    counts, edges = np.histogram(a.asnumpy(), bins=bins)  # MXNet too gives both results in the default dtype.
    return array(counts, a.context), array(edges, a.context)


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """`out`, a matrix, with 1 in each row at the index of that row, else 0."""
    return apply("_onehot_encode", [indices, out], {}, out)


def split_v2(ary: NDArray, indices_or_sections: int | Sequence[int], axis: int = 0,
             squeeze_axis: bool = False) -> NDArray | list[NDArray]:
    """`ary` cut along `axis` into so many equal parts, or before each of a tuple of indices.

    squeeze_axis: drop the axis, which must have length 1 in every part. Raises ValueError where the parts would not be
    equal, and for anything but a number or a tuple.
    """
    if isinstance(indices_or_sections, (int, np.integer)):
        sections, length = int(indices_or_sections), ary.shape[axis]
        if sections < 1 or length % sections:
            raise ArgumentError(f"an axis of length {length} cannot be split into {sections} equal parts")
        return apply("_split_v2", [ary], {"indices": (), "axis": axis, "squeeze_axis": squeeze_axis,
                                          "sections": sections})
    if not isinstance(indices_or_sections, tuple):
        raise ArgumentError("indices_or_sections must be a number of parts or a tuple of indices, got "
                            f"{indices_or_sections!r}")
    return apply("_split_v2", [ary], {"indices": (0, *indices_or_sections), "axis": axis,
                                      "squeeze_axis": squeeze_axis, "sections": 0})


def imdecode(str_img: bytes, clip_rect: tuple[int, int, int, int] = (0, 0, 0, 0), out: NDArray | None = None,
             index: int = 0, channels: int = 3, mean: NDArray | None = None) -> NDArray:
    """The pixels of an encoded image (JPEG, PNG, ...), float32 of shape (1, channels, height, width).

    clip_rect: (left, top, right, bottom) of the part that is taken; all 0 for the whole. channels: 3 for colours in the
    order red, green, blue, 1 for grey. mean: subtracted. out: a batch, whose element `index` is written.
    Raises ValueError for other channels, MXNetError for bytes that are no image, a part that is not inside of it, and
    without OpenCV.
    """
    if channels not in (1, 3):
        raise ArgumentError(f"imdecode: channels must be 1 or 3, got {channels}")
    image = opencv.decoded(str_img, 0 if channels == 1 else 1, to_rgb=True, as_stored=True)
    height, width = image.shape[:2]
    left, top, right, bottom = clip_rect if any(clip_rect) else (0, 0, width, height)
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        raise MXNetError(f"imdecode: clip_rect is (left, top, right, bottom) of a part of an image of {width} x "
                         f"{height} pixels, got {tuple(clip_rect)}")
    pixels = image.reshape(height, width, channels)[top:bottom, left:right].transpose(2, 0, 1).astype(np.float32)
    made = array(pixels[None])
    if mean is not None:
        made -= mean.reshape((1, *mean.shape[-3:]))
    if out is None:
        return made
    target = out if out.ndim == 3 else out[index]
    target[:] = made[0]
    return out


def kept(stype: str, shape: Shape, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """A new array of a storage type that stores no elements. Raises ValueError for another storage type."""
    if stype not in KINDS:
        raise ArgumentError(f"unknown storage type {stype!r}; expected one of {', '.join(KINDS)}")
    return wrapped(kept_zeros(stype, _extents(shape), "float32" if dtype is None else dtype, ctx or current_context()))
