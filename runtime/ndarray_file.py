"""The `.params` format (`nd.save`): a list of arrays, with or without names. Read in all its versions; written as V2,
and in the scope `np_shape` as V3, which MXNet reads there alone.

Little-endian. u64 0x112, u64 reserved, u64 count, the arrays, u64 name count (0, or the count), then each name as
u64 length and bytes. An array begins with a word that tells its version:

  V0  the word is the number of dimensions itself, then u32 dims
  V1  0xF993FAC8, i32 number of dimensions, i64 dims
  V2  0xF993FAC9, i32 storage type (0 dense, 1 row_sparse, 2 csr), sparse: shape of the stored values; shape as V1
  V3  0xF993FACA, as V2, but shapes without dimensions are scalars (before V3 such an array is an empty slot and ends
      there)

then i32 device type, i32 device number, i32 element type; sparse: type and shape of each index array; the elements; the
elements of the index arrays. Sparse arrays are read and written as parts (compiler/ops/storage.py).
"""
from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping, Sequence

import numpy as np

from mxc.compiler.error import ModelFileError, MXNetError
from mxc.compiler.ops.dtypes import dtype_name, numpy_dtype
from mxc.compiler.ops.storage import CSR, INDEX, STORAGES, Csr, Given, Parts, Rows, stype_of
from mxc.compiler.system import input_files
from mxc.runtime.array import semantics
from mxc.runtime.whole_file import replacing

LIST_MAGIC = 0x112
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
TYPES = {0: "float32", 1: "float64", 2: "float16", 3: "uint8", 4: "int32", 5: "int8", 6: "int64", 7: "bool",
         12: "bfloat16"}
_FLAGS = {name: flag for flag, name in TYPES.items()}
_DEVICES = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
MAX_DIMENSIONS = 32
_MOST_ELEMENTS = 1 << 60


def own_name(key: str) -> str:
    """The name of a parameter without the mark, `arg:` or `aux:`, that a checkpoint's file puts before it."""
    return key[4:] if key.startswith(("arg:", "aux:")) else key


class _Reader:
    """A position in the bytes of a file, and what is being read there, for messages."""

    def __init__(self, data: bytes | memoryview, path: str):
        self.data, self.path, self.offset, self.what = memoryview(data), path, 0, "the header"

    @property
    def left(self) -> int:
        return len(self.data) - self.offset

    def fail(self, reason: str, offset: int | None = None) -> ModelFileError:
        return ModelFileError(self.path, f"{self.what}: {reason}", self.offset if offset is None else offset)

    def take(self, nbytes: int, field: str) -> memoryview:
        """The next `nbytes`; the size is checked before anything is made of it."""
        if nbytes > self.left:
            raise self.fail(f"expected {nbytes} bytes of {field}, but {self.left} are left: the file has "
                            f"{len(self.data)} bytes and needs at least {self.offset + nbytes}; it was cut off or is "
                            "not a parameter file")
        piece = self.data[self.offset:self.offset + nbytes]
        self.offset += nbytes
        return piece

    def number(self, code: str, field: str) -> int:
        """One integer: "I" u32, "i" i32, "q" i64, "Q" u64."""
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code), field))[0]

    def count(self, code: str, field: str, item_bytes: int) -> int:
        """A number of items that take at least `item_bytes` each in the bytes that follow."""
        at = self.offset
        count = self.number(code, field)
        if count < 0 or count * item_bytes > self.left:
            raise self.fail(f"{field} is {count}, but only {self.left} bytes follow (each takes {item_bytes} or more); "
                            "the file was cut off or is damaged", at)
        return count


def _read_shape(reader: _Reader, field: str = "the shape", dims: int | None = None,
                narrow: bool = False) -> tuple[int, ...]:
    """i32 (narrow: given as `dims`) number of dimensions, then i64 (narrow: u32) each."""
    at, width = reader.offset, 4 if narrow else 8
    if dims is None:
        dims = reader.number("i", f"{field}'s number of dimensions")
    if not 0 <= dims <= MAX_DIMENSIONS:
        raise reader.fail(f"{field} has {dims} dimensions; expected 0 to {MAX_DIMENSIONS}", at)
    shape = struct.unpack(f"<{dims}{'I' if narrow else 'q'}", reader.take(width * dims, field))
    if any(n < 0 for n in shape):
        raise reader.fail(f"{field} is {shape}: a dimension is negative", at)
    if math.prod(n for n in shape if n) >= _MOST_ELEMENTS:  # NumPy refuses it even where another dimension is 0
        raise reader.fail(f"{field} is {shape}: more than any memory holds", at)
    return shape


