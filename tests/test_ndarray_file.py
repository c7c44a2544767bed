"""The `.params` format: every version, every dtype, sparse arrays, and files that are damaged in any place."""
from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mxc.compiler.error import ModelFileError, MXNetError, OutOfMemoryError
from mxc.compiler.ops.dtypes import BFLOAT16, converted, numpy_dtype, widened
from mxc.compiler.ops.storage import dense, stype_of
from mxc.runtime import ndarray_file as nf

GOLDEN = Path(__file__).parent / "golden"
MODELS = Path(__file__).resolve().parents[2] / "shared" / "models"
DTYPES = sorted(nf.TYPES.items())


def file_of(*arrays: bytes, names: tuple[str, ...] = ()) -> bytes:
    """A list file of arrays that are already bytes."""
    tail = b"".join(struct.pack("<Q", len(n)) + n.encode() for n in names)
    return struct.pack("<QQQ", 0x112, 0, len(arrays)) + b"".join(arrays) + struct.pack("<Q", len(names)) + tail


def context_and_type(flag: int, device: int = 1) -> bytes:
    return struct.pack("<iii", device, 0, flag)


def v0(a: np.ndarray, flag: int) -> bytes:
    return struct.pack(f"<I{a.ndim}I", a.ndim, *a.shape) + context_and_type(flag) + a.tobytes()


def v1(a: np.ndarray, flag: int) -> bytes:
    return struct.pack(f"<Ii{a.ndim}q", 0xF993FAC8, a.ndim, *a.shape) + context_and_type(flag, 2) + a.tobytes()


def v2(a: np.ndarray, flag: int, magic: int = 0xF993FAC9) -> bytes:
    return struct.pack(f"<Iii{a.ndim}q", magic, 0, a.ndim, *a.shape) + context_and_type(flag, 3) + a.tobytes()


def v3(a: np.ndarray, flag: int) -> bytes:
    return v2(a, flag, 0xF993FACA)


def row_sparse() -> bytes:
    values, rows = np.array([[1, 2], [3, 4]], "float32"), np.array([1, 3], "int64")
    head = struct.pack("<Iii2qi2q", 0xF993FAC9, 1, 2, 2, 2, 2, 4, 2) + context_and_type(0)
    return head + struct.pack("<iiq", 6, 1, 2) + values.tobytes() + rows.tobytes()


def csr(columns: tuple[int, ...] = (1, 0, 2), starts: tuple[int, ...] = (0, 1, 3)) -> bytes:
    head = struct.pack("<Iiiqi2q", 0xF993FAC9, 2, 1, 3, 2, 2, 3) + context_and_type(0)
    parts = struct.pack("<iiqiiq", 6, 1, len(starts), 6, 1, 3) + np.array([5, 6, 7], "float32").tobytes()
    return head + parts + np.array(starts, "int64").tobytes() + np.array(columns, "int64").tobytes()


@pytest.mark.parametrize(("flag", "dtype"), DTYPES)
@pytest.mark.parametrize("version", [v0, v1, v2, v3])
def test_reads_every_version_and_dtype(version, flag, dtype):
    a = converted(np.arange(6).reshape(2, 3), numpy_dtype(dtype))
    arrays, names = nf.parse(file_of(version(a, flag), names=("arg:w",)))
    assert names == ["arg:w"]
    assert arrays[0].dtype == numpy_dtype(dtype)
    np.testing.assert_array_equal(arrays[0], a)


def test_bfloat16_is_read_and_written():
    bits = np.array([0x3F80, 0xC020, 0x7F80], "uint16")  # 1, -2.5, inf
    arrays, _ = nf.parse(file_of(v2(bits, 12)))
    assert arrays[0].dtype == BFLOAT16 and widened(arrays[0]).tolist() == [1.0, -2.5, np.inf]
    assert nf.format_array(arrays[0])[-10:] == struct.pack("<i", 12) + bits.tobytes()


def test_sparse_arrays_are_read_as_parts():
    arrays, _ = nf.parse(file_of(row_sparse(), csr()))
    assert [stype_of(array) for array in arrays] == ["row_sparse", "csr"]
    assert dense(arrays[0]).tolist() == [[0, 0], [1, 2], [0, 0], [3, 4]]
    assert dense(arrays[1]).tolist() == [[0, 5, 0], [6, 0, 7]]


