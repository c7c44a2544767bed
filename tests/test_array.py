"""Storage, arrays and NDArray: memory, views, versions, assignment and arithmetic."""
from __future__ import annotations

import gc
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from mxc import ndarray as nd
from mxc.compiler.error import MXNetError
from mxc.runtime import engine, storage
from mxc.runtime.array import Array
from mxc.runtime.context import cpu

# -- storage and arrays


def test_blocks_are_aligned_pooled_and_kept_alive_by_views():
    gc.collect()
    storage.release_free()
    before = storage.statistics.used
    array = Array.empty((1000,), "float32", cpu(5))
    assert array.address % 64 == 0
    assert storage.statistics.used - before == storage.size_class(4000)
    view, address = array.data[3:5], array.address
    del array
    gc.collect()
    assert storage.statistics.used > before, "a NumPy view still reaches the memory"
    del view
    gc.collect()
    assert storage.statistics.used == before
    assert Array.empty((999,), "float32", cpu(5)).address == address, "the same size comes from the pool"
    storage.release_free(cpu(5))
    assert storage.statistics.free == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_large_blocks_are_zeroed_and_not_shared_with_children():
    storage.release_free()
    large = Array.empty((storage.HUGE,), "float32", zeroed=True)
    assert large.address % 64 == 0 and not large.data.any()
    child = os.fork()
    if child == 0:
        large.data[:] = 1
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and not large.data.any()


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="needs a Linux with large pages")
def test_large_blocks_ask_for_large_pages():
    block, found = storage.MemoryBlock(3 * storage.HUGE, cpu()), []
    for entry in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())[1:]:
        begin, end = (int(number, 16) for number in entry.split(" ", 1)[0].split("-"))
        if begin <= block.address < end:
            found.append((block.address + block.nbytes <= end, "hg" in entry.split("VmFlags:")[1].split()))
    assert found == [(True, True)] and block.address % storage.HUGE == 0


@pytest.mark.parametrize("nbytes", [0, 1, 64, 65, 512, 513, 4097, 10**6, 10**9])
def test_size_classes_waste_at_most_an_eighth(nbytes):
    size = storage.size_class(nbytes)
    assert size % 64 == 0 and nbytes <= size <= max(nbytes + 64, nbytes * 1.125)


def test_impossible_arrays_are_told():
    for count in (2**44, 2**55, 2**59):
        with pytest.raises(MXNetError, match="out of memory"):
            Array.empty((count,), "float64")
    with pytest.raises(MXNetError, match="negative"):
        Array.empty((2, -1))
    with pytest.raises(MXNetError, match="dtype 'complex64' is not supported"):
        Array.empty((2,), np.complex64)


def test_every_write_bumps_the_version_that_views_share():
    array = Array.of(np.zeros((2, 3), "float32"))
    row = array.view(array.data[1])
    versions = [row.variable.version]
    for write in (lambda: array.assign(np.asarray(1)), lambda: row.copy_from(Array.of(np.ones(3))), row.touched):
        write()
        versions.append(array.variable.version)
    assert versions == [0, 1, 2, 3]
    with pytest.raises(ValueError):
        array.assign(np.zeros(7))
    assert array.variable.version == 4, "a write that failed may have written a part"


def test_memory_handed_out_makes_an_array_volatile():
    array = Array.of(np.zeros(3))
    array.numpy()[:] = 1
    assert not array.variable.volatile and not array.data.any()
    array.share()[:] = 1
    assert array.variable.volatile and array.data.all()
    outside = np.zeros(3, "float32")
    before = outside[:]
    shared = nd.from_numpy(outside)
    before[1] = 5
    assert shared.asnumpy().tolist() == [0, 5, 0] and shared._array.variable.volatile


def test_engine_runs_inline_and_keeps_errors():
    variable = engine.Variable()
    engine.push(lambda: 1 / 0, [], [variable])
    assert variable.version == 1
    for _ in range(2):
        with pytest.raises(MXNetError, match="division by zero"):
            engine.wait_to_read(variable)
    engine.waitall()
    with pytest.raises(ZeroDivisionError):
        engine.push(lambda: 1 / 0, [], [])


# -- NDArray

A = np.arange(6, dtype="float32").reshape(2, 3) + 1


@pytest.mark.parametrize(("source", "dtype", "expected"), [
    ([1, 2], None, "float32"), (np.zeros(3), None, "float32"), (np.zeros(3, "int32"), None, "float32"),
    (nd.zeros(3, dtype="int32"), None, "int32"), ([1.7], "int32", "int32"), (np.ones(2), np.float16, "float16"),
    (np.array([True]), bool, "bool")])
def test_array_dtypes(source, dtype, expected):
    assert nd.array(source, dtype=dtype).dtype is np.dtype(expected).type