def _read_type(reader: _Reader, field: str) -> int:
    at = reader.offset
    flag = reader.number("i", field)
    if flag not in TYPES:
        known = ", ".join(f"{k} {v}" for k, v in TYPES.items())
        raise reader.fail(f"{field} is {flag}; expected one of {known}", at)
    return flag


def _read_elements(reader: _Reader, flag: int, shape: tuple[int, ...], field: str) -> np.ndarray:
    """The elements, as an array on the file's bytes."""
    dtype = numpy_dtype(TYPES[flag])
    raw = reader.take(math.prod(shape) * dtype.itemsize, f"{field} (shape {shape})")
    if TYPES[flag] == "bool":  # any byte but 0 is True
        return (np.frombuffer(raw, np.uint8) != 0).reshape(shape)
    return np.frombuffer(raw, dtype.newbyteorder("<")).reshape(shape)


def _parts_of(reader: _Reader, storage: int, shape: tuple[int, ...], values: np.ndarray,
              indices: Sequence[np.ndarray]) -> Parts:
    """A row_sparse or csr array, its indices checked."""
    if storage == STORAGES.index(CSR) and len(shape) != 2:
        raise reader.fail(f"a csr array has two axes; the shape is {shape}")
    numbers = [array.astype(INDEX) for array in indices]
    values = values.astype(values.dtype.newbyteorder("="))
    parts: Parts = Rows(values, numbers[0], shape) if len(numbers) == 1 else Csr(values, numbers[1], numbers[0], shape)
    wrong = "one axis of indices was expected" if any(array.ndim != 1 for array in numbers) else parts.fault()
    if wrong:
        raise reader.fail(f"{STORAGES[storage]}: {wrong}")
    return parts


def _read_array(reader: _Reader) -> Given | None:
    """The next array; None for an empty slot."""
    at = reader.offset
    magic = reader.number("I", "its magic word")
    storage = 0
    stored: tuple[int, ...] = ()
    if magic in (V2, V3):
        storage = reader.number("i", "the storage type")
        if storage not in (0, 1, 2):
            raise reader.fail(f"the storage type is {storage}; expected 0 (dense), 1 (row_sparse) or 2 (csr)", at + 4)
        if storage:
            stored = _read_shape(reader, "the stored values' shape")
        shape = _read_shape(reader)
    elif magic == V1:
        shape = _read_shape(reader)
    elif magic <= MAX_DIMENSIONS:
        shape = _read_shape(reader, dims=magic, narrow=True)
    else:
        raise reader.fail(f"it begins with 0x{magic:08x}; expected 0x{V1:08x}, 0x{V2:08x}, 0x{V3:08x} or, in the "
                          f"oldest files, a number of dimensions up to {MAX_DIMENSIONS}", at)
    if not shape and magic != V3:
        return None
    device_at = reader.offset
    device = reader.number("i", "the device type")
    if device not in _DEVICES:
        raise reader.fail(f"the device type is {device}; expected one of {', '.join(map(str, _DEVICES))}", device_at)
    reader.number("i", "the device number")
    flag = _read_type(reader, "the element type")
    if storage == 0:
        return _read_elements(reader, flag, shape, "elements")
    index_types = []
    for i in range(storage):  # row_sparse has one index array, csr two
        index_type = _read_type(reader, f"the type of index array {i}")
        if TYPES.get(index_type) not in ("int64", "int32"):
            raise reader.fail(f"index array {i} has the element type {index_type}; expected 4 (int32) or 6 (int64)")
        index_types.append((index_type, _read_shape(reader, f"the shape of index array {i}")))
    # MXNet goes by the number of indices: it may save a sparse array before it knows the stored values' first extent.
    stored = (*index_types[-1][1][:1], *stored[1:])
    values = _read_elements(reader, flag, stored, "stored values")
    indices = [_read_elements(reader, index_type, index_shape, f"index array {i}")
               for i, (index_type, index_shape) in enumerate(index_types)]
    return _parts_of(reader, storage, shape, values, indices)


