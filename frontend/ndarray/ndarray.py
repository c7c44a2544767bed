"""NDArray: the array that users hold."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mxc import mixed_precision
from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError
from mxc.compiler.ops import dtypes
from mxc.compiler.ops.storage import DEFAULT
from mxc.ndarray import gradients, indexing, mixed
from mxc.ndarray.arithmetic import Arithmetic
from mxc.ndarray.gradients import Differentiable
from mxc.ndarray.methods import OperatorMethods
from mxc.ndarray.numpy_protocols import NumpyProtocols
from mxc.runtime import invoke, tape
from mxc.runtime.array import Array, dtype_name
from mxc.runtime.context import Context
from mxc.runtime.device_copy import record_copy
from mxc.runtime.elsewhere import elsewhere
from mxc.runtime.sparse_array import of_given
from mxc.util import is_np_shape

CODES = "_DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _GRAD_REQ_MAP"  # private names that `import *` binds, also from mx.nd
__getattr__, _names = elsewhere(__name__, {"mxc.ndarray": """
    add arange concatenate divide equal eye from_dlpack from_numpy full get_indexing_dispatch_code
    get_oshape_of_gather_nd_op greater greater_equal histogram imdecode indexing_key_expand_implicit_axes lesser
    lesser_equal linspace logical_and logical_or logical_xor maximum minimum modulo moveaxis multiply not_equal
    onehot_encode ones power split_v2 subtract to_dlpack_for_read to_dlpack_for_write true_divide waitall zeros""",
    "mxc.codes": CODES}, {
    "": "_internal=mxc.ndarray._internal ctypes op=mxc.ndarray.op operator", "array": "native_array=array",
    "builtins": "py_slice=slice", "functools": "reduce", "mxc.context": "current_context", "mxc.ndarray": "array empty",
    "mxc.base": "DLPackHandle NDArrayHandle _LIB c_array c_array_buf c_handle_array c_str check_call ctypes2buffer "
                "integer_types mx_int mx_int64 mx_real_t mx_uint numeric_types",
    "mxc.codes": "_NDARRAY_ADVANCED_INDEXING _NDARRAY_BASIC_INDEXING _NDARRAY_EMPTY_TUPLE_INDEXING "
                 "_NDARRAY_UNSUPPORTED_INDEXING _SIGNED_INT32_UPPER_LIMIT _STORAGE_TYPE_CSR "
                 "_STORAGE_TYPE_DEFAULT _STORAGE_TYPE_ID_TO_STR _STORAGE_TYPE_ROW_SPARSE _STORAGE_TYPE_STR_TO_ID "
                 "_STORAGE_TYPE_UNDEFINED _int64_enabled",
    "mxc.ndarray.ndarray": "NDArrayBase=NDArray", "mxc.runtime": "Features", "mxc.util": "is_np_array"})
__all__ = ["NDArray", *CODES.split(), *_names]


class NDArray(Arithmetic, Differentiable, OperatorMethods, NumpyProtocols):
    """An n-dimensional array on a device.

    Made by `mx.nd.array`, `zeros`, ... or by operators. `reshape` and contiguous slices share memory with the array
    that they come from.
    """

    __slots__ = ("__weakref__", "_array", "writable")

    def __init__(self, array: Array, writable: bool = True):
        self._array, self.writable = array, writable

    # -- what it is

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> Any:
        """NumPy's scalar type, as `numpy.float32`; of bfloat16 `numpy.dtype([("bfloat16", numpy.uint16)])`."""
        dtype = self._array.layout.dtype
        return dtype if dtype.names else dtype.type

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def ndim(self) -> int:
        return len(self._array.shape)

    @property
    def context(self) -> Context:
        return self._array.context

    ctx = context

    @property
    def stype(self) -> str:
        """The storage type: "default", which is dense, "row_sparse" or "csr"."""
        return self._array.stype

    @property
    def T(self) -> NDArray:
        """A copy with the axes reversed; the array itself where it has one axis."""
        return self if len(self.shape) < 2 else self._apply("transpose")

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"\n{dtypes.widened(self.asnumpy())!s}\n<{type(self).__name__} {shape} @{self.context}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return bool(self.size) and bool(self.asscalar())

    __nonzero__ = __bool__  # Python 2's name, which old programs call

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __iter__(self) -> Iterator[NDArray]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple:
        return _restore, (self.asnumpy(), self.context)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take MXNet's pickled state: the array's bytes, as `handle`. mxc's pickles have none. The array is on the CPU.
        Raises ModelFileError for other bytes."""
        from mxc.runtime import ndarray_file

        self._array = of_given(ndarray_file.parse_array(bytes(state["handle"]), "a pickled NDArray"))

    # -- values

    def asnumpy(self) -> np.ndarray:
        """A NumPy copy, after all pending writes are done. Of bfloat16 it has the bits, as MXNet's:
        `x.astype("float32").asnumpy()` has numbers."""
        return self._array.numpy()

    def asscalar(self) -> Any:
        """The only element, as a NumPy scalar, of bfloat16 as float32. Raises ValueError where there are others."""
        if self.size != 1:
            raise ValueError(f"the array of shape {self.shape} is not a scalar: it has {self.size} elements, not 1")
        return dtypes.widened(self.asnumpy()).reshape(-1)[0]

    def wait_to_read(self) -> None:
        """Return when pending writes to this array are done; raises what they raised."""
        self._array.wait()

    wait = wait_to_read  # the name that early programs use

    # -- copies

    def copy(self) -> NDArray:
        """A copy on the same device."""
        return self.copyto(self.context)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into an array of the same shape (cast to its dtype), or into a new array on a device; the target.

        Raises MXNetError when the shapes differ, TypeError for another kind of target.
        """
        if isinstance(other, Context):
            return wrapped(record_copy(self._array, self._array.copied(context=other)))
        if not isinstance(other, NDArray):
            raise TypeError(f"copyto takes an NDArray or a Context, not {type(other)}")
        if other._array is self._array:
            warnings.warn("an array was copied to itself", RuntimeWarning, stacklevel=2)
            return other
        other._check_writable()
        target = other._array
        if tape.state.recording:
            tape.check_writes("_copyto", [target], [self._array])
            if target.context.gpu_number != self._array.context.gpu_number:
                source = self.astype(target.dtype, copy=False)._array  # on its own device, as its gradient is
                target.copy_from(source)
                record_copy(source, target)
                return other
        target.copy_from(self._array)
        tape.record_view("Cast", {"dtype": target.dtype}, self._array, target)
        return other

    def as_in_context(self, context: Context) -> NDArray:
        """This array when it is on that device, else a copy there."""
        return self if context == self.context else self.copyto(context)

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """A copy of another dtype (float32 for None); with copy=False the array itself where it has that dtype."""
        name = dtype_name("float32" if dtype is None else dtype)
        if not copy and name == self._array.dtype:
            return self
        made = self._array.copied(name)
        return wrapped(tape.record_view("Cast", {"dtype": name}, self._array, made))

    def detach(self) -> NDArray:
        """An array on the same memory that takes no part in recording gradients."""
        return wrapped(self._array.reshape(self.shape), self.writable)

    def tostype(self, stype: str) -> NDArray:
        """A copy in a storage type: "default" (dense), "row_sparse" or "csr"; for "default" the array itself, where it
        is dense. Raises MXNetError for another name, and where the array is no matrix, as csr arrays are."""
        return self if stype == self.stype == DEFAULT else self._apply("cast_storage", stype=stype)

    # -- shapes

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """The elements in another shape, sharing memory; the codes 0, -1, -2, -3 and -4 as in the operator Reshape.

        The shape is given as one tuple, as numbers, or as `shape=`; `reverse=True` matches the codes from the right.
        Under NumPy's shape semantics an element can have the shape (). Raises ValueError when the shape does not fit
        the number of elements.
        """
        if kwargs.keys() - {"shape", "reverse"}:
            raise ArgumentTypeError(f"reshape takes the shape and reverse, not {', '.join(kwargs)}")
        wanted = shape[0] if len(shape) == 1 else shape or kwargs.get("shape", ())
        wanted = (wanted,) if isinstance(wanted, (int, np.integer)) else tuple(wanted)
        if not wanted and not (shape and is_np_shape()):
            raise ArgumentError(f"reshape needs the new shape of an array of {self.size} elements, got none")
        target = wanted
        if not self.size and is_np_shape():
            target = tuple(self.shape[i] if n == 0 and i < self.ndim else n for i, n in enumerate(wanted))
        elif any(n <= 0 for n in wanted):
            try:
                target = invoke.reshaped(self.shape, wanted, bool(kwargs.get("reverse", False)))
            except MXNetError as error:
                raise ArgumentError(str(error)) from None
        return self._shared(target)

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """The array with a new axis of extent 1 before `axis`: a copy, or with inplace an array on the same memory."""
        if not inplace:
            return self._apply("expand_dims", axis=axis)
        place = axis + self.ndim + 1 if axis < 0 else axis
        if not 0 <= place <= self.ndim:
            raise ArgumentError(f"axis {axis} is not from {-self.ndim - 1} to {self.ndim}")
        return self._shared((*self.shape[:place], 1, *self.shape[place:]))

    def flatten(self, inplace: bool = False) -> NDArray:
        """The array with all axes but the first merged: a copy, or with inplace an array on the same memory."""
        return self._shared((self.shape[0], -1)) if inplace else self._apply("Flatten")

    def squeeze(self, axis: Any = None, inplace: bool = False) -> NDArray:
        """The array without its axes of extent 1 (or without those named): a copy, or with inplace an array on the same
        memory."""
        if not inplace:
            return self._apply("squeeze", axis=axis)
        axis = None if isinstance(axis, (list, tuple)) and not axis else axis  # MXNet does so with inplace only.
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, (int, np.integer)) else axis
        gone = {a + self.ndim if a < 0 else a for a in axes if axis is not None or self.shape[a] == 1}
        if any(not 0 <= a < self.ndim or self.shape[a] != 1 for a in gone):
            raise ArgumentError(f"only axes of extent 1 can be left out; the shape is {self.shape}, axis is {axis}")
        return self._shared([n for a, n in enumerate(self.shape) if a not in gone] or (1,))

    def _shared(self, shape: Sequence[int]) -> NDArray:
        """The same elements in another shape, sharing memory."""
        known = -math.prod(shape) if -1 in shape else 0
        if known > 0 and self.size % known == 0:
            shape = [self.size // known if n == -1 else n for n in shape]
        if math.prod(shape) != self.size or any(n < 0 for n in shape):
            raise ArgumentError(f"cannot reshape an array of {self.size} elements (shape {self.shape}) into "
                                f"{tuple(shape)}")
        return NDArray(gradients.record_reshape(self._array, self._array.reshape(shape)), self.writable)

    # -- elements

    def __getitem__(self, key: Any) -> NDArray:
        """The elements under `key`: integers, slices, None, Ellipsis, lists and arrays of indices, or a tuple of these.

        Integers and slices share memory where the elements lie contiguously; one element has the shape (1,), or ()
        under NumPy's shape semantics (`mx.np_shape`).
        Raises IndexError for an index out of range or too many of them, ValueError for what is no key.
        """
        return NDArray(gradients.record_selection(self._array, key, indexing.select(self._array, key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a number, array or nested list, cast and broadcast, to the elements under `key`.

        Raises as reading does, TypeError for a value of no numbers, ValueError when the shapes do not fit.
        """
        self._check_writable()
        if tape.state.recording:
            if gradients.is_whole(key) and isinstance(value, NDArray):
                (value if value.shape == self.shape else value.broadcast_to(self.shape)).copyto(self)
                return
            gradients.check_assignment(self._array, key, value)
        indexing.assign(self._array, key, value)

    def _wrapped(self, array: Array) -> NDArray:
        return wrapped(array)

    def _check_writable(self) -> None:
        if not self.writable:
            raise ValueError("trying to write to a read-only NDArray")

    # -- operators

    def _apply(self, op: str, *others: NDArray, out: NDArray | None = None, **params: Any) -> Any:
        return apply(op, [self, *others], params, out)


def apply(op: str, arrays: Sequence[NDArray], params: Mapping[str, Any], out: Any = None,
          context: Context | None = None, run: Callable[..., list[Array]] = invoke.invoke) -> Any:
    """An operator's visible output on arrays, or the list of them where there are several; `out` when it is given.

    out: an array, or a list of them, that the results are written to. context: the device of results without an input.
    run: what computes it.
    Raises MXNetError when the arrays do not fit the operator.
    """
    if mixed_precision.rules is not None and run is invoke.invoke:
        name = mixed_precision.main_name(op)
        params = mixed.scaled(mixed_precision.rules, name, params)
        cast = mixed.cast(mixed_precision.rules, name, arrays, params, apply)
        if out is not None and cast is not arrays:  # The results' dtypes may be others than those of `out`.
            return _copied(apply(op, cast, params, None, context), out)
        arrays = cast
    inputs = [a._array for a in arrays]
    outs = None if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
    for result in outs or ():
        if not isinstance(result, NDArray):
            raise ArgumentTypeError(f"operator {op}: out must be an NDArray, got {type(result)}")
        result._check_writable()
    results = run(op, inputs, params, None if outs is None else [o._array for o in outs], context)
    made = [NDArray(r) if r.__class__ is Array else wrapped(r) for r in results] if outs is None else outs
    return made[0] if len(made) == 1 else made


KINDS: dict[str, type[NDArray]] = {DEFAULT: NDArray}  # the class of each storage type; sparse.py adds its own


def wrapped(array: Array, writable: bool = True) -> NDArray:
    """The NDArray on an array, of its storage type's class."""
    return KINDS[array.stype](array, writable)


def _copied(results: Any, out: Any) -> Any:
    """Results in the arrays that they are to be written to, in their dtypes."""
    made, targets = ([each] if isinstance(each, NDArray) else list(each) for each in (results, out))
    for result, target in zip(made, targets, strict=False):
        result.copyto(target)
    return out


def _restore(values: np.ndarray, context: Context) -> NDArray:
    """Make an array again of what its pickle holds."""
    return NDArray(Array.of(values, context=context))