def test_creation():
    assert nd.zeros(3).shape == (3,) and nd.ones((2, 1), dtype="int8").asnumpy().tolist() == [[1], [1]]
    assert nd.full((2,), 3, dtype="int32").asnumpy().tolist() == [3, 3]
    assert nd.arange(0, 5, 2, repeat=2).asnumpy().tolist() == [0, 0, 2, 2, 4, 4]
    assert nd.arange(3).asnumpy().tolist() == [0, 1, 2]
    assert nd.empty((2, 2)).shape == (2, 2)
    assert nd.array([]).shape == (0,)
    assert nd.zeros((1,), ctx=cpu(1)).context == cpu(1)
    with cpu(2):
        assert nd.zeros((1,)).context == cpu(2)
    for bad in [(0, 3), ()]:
        with pytest.raises(MXNetError, match="not complete"):
            nd.zeros(bad)
    with pytest.raises(TypeError):
        nd.array("text")


def test_text_and_scalars():
    assert repr(nd.array(A)) == "\n[[1. 2. 3.]\n [4. 5. 6.]]\n<NDArray 2x3 @cpu(0)>"
    assert nd.ones(1).asscalar() == 1 and isinstance(nd.ones(1).asscalar(), np.float32)
    assert bool(nd.ones(1)) and len(nd.array(A)) == 2 and [r.shape for r in nd.array(A)] == [(3,), (3,)]
    for use in (lambda: nd.ones(2).asscalar(), lambda: bool(nd.ones(2))):
        with pytest.raises(ValueError):
            use()