def test_sparse_arrays_are_written_as_they_are_read():
    content = file_of(row_sparse(), csr(), names=("a", "b"))
    assert bytes(nf.format_file(*nf.parse(content))) == content


def test_the_shape_of_a_sparse_array_may_be_larger_than_any_memory():
    (array,), _ = nf.parse(file_of(damaged(row_sparse(), 32, "q", 2**48)))
    assert array.shape == (2**48, 2) and array.values.shape == (2, 2)
    with pytest.raises(OutOfMemoryError, match="no memory for all its elements"):
        dense(array)


def test_no_dimensions_is_an_empty_slot_before_v3_and_a_scalar_in_v3():
    empty = [struct.pack("<I", 0), struct.pack("<Ii", 0xF993FAC8, 0), struct.pack("<Iii", 0xF993FAC9, 0, 0)]
    arrays, _ = nf.parse(file_of(*empty, v3(np.array(3, "int64"), 6), v3(np.zeros((0, 2), "float32"), 0)))
    assert arrays[:3] == [None, None, None]
    assert arrays[3].shape == () and arrays[3] == 3
    assert arrays[4].shape == (0, 2)


@pytest.mark.parametrize("content", [
    file_of(v0(np.ones((2, 3), "float32"), 0), v2(np.ones(3, "int8"), 5), names=("a", "bc")),
    file_of(v1(np.ones((2,), "float16"), 2), row_sparse(), csr(), v3(np.array(1, "uint8"), 3),
            names=("a", "b", "c", "")),
    file_of(), file_of(csr())], ids=["dense", "all", "nothing", "csr"])
def test_every_truncation_is_told_with_place_and_expectation(content):
    nf.parse(content)
    for end in range(len(content)):
        with pytest.raises(ModelFileError) as caught:
            nf.parse(content[:end], "cut.params")
        assert caught.value.path == "cut.params"
        assert 0 <= caught.value.offset <= end
        assert "cut.params, byte" in str(caught.value)
        assert "left" in str(caught.value) or "follow" in str(caught.value)


def damaged(base: bytes, offset: int, code: str, value: int) -> bytes:
    return base[:offset] + struct.pack("<" + code, value) + base[offset + struct.calcsize("<" + code):]


ONE = file_of(v2(np.ones((2, 3), "float32"), 0), names=("w",))


@pytest.mark.parametrize(("content", "offset", "message"), [
    (b"<!DOCTYPE html>  ", 0, "it looks like an HTML or XML page"),
    (damaged(ONE, 16, "Q", 2**61), 16, "number of arrays is 2305843009213693952"),
    (damaged(ONE, 24, "I", 0xDEADBEEF), 24, "array 1 of 1: it begins with 0xdeadbeef"),
    (damaged(ONE, 28, "i", 7), 28, "storage type is 7"),
    (damaged(ONE, 32, "i", 1000), 32, "1000 dimensions"),
    (damaged(ONE, 32, "i", -1), 32, "-1 dimensions"),
    (damaged(ONE, 36, "q", 2**56), 64, "bytes of elements"),
    (damaged(ONE, 36, "q", 2**60), 32, "more than any memory holds"),
    (damaged(damaged(ONE, 36, "q", 2**62), 44, "q", 0), 32, "more than any memory holds"),
    (damaged(ONE, 36, "q", -2), 32, "a dimension is negative"),
    (damaged(ONE, 52, "i", 99), 52, "device type is 99"),
    (damaged(ONE, 60, "i", 9), 60, "the element type is 9"),
    (damaged(ONE, 88, "Q", 3), 88, "number of names is 3"),
    (damaged(ONE, 96, "Q", 2**40), 96, "its length is 1099511627776"),
    (ONE[:-1] + b"\xff", 96, "not UTF-8"),
    (file_of(csr(columns=(1, 0, 3))), None, "csr: columns run from 0 to 3; expected 0 to 2"),
    (file_of(csr(starts=(0, 4, 3))), None, "row starts do not rise"),
    (file_of(damaged(row_sparse(), 32, "q", 2)), None, "row numbers run from 1 to 3; expected 0 to 1"),
    (file_of(damaged(row_sparse(), 40, "q", 3)), None, "do not fit the shape (4, 3)"),
])
def test_damage_is_told(content, offset, message):
    with pytest.raises(ModelFileError) as caught:
        nf.parse(content, "x.params")
    assert message in str(caught.value)
    if offset is not None:
        assert caught.value.offset == offset


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 400))
def test_damaged_bytes_never_crash(noise, place):
    content = bytearray(file_of(row_sparse(), csr(), v2(np.ones((2, 3), "float32"), 0), names=("a", "b", "c")))
    content[place:place + len(noise)] = noise
    try:
        nf.parse(bytes(content))
    except ModelFileError as error:
        assert error.offset is not None


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=8).filter(lambda s: s.isprintable()),
                       st.sampled_from([name for _, name in DTYPES]).flatmap(
                           lambda dtype: hnp.arrays(numpy_dtype(dtype), hnp.array_shapes(
                               min_dims=0, max_dims=4, min_side=0, max_side=4))), max_size=4))
