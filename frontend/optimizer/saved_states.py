"""Optimizers' states as bytes: those that MXNet reads and writes, without Python's pickle deciding what they may do.

MXNet keeps states as a pickle: a dictionary from indices to arrays, None and tuples of them, or a pair of that and the
optimizer. Such bytes are a program, which may call whatever it names, so:

- they are written here opcode by opcode: numbers, text, containers, arrays in MXNet's form, optimizers and schedulers
  as their attributes;
- they are read by an unpickler to which a name is nothing but a label. It knows arrays, NumPy's numbers and, by their
  names, the optimizers and schedulers that this process has, and it gives plain data; `_build` makes objects of them.
"""
from __future__ import annotations

import io
import pickle
import struct
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from mxc.compiler.error import ArgumentError, ArgumentTypeError, MXNetError, OutOfMemoryError
from mxc.lr_scheduler import LRScheduler
from mxc.ndarray import NDArray
from mxc.ndarray.ndarray import wrapped
from mxc.optimizer.base import Optimizer
from mxc.runtime import ndarray_file
from mxc.runtime.context import current_context
from mxc.runtime.sparse_array import of_given, snapshot

# opcodes of pickle's protocol 4
_START, _STOP, _MARK = b"\x80\x04", b".", b"("
_NONE, _TRUE, _FALSE, _FLOAT, _INT, _LONG = b"N", b"\x88", b"\x89", b"G", b"J", b"\x8a"
_TEXT, _BYTES, _LARGE_BYTES = b"X", b"B", b"\x8e"
_DICT, _LIST, _TUPLE, _ITEMS, _APPENDS = b"}", b"]", b"t", b"u", b"e"
_NAMED, _TUPLE1, _CALL, _NEW, _SET = b"\x93", b"\x85", b"R", b"\x81", b"b"
_KEEP, _KEPT = b"r", b"j"

_ARRAYS = {("mxnet.ndarray.ndarray", "NDArray"), ("mxnet.ndarray", "NDArray"),
           ("mxnet.ndarray.sparse", "RowSparseNDArray"), ("mxnet.ndarray.sparse", "CSRNDArray"),
           ("mxnet.numpy.multiarray", "ndarray")}
_CLASSES = {"default": ("mxnet.ndarray.ndarray", "NDArray"),  # by storage type
            "row_sparse": ("mxnet.ndarray.sparse", "RowSparseNDArray"), "csr": ("mxnet.ndarray.sparse", "CSRNDArray")}
_OF_BYTES = {("builtins", "bytearray"), ("__builtin__", "bytearray"), ("__builtin__", "bytes"), ("_codecs", "encode")}
_NUMPY = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")
_OF_NUMPY = ("scalar", "dtype", "_reconstruct", "_frombuffer", "ndarray")
_DTYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")
_HOMES = {"mxc.lr_scheduler": "mxnet.lr_scheduler", "mxc.optimizer.contrib": "mxnet.optimizer.contrib"}


def write(value: Any) -> bytes:
    """The bytes of states, or of a pair of states and optimizer. Raises TypeError for what they cannot hold."""
    writer = _Writer()
    writer.put(value, "the states")
    return b"".join([_START, *writer.parts, _STOP])