# Whether MXNet 1.9.1 shares memory: asked of it case by case.
VIEWS = {
    "row": (lambda x: x[1], True), "slice": (lambda x: x[0:1], True), "column": (lambda x: x[:, 1:2], False),
    "element": (lambda x: x[0, 1], True), "all": (lambda x: x[:], True), "none": (lambda x: x[None], True),
    "reshape": (lambda x: x.reshape((3, 2)), True), "flat": (lambda x: x.reshape(6), True),
    "expand_dims": (lambda x: x.expand_dims(0), False), "inplace": (lambda x: x.expand_dims(0, inplace=True), True),
    "flatten": (lambda x: x.flatten(), False), "T": (lambda x: x.T, False), "part": (lambda x: x[1, 0:2], True),
    "list": (lambda x: x[[0]], False), "negative": (lambda x: x[-1], True), "detach": (lambda x: x.detach(), True),
    "astype": (lambda x: x.astype("float32", copy=False), True), "astype copy": (lambda x: x.astype("float32"), False),
    "ellipsis": (lambda x: x[..., 0:1], False), "same device": (lambda x: x.as_in_context(cpu()), True),
    "other device": (lambda x: x.as_in_context(cpu(1)), False), "step": (lambda x: x[::2], True),
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_shares_memory(name):
    make, shares = VIEWS[name]
    x = nd.array(A)
    make(x)[:] = -7
    assert bool((x.asnumpy() == -7).any()) is shares


@pytest.mark.parametrize("key", [0, -1, (0, 1), slice(0, 1), (slice(None), 2), (slice(None), slice(None, None, -1)),
                                 None, Ellipsis, [1, 0], (slice(None), [2, 0]), (np.array([0, 1]), np.array([2, 1]))])
def test_indexing_is_numpys(key):
    got, want = nd.array(A)[key].asnumpy(), A[key]
    np.testing.assert_array_equal(got, want if want.ndim else want.reshape(1))


def test_indexing_errors_and_arrays_as_indices():
    x = nd.array(A)
    assert x[nd.array([1, 0])].asnumpy().tolist() == A[[1, 0]].tolist()
    for key in (5, (0, 0, 0), [10], (0, -4)):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 0


@pytest.mark.parametrize(("key", "value", "dtype"), [
    (slice(None), 2.7, "int32"), (0, [1, 2, 3], "float32"), (slice(None), np.ones(3), "float32"),
    (slice(None), np.ones((1, 2, 3)), "float32"), (slice(1, 2), np.full((1, 3), 9.5), "float16"), ((1, 2), 5, "int8"),
    (slice(None), 300, "uint8"), ([1, 0], np.array([[1, 2, 3], [4, 5, 6]]), "float32")])
def test_assignment(key, value, dtype):
    got, want = nd.zeros((2, 3), dtype=dtype), np.zeros((2, 3), dtype)
    got[key] = value
    values = np.asarray(value).astype(dtype)
    want[key] = values.reshape(values.shape[-2:]) if values.ndim > 2 else values
    np.testing.assert_array_equal(got.asnumpy(), want)


def test_assignment_of_arrays_and_errors():
    x = nd.zeros((2, 3))
    x[:] = nd.ones((2, 3), dtype="int32") * 2
    assert x.asnumpy().tolist() == [[2] * 3] * 2
    for value in (np.ones((4, 5)), np.ones((2, 2, 3))):
        with pytest.raises(ValueError, match=r"does not fit the selected elements of shape \(2, 3\)"):
            x[:] = value
    with pytest.raises(TypeError):
        x[:] = "text"


def test_copies():
    x, y = nd.array(A), nd.zeros((2, 3), dtype="int32")
    assert x.copyto(y) is y and y.asnumpy().tolist() == A.tolist()
    assert x.copyto(cpu(1)).context == cpu(1) and x.copy() is not x
    with pytest.raises(MXNetError, match=r"\(2, 3\), the destination \(3, 2\)"):
        x.copyto(nd.zeros((3, 2)))
    with pytest.warns(RuntimeWarning):
        x.copyto(x)
    restored = pickle.loads(pickle.dumps(nd.array(A, ctx=cpu(1))))
    assert restored.context == cpu(1) and restored.asnumpy().tolist() == A.tolist()
    assert nd.concatenate([x, x]).shape == (4, 3) and np.asarray(x).dtype == np.float32


@pytest.mark.parametrize(("shape", "reverse", "expected"), [
    ((0, -1), False, (2, 12)), ((-2,), False, (2, 3, 4)), ((6, 4), False, (6, 4)), (-1, False, (24,)),
    ((-3, 0), False, (6, 4)), ((-4, 1, 2, -2), False, (1, 2, 3, 4)), ((-1, 0), True, (6, 4))])
def test_reshape_codes(shape, reverse, expected):
    x = nd.zeros((2, 3, 4))
    made = x.reshape(shape, reverse=reverse)
    assert made.shape == expected
    made[:] = 1
    assert x.asnumpy().all()
    assert nd.zeros((2, 3, 4)).reshape(6, -1).shape == (6, 4)


def test_reshape_sizes():
    with pytest.raises(MXNetError):
        nd.zeros((2, 3, 4)).reshape((5, -1))
    with pytest.raises(ValueError, match="cannot reshape an array of 6 elements"):
        nd.array(A).reshape((2, 2))


# What MXNet 1.9.1 gives for (dtype, expression): a number is cast to the array's dtype first.
ARITHMETIC = [
    ("int32", [3], lambda x: x + 2.5, [5]), ("int32", [3], lambda x: x * 2.5, [6]),
    ("int32", [3, -3], lambda x: x / 2, [1, -1]), ("int8", [100], lambda x: x + 100, [-56]),
    ("uint8", [0], lambda x: x - 1, [255]), ("uint8", [1], lambda x: -x, [255]),
    ("int32", [2, -3], lambda x: x**3, [8, -27]),
    ("int32", [2, -3], lambda x: 2**x, [4, 0]), ("float32", [3, -7.5, 5, 5], lambda x: x % -2, [-1, -1.5, -1, -1]),
    ("float32", [3, -7.5, 5, 5], lambda x: x % nd.array([0, 2, -3, 0]), [0, 0.5, -1, 0]),
    ("int32", [3, -7], lambda x: x / nd.array([1, 2], dtype="int32"), [3, -3]),
    ("int32", [3, -7], lambda x: x / nd.array([0, 2], dtype="int32"), [0, -3]),  # MXNet crashes
    ("int32", [3, -7], lambda x: x % nd.array([0, 4], dtype="int32"), [0, 1]),
    ("float16", [1, -1], lambda x: x > 0, [1, 0]), ("int32", [1], lambda x: x > nd.zeros(1, dtype="int32"), [1]),
    ("float32", [1, 5], lambda x: nd.maximum(x, 3), [3, 5]), ("float32", [1, 5], lambda x: 3 - x, [2, -2]),
    ("float32", [1, 4], lambda x: 2 / x, [2, 0.5]), ("float32", [-1], abs, [1]),
    ("float32", [1, 5], lambda x: x > 3, [0, 1]),
    ("float32", [1, 5], lambda x: x == 5, [0, 1]), ("float32", [1, 5], lambda x: nd.add(3, x), [4, 8]),
]


@pytest.mark.parametrize("case", range(len(ARITHMETIC)))
def test_arithmetic(case):
    dtype, values, compute, expected = ARITHMETIC[case]
    result = compute(nd.array(values, dtype=dtype))
    assert result.dtype is np.dtype(dtype).type
    assert result.asnumpy().tolist() == expected


def test_broadcasting_and_its_errors():
    assert (nd.ones((2, 1)) + nd.ones((1, 3))).shape == (2, 3)
    for other in (nd.ones((2, 4)), nd.ones((2, 3), dtype="float16")):
        with pytest.raises(MXNetError, match="broadcast_add"):
            nd.ones((2, 3)) + other
    for other in (np.ones((2, 3)), "a", None, [1]):
        with pytest.raises(TypeError, match="not supported"):
            nd.ones((2, 3)) + other
    assert nd.add(3, 4) == 7


def test_in_place_operators_write_the_same_memory():
    x = nd.ones((2, 3))
    view, before = x[0], x._array.variable.version
    x += 1
    x *= nd.array([[1, 2, 3]])
    x /= 2
    x -= 1
    assert view.asnumpy().tolist() == [0, 1, 2] and x._array.variable.version > before
    with pytest.raises(MXNetError, match="out has"):
        y = nd.ones((2, 1))
        y += nd.ones((2, 3))
    y = nd.array([2], dtype="int32")
    y += 2.5
    assert y.asnumpy().tolist() == [4]


def test_operators_as_functions_and_methods():
    x = nd.array(A)
    assert x.sum().asscalar() == 21 and nd.sum(x, axis=1).asnumpy().tolist() == [6, 15]
    assert nd.clip(x, 2, 3).asnumpy().tolist() == [[2, 2, 3], [3, 3, 3]] == x.clip(a_min=2, a_max=3).asnumpy().tolist()
    out = nd.zeros((2, 3))
    assert nd.exp(data=x, out=out) is out
    np.testing.assert_allclose(out.asnumpy(), np.exp(A), rtol=1e-6)
    with pytest.raises(AttributeError, match=r"no_such_operator.*is not known"):
        nd.no_such_operator  # noqa: B018
    with pytest.raises(TypeError, match="out must be an NDArray"):
        nd.exp(x, 3)
    with pytest.raises(MXNetError, match="unknown attribute 'sclar'"):
        nd.exp(x, sclar=1)


def test_save_and_load(tmp_path):
    path = tmp_path / "a.params"
    for data, expected in [(nd.array(A), list), ([nd.array(A)], list), ({"w": nd.array(A)}, dict),
                           ([], list), ({}, list)]:
        nd.save(path, data)
        loaded = nd.load(path)
        assert type(loaded) is expected
        for value in loaded.values() if isinstance(loaded, dict) else loaded:
            assert value.asnumpy().tolist() == A.tolist()
    assert nd.load_frombuffer(path.read_bytes()) == []
    for bad in (3, {1: nd.ones(1)}):
        with pytest.raises(ValueError, match=r"needs? to be"):
            nd.save(path, bad)
    for bad in ([3], [nd.ones(1), None], {"a": 1}):
        with pytest.raises(TypeError, match="needs to hold NDArrays, got <class"):
            nd.save(path, bad)


def test_the_sign_of_a_scalar_zero_counts():
    one = nd.array([1.0])
    assert (1 / (one * 0.0)).asscalar() == np.inf
    assert (1 / (one * -0.0)).asscalar() == -np.inf


def test_elements_that_are_not_aligned_are_not_shared():
    odd = np.frombuffer(bytes(9), np.float32, 2, offset=1)
    with pytest.raises(MXNetError, match="aligned"):
        nd.from_numpy(odd)
    np.testing.assert_array_equal(nd.from_numpy(odd, zero_copy=False).asnumpy(), odd)


def test_shapes_whose_size_does_not_fit_an_integer():
    with pytest.raises(MXNetError, match="cannot reshape"):
        nd.zeros((4,)).reshape((2**32, 2**32, 4))


@pytest.mark.parametrize("shape", [2.5, None, "a", (2, None), ("a",), object()])
def test_what_is_no_shape_is_told(shape):
    for make in (nd.zeros, nd.ones, nd.empty, lambda s: nd.full(s, 1)):
        with pytest.raises(MXNetError, match="shape"):
            make(shape)


def test_none_is_the_default_dtype():
    data = nd.array([1, 2], dtype="float64")
    assert nd.linspace(2, float("inf"), 1).asnumpy().tolist() == [2]
    assert nd.arange(3, dtype=None).dtype == nd.linspace(0, 1, 3, dtype=None).dtype == np.float32
    assert nd.random.uniform(shape=(2,), dtype=None).dtype == np.float32
    assert data.softmax(dtype=None).dtype == np.float64
    for refused in (lambda: nd.cast(data, dtype=None), lambda: data.one_hot(3, dtype=None)):
        with pytest.raises(MXNetError, match=r"dtype.*got None"):
            refused()


def test_one_element_is_formatted_as_a_number():
    form = "%.1f %.1f"  # as programs of that time print
    assert form % (nd.ones(1), nd.ones(1).asscalar()) == "1.0 1.0"


def test_squeeze_in_place_without_axes_named_leaves_out_all():
    x = nd.ones((1, 2, 1))
    assert x.squeeze().shape == (2,) and x.squeeze(axis=()).shape == (1, 2, 1)
    for axis in (None, (), []):
        assert x.squeeze(axis=axis, inplace=True).shape == (2,)