def test_round_trip(arrays):
    got, names = nf.parse(nf.format_file(list(arrays.values()), list(arrays)))
    assert names == list(arrays)
    for a, b in zip(arrays.values(), got, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes()


def test_golden_files_written_by_mxnet():
    """The file holds what MXNet 1.9.1's `nd.save` wrote for arrays of each dtype, two csr and two row_sparse ones.

    In one of the latter the stored values' first extent is 0 although there are two rows: MXNet had not yet known it.
    """
    arrays, names = nf.read(GOLDEN / "ndarray_dict.params")
    got = dict(zip(names, arrays, strict=True))
    short = {"f16": "float16", "f64": "float64", "i8": "int8", "u8": "uint8", "i32": "int32"}
    for name, dtype in short.items():
        assert got[name].dtype == dtype and got[name].tolist() == [1, 1]
    assert got["i64"].tolist() == [2**40, -1]
    assert got["b"].tolist() == [True, False, True]
    assert got["f32"][0].tolist() == [1.5, -2.25]
    assert dense(got["csr"]).tolist() == [[0, 0, 1.5], [0, 0, 0], [2, 0, -3]]
    assert dense(got["rsp"]).tolist() == [[0, 0], [1, 2], [0, 0], [3, 4]]
    assert stype_of(got["rsp0"]) == "row_sparse" and stype_of(got["csr0"]) == "csr"
    assert not dense(got["rsp0"]).any() and got["rsp0"].shape == got["csr0"].shape == (3, 2)


def test_writes_the_bytes_that_mxnet_writes(tmp_path):
    """`ndarray_list.params` is what MXNet 1.9.1 wrote for these two arrays."""
    nf.write(tmp_path / "x.params", [np.arange(6, dtype="float32").reshape(2, 3), np.array([7], "int32")])
    assert (tmp_path / "x.params").read_bytes() == (GOLDEN / "ndarray_list.params").read_bytes()


def test_writing_is_atomic_and_tells_errors(tmp_path, monkeypatch):
    path = tmp_path / "w.params"
    nf.write(path, {"a": np.ones(3, "float32")})
    before = path.read_bytes()

    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(MXNetError, match="No space left"):
        nf.write(path, {"a": np.zeros(3, "float32")})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["w.params"]
    with pytest.raises(MXNetError, match="cannot be written"):
        nf.write(tmp_path / "no" / "w.params", [])
    with pytest.raises(MXNetError, match="complex64"):
        nf.write(path, [np.ones(1, "complex64")])
    with pytest.raises(ModelFileError, match=r"nothing\.params: cannot be read: No such file"):
        nf.read(tmp_path / "nothing.params")


@pytest.mark.skipif(not MODELS.is_dir(), reason="the real models are not there")
def test_real_files():
    files = sorted(MODELS.glob("*.params"))
    assert files
    for path in files:
        arrays, names = nf.read(path)
        assert len(arrays) == len(names) > 0
        assert all(a is not None and a.dtype == "float32" for a in arrays)
        assert all(n.startswith(("arg:", "aux:")) for n in names)