def read(data: bytes | bytearray | memoryview) -> Any:
    """The value that `write`, here or in MXNet, was given: containers, numbers, text, arrays, optimizers, schedulers.

    Raises ValueError for bytes that are damaged or name anything else, TypeError for anything but bytes.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(f"optimizer states are bytes, got {type(data)}")
    try:
        return _Builder().build(_Reader(io.BytesIO(data)).load())
    except MXNetError:
        raise
    except MemoryError:
        raise OutOfMemoryError(f"there is no memory for the optimizer states in {len(data)} bytes") from None
    except Exception as error:  # The unpickler may raise any exception for damaged bytes.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ArgumentError(f"these {len(data)} bytes are no optimizer states: {reason}") from None


class _Writer:
    """parts: the opcodes so far. A container that occurs again is referred to, so it is one container when read."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.kept: dict[int, int] = {}
        self.held: list[Any] = []  # the objects whose id()s `kept` has: held here, they keep them

    def put(self, value: Any, where: str) -> None:
        """Write a value; where: what it is, for messages."""
        if isinstance(value, np.generic):
            value = value.item()
        kind: type = type(value)
        add = self.parts.append
        if value is None or value is True or value is False:
            add({None: _NONE, True: _TRUE, False: _FALSE}[value])
        elif kind is int:
            if -(1 << 31) <= value < 1 << 31:
                add(_INT + struct.pack("<i", value))
            else:
                raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
                if len(raw) > 255:
                    raise ArgumentTypeError(f"{where} is too large a number to be saved")
                add(_LONG + bytes([len(raw)]) + raw)
        elif kind is float:
            add(_FLOAT + struct.pack(">d", value))
        elif kind is str:
            raw = value.encode()
            add(_TEXT + struct.pack("<I", len(raw)) + raw)
        elif kind is bytes:
            self.put_bytes(value)
        elif id(value) in self.kept:
            add(_KEPT + struct.pack("<I", self.kept[id(value)]))
        elif isinstance(value, NDArray):
            self.put_object(*_CLASSES[value.stype], (None,), value)
            self.put_handle(value)
        elif isinstance(value, (Optimizer, LRScheduler)):
            module = _home(type(value))
            self.put_object(module, type(value).__qualname__, None, value)
            state = value.__getstate__() if isinstance(value, Optimizer) else value.__dict__
            self.put(dict(state), f"{type(value).__name__}'s settings")
            add(_SET)
        elif kind in (dict, OrderedDict, list):
            self.put_container(value, where)
        elif kind is tuple:
            add(_MARK)
            for place, part in enumerate(value):
                self.put(part, f"{where}: [{place}]")
            add(_TUPLE)
        else:
            raise ArgumentTypeError(f"{where}: {value!r} of {kind} cannot be saved with optimizer states, which hold "
                                    "numbers, text, lists, dictionaries, arrays, optimizers and schedulers")

    def keep(self, value: Any) -> None:
        self.kept[id(value)] = len(self.held)
        self.parts.append(_KEEP + struct.pack("<I", len(self.held)))
        self.held.append(value)

    def put_container(self, value: Any, where: str) -> None:
        is_list = isinstance(value, list)
        if isinstance(value, OrderedDict):
            self.put_object("collections", "OrderedDict", (), value)
        else:
            self.parts.append(_LIST if is_list else _DICT)
            self.keep(value)
        self.parts.append(_MARK)
        for key, part in enumerate(value) if is_list else value.items():
            if not is_list:
                self.put(key, f"a key of {where}")
            self.put(part, f"{where}: [{key!r}]")
        self.parts.append(_APPENDS if is_list else _ITEMS)

    def put_object(self, module: str, name: str, arguments: tuple | None, value: Any) -> None:
        """An object of a class; arguments: None where its constructor is not to run."""
        self.put_name(module, name)
        self.put(arguments or (), "")
        self.parts.append(_NEW if arguments is None else _CALL)
        self.keep(value)

    def put_name(self, module: str, name: str) -> None:
        self.put(module, "")
        self.put(name, "")
        self.parts.append(_NAMED)

    def put_handle(self, value: NDArray) -> None:
        self.parts.append(_DICT + _MARK)
        self.put("handle", "")
        self.put_name("builtins", "bytearray")
        self.put_bytes(ndarray_file.format_array(snapshot(value._array)))
        self.parts.append(_TUPLE1 + _CALL + _ITEMS + _SET)

    def put_bytes(self, value: bytes) -> None:
        short = len(value) < 1 << 32
        self.parts += (_BYTES + struct.pack("<I", len(value)) if short
                       else _LARGE_BYTES + struct.pack("<Q", len(value)), value)


def _home(kind: type) -> str:
    """The module where MXNet looks for a class: mxc's classes stand under MXNet's module of the class of that name."""
    if not kind.__module__.startswith("mxc."):
        return kind.__module__
    return _HOMES.get(kind.__module__, "mxnet.optimizer.optimizer")


class _Stored:
    """An object as it is in the bytes, of a class that is only named. Each name has a class of this kind."""

    name: tuple[str, str] = "", ""
    state: Any = None

    def __new__(cls, *arguments: Any) -> _Stored:
        made = super().__new__(cls)
        made.arguments = arguments
        return made

    def __init__(self, *arguments: Any):
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Reader(pickle._Unpickler):
    """Gives plain data and `_Stored` objects. It derives from the unpickler that is written in Python: damaged bytes
    make the one in C ask for more memory than there is."""

    def find_class(self, module: str, name: str) -> Any:
        place = module, name
        if place in _OF_BYTES:
            return _bytes
        if place in (("copyreg", "_reconstructor"), ("copy_reg", "_reconstructor")):
            return _made_plainly
        if place == ("collections", "OrderedDict"):
            return OrderedDict
        if place in (("builtins", "object"), ("__builtin__", "object")) or place in _ARRAYS or \
                (module in _NUMPY and name in _OF_NUMPY) or \
                _known_class(place) is not None:
            return type(name, (_Stored,), {"name": place})
        raise ArgumentError(f"optimizer states name {module}.{name}, which is neither an array nor an optimizer or "
                            "scheduler that this program has; a class of its own must be defined before")

    def persistent_load(self, pid: Any) -> Any:
        raise ArgumentError("optimizer states refer to what lies outside of them")