def parse(data: bytes | memoryview, path: str = "<bytes>") -> tuple[list[Given | None], list[str]]:
    """The arrays or parts (None: an empty slot) and their names (none for a plain list) in the bytes of a file.

    The arrays may be read-only views of `data`. Raises ModelFileError naming `path`, the byte offset, which array of
    how many and what was expected.
    """
    reader = _Reader(data, path)
    magic = reader.number("Q", "the magic number")
    if magic != LIST_MAGIC:
        kind = input_files.looks_like(reader.data)
        found = f"it looks like {kind}" if kind else f"the file begins with 0x{magic:x}; expected 0x{LIST_MAGIC:x}"
        raise reader.fail(f"not a parameter file: {found}", 0)
    reader.number("Q", "the reserved word")
    count = reader.count("Q", "the number of arrays", 4)
    arrays = []
    for i in range(count):
        reader.what = f"array {i + 1} of {count}"
        arrays.append(_read_array(reader))
    reader.what = "the names"
    at = reader.offset
    name_count = reader.count("Q", "the number of names", 8)
    if name_count not in (0, count):
        raise reader.fail(f"there are {name_count} names for {count} arrays; expected 0 or {count}", at)
    names = []
    for i in range(name_count):
        reader.what = f"name {i + 1} of {name_count}"
        at, length = reader.offset, reader.count("Q", "its length", 1)
        try:
            names.append(str(reader.take(length, "text"), "utf-8"))
        except UnicodeDecodeError:
            raise reader.fail("it is not UTF-8 text", at) from None
    return arrays, names


def read(path: str | os.PathLike[str]) -> tuple[list[Given | None], list[str]]:
    """`parse` of the file at `path`. Raises FileAccessError when it cannot be read, OutOfMemoryError when there is no
    memory for it, too."""
    return parse(input_files.content(path), str(path))


def described(path: str | os.PathLike[str]) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and dtype of each named array of a file, by name. Reads what tells these; errors as `read`."""
    arrays, names = parse(input_files.mapped(path), str(path))
    return {name: (array.shape, dtype_name(_elements(array).dtype)) for name, array in zip(names, arrays, strict=False)
            if array is not None}


def _elements(array: Given) -> np.ndarray:
    """The array, or what of it is stored."""
    return array if isinstance(array, np.ndarray) else array.values


def parse_array(data: bytes | memoryview, path: str = "<bytes>") -> Given:
    """The one array in bytes as `format_array` gives them, which may be a view of them. Raises ModelFileError."""
    reader = _Reader(data, path)
    reader.what = "the array"
    found = _read_array(reader)
    if found is None or reader.left:
        raise reader.fail("expected an array and nothing behind it")
    return found


def format_array(array: Given) -> bytes:
    """One array as V2; V3 under NumPy's shape semantics, and where V2 would mean an empty slot."""
    elements, shape, indices = _elements(array), array.shape, () if isinstance(array, np.ndarray) else array.indices
    dtype = dtype_name(elements.dtype)
    if dtype not in _FLAGS:
        raise MXNetError(f"arrays of dtype {elements.dtype} cannot be saved; use one of {', '.join(_FLAGS)}")
    magic = V3 if semantics.np_shape or not shape else V2
    parts = [struct.pack("<Ii", magic, STORAGES.index(stype_of(array))), *([_shape(elements)] if indices else []),
             struct.pack(f"<i{len(shape)}q", len(shape), *shape), struct.pack("<iii", 1, 0, _FLAGS[dtype])]
    parts += [struct.pack("<i", _FLAGS[numbers.dtype.name]) + _shape(numbers) for numbers in indices]
    return b"".join([*parts, *map(_bytes, (elements, *indices))])


def _shape(array: np.ndarray) -> bytes:
    return struct.pack(f"<i{array.ndim}q", array.ndim, *array.shape)


def _bytes(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def format_file(arrays: Sequence[Given], names: Sequence[str] = ()) -> bytes:
    """The bytes of a file that holds `arrays`, with `names` (one each) or without any."""
    parts = [struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))]
    parts += [format_array(a) for a in arrays]
    parts.append(struct.pack("<Q", len(names)))
    for name in names:
        encoded = name.encode()
        parts += [struct.pack("<Q", len(encoded)), encoded]
    return b"".join(parts)


def write(path: str | os.PathLike[str], data: Sequence[Given] | Mapping[str, Given]) -> None:
    """Save a list, or a dict by name. The file appears whole or not at all: readers never see a part of it.

    Raises MXNetError for a dtype that the format lacks, FileAccessError when the file cannot be written.
    """
    names = list(data) if isinstance(data, Mapping) else []
    arrays = list(data.values()) if isinstance(data, Mapping) else list(data)
    content = format_file(arrays, names)
    with replacing(path) as file:
        file.write(content)