def _bytes(data: Any = b"", encoding: str = "latin-1") -> bytes:
    """Makes bytes of the text by which older protocols write them."""
    if isinstance(data, str) and encoding in ("latin1", "latin-1"):
        return data.encode("latin-1")
    if not isinstance(data, (bytes, bytearray)):
        raise ArgumentError(f"optimizer states have bytes made of {type(data)}")
    return bytes(data)


def _made_plainly(kind: type, *_: Any) -> Any:
    """Makes an object in the way that older protocols name (`copyreg._reconstructor`)."""
    if not isinstance(kind, type) or not issubclass(kind, _Stored):
        raise ArgumentError(f"optimizer states have an object of {kind!r}")
    return kind()


def _known_class(place: tuple[str, str]) -> type | None:
    """The optimizer's or scheduler's class of that name, MXNet's or a program's own."""
    bases: tuple[type, ...] = Optimizer, LRScheduler
    for base in bases:
        for kind in _below(base):
            if place in ((kind.__module__, kind.__qualname__), (_home(kind), kind.__qualname__)):
                return kind
    return None


def _below(base: Any) -> Iterator[type]:
    """A class and those derived from it, the latest first, because a program may define a class again."""
    for kind in reversed(base.__subclasses__()):
        yield from _below(kind)
    yield base


class _Builder:
    """Makes objects of stored ones. An object that is referred to twice is made once."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}

    def build(self, value: Any) -> Any:
        if id(value) in self.made:
            return self.made[id(value)]
        if isinstance(value, dict):
            table = self.made[id(value)] = type(value)()
            table.update((self.build(k), self.build(v)) for k, v in value.items())
            return table
        if isinstance(value, list):
            made = self.made[id(value)] = []
            made += map(self.build, value)
            return made
        if isinstance(value, tuple):
            return tuple(map(self.build, value))
        if isinstance(value, _Stored):
            found = self.made[id(value)] = self.object(value)
            return found
        if value is None or isinstance(value, (bool, int, float, str, bytes, bytearray)):
            return value
        raise ArgumentError(f"optimizer states hold {value!r} of {type(value)}")

    def object(self, stored: _Stored) -> Any:
        kind = _known_class(stored.name)
        if kind is None:
            if stored.name in _ARRAYS:
                return self.array(stored)
            if stored.name[1] == "scalar":
                kind, raw = stored.arguments
                return self.numbers(raw, kind, (1,), "C")[0]
            if stored.name[1] == "_reconstruct":
                _, shape, kind, is_fortran, raw = stored.state
                return self.numbers(raw, kind, shape, "F" if is_fortran else "C")
            if stored.name[1] == "_frombuffer":
                return self.numbers(*stored.arguments)
            raise ArgumentError(f"optimizer states hold an object of {'.'.join(stored.name)}")
        if not isinstance(stored.state, dict) or not all(isinstance(key, str) for key in stored.state):
            raise ArgumentError(f"optimizer states have no settings for {kind.__name__}")
        made: Any = object.__new__(kind)
        settings = self.build(stored.state)
        if isinstance(made, Optimizer):
            made.__setstate__(settings)
        else:
            made.__dict__.update(settings)
        return made

    def array(self, stored: _Stored) -> NDArray:
        handle = stored.state.get("handle") if isinstance(stored.state, dict) else None
        return wrapped(of_given(ndarray_file.parse_array(_bytes(handle), "optimizer states"), current_context()))

    def numbers(self, raw: Any, kind: Any, shape: Any, order: Any) -> np.ndarray:
        """An array of NumPy's; kind: its dtype as it is stored."""
        text = kind.arguments[0] if isinstance(kind, _Stored) and kind.name[1] == "dtype" else None
        if text not in _DTYPES:
            raise ArgumentError(f"optimizer states have NumPy's numbers of dtype {text!r}; expected one of "
                                f"{', '.join(_DTYPES)}")
        is_big = isinstance(kind.state, tuple) and len(kind.state) > 1 and kind.state[1] == ">"
        found = np.frombuffer(_bytes(raw), np.dtype(text).newbyteorder(">" if is_big else "<"))
        return found.astype(found.dtype.newbyteorder("=")).reshape(shape, order=order)
