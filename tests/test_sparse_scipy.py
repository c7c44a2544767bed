"""Properties of csr and row_sparse arrays, told by SciPy and NumPy, also of no rows, no columns, no elements."""
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mxc as mx

sparse = pytest.importorskip("scipy.sparse")
TYPES = ("float32", "float64", "int32")
SETTINGS = settings(max_examples=60, deadline=None)
SIZES = st.integers(0, 9)
SEEDS = st.integers(0, 2**32 - 1)


def matrix(rng: np.random.Generator, rows: int, columns: int, density: float, dtype: str) -> sparse.csr_matrix:
    """A random csr matrix, whose columns are in any order; the numbers are small, so that sums are exact."""
    dense = rng.integers(-4, 5, (rows, columns)) * (rng.random((rows, columns)) < density)
    found = sparse.csr_matrix(dense.astype(dtype))
    for row in range(rows):
        part = slice(*found.indptr[row:row + 2])
        order = rng.permutation(part.stop - part.start)
        found.indices[part], found.data[part] = found.indices[part][order], found.data[part][order]
    return found


def same(found: mx.nd.NDArray, wanted: np.ndarray, stype: str) -> None:
    """Elements, dtype, storage type, and order inside."""
    assert found.stype == stype and found.shape == wanted.shape and found.dtype == wanted.dtype
    if stype != "default":
        found.check_format()
    np.testing.assert_array_equal(found.asnumpy(), wanted)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return rng.integers(-4, 5, shape).astype(dtype)


@SETTINGS
@given(SIZES, SIZES, st.sampled_from([0, 0.2, 1]), st.sampled_from(TYPES), SEEDS)
def test_there_and_back(rows: int, columns: int, density: float, dtype: str, seed: int):
    theirs = matrix(np.random.default_rng(seed), rows, columns, density, dtype)
    ours = mx.nd.sparse.csr_matrix(theirs, dtype=dtype)
    assert ours.data.asnumpy().tolist() == theirs.data.tolist()
    assert ours.indices.asnumpy().tolist() == theirs.indices.tolist()
    again = ours.asscipy()
    assert again.dtype == theirs.dtype and (again != theirs).nnz == 0
    same(ours.tostype("default"), theirs.toarray(), "default")
    same(mx.nd.array(theirs.toarray(), dtype=dtype).tostype("csr"), theirs.toarray(), "csr")
    same(ours.tostype("default").tostype("row_sparse"), theirs.toarray(), "row_sparse")


@SETTINGS
@given(SIZES, SIZES, st.sampled_from([1, 2, 3, 8, 17]), st.sampled_from([0, 0.3, 1]), st.sampled_from(TYPES), SEEDS)
def test_products(rows: int, columns: int, width: int, density: float, dtype: str, seed: int):
    rng = np.random.default_rng(seed)
    theirs = matrix(rng, rows, columns, density, dtype)
    ours = mx.nd.sparse.csr_matrix(theirs, dtype=dtype)
    right, left = numbers(rng, (columns, width), dtype), numbers(rng, (rows, width), dtype)
    same(mx.nd.dot(ours, mx.nd.array(right, dtype=dtype)), theirs @ right, "default")
    found = mx.nd.dot(ours, mx.nd.array(left, dtype=dtype), transpose_a=True)
    same(found, theirs.T @ left, "row_sparse")
    assert found.indices.asnumpy().tolist() == np.unique(theirs.indices).tolist()
    same(mx.nd.dot(ours, mx.nd.array(left, dtype=dtype), transpose_a=True, forward_stype="default"), theirs.T @ left,
         "default")
    same(mx.nd.dot(mx.nd.array(left.T.copy(), dtype=dtype), ours, forward_stype="default"), left.T @ theirs, "default")
    same(mx.nd.dot(mx.nd.array(right.T.copy(), dtype=dtype), ours, transpose_b=True, forward_stype="default"),
         right.T @ theirs.T, "default")


@SETTINGS
@given(SIZES, SIZES, st.sampled_from([0, 0.3, 1]), st.sampled_from(TYPES), SEEDS)
def test_elementwise(rows: int, columns: int, density: float, dtype: str, seed: int):
    rng = np.random.default_rng(seed)
    first, second = (matrix(rng, rows, columns, density, dtype) for _ in range(2))
    for stype in ("csr", "row_sparse"):
        one, other = (mx.nd.array(m.toarray(), dtype=dtype).tostype(stype) for m in (first, second))
        same(one + other, (first + second).toarray(), stype)
        same(one - other, (first - second).toarray(), stype)
        same(one * other, first.multiply(second).toarray(), stype)
        same(-one, -first.toarray(), stype)
        same(one * 3, 3 * first.toarray(), stype)
        same(mx.nd.abs(one), abs(first).toarray(), stype)


@SETTINGS
@given(SIZES, SIZES, st.sampled_from([0, 0.3, 1]), st.data(), SEEDS)
def test_rows(rows: int, columns: int, density: float, data: st.DataObject, seed: int):
    rng = np.random.default_rng(seed)
    theirs = matrix(rng, rows, columns, density, "float32")
    ours = mx.nd.sparse.csr_matrix(theirs)
    np.testing.assert_array_equal(mx.nd.concat(ours, ours, dim=0).asnumpy(), sparse.vstack([theirs, theirs]).toarray())
    if rows:
        start = data.draw(st.integers(0, rows - 1))
        stop = data.draw(st.integers(start + 1, rows))
        np.testing.assert_array_equal(ours[start:stop].asnumpy(), theirs[start:stop].toarray())
        chosen = data.draw(st.lists(st.integers(0, rows - 1), max_size=6))
        same(mx.nd.take(ours, mx.nd.array(chosen, dtype="int64")), theirs[chosen].toarray(), "csr")
        kept = mx.nd.sparse.retain(ours.tostype("default").tostype("row_sparse"), mx.nd.array(chosen, dtype="int64"))
        mask = np.isin(np.arange(rows), chosen)[:, None]
        same(kept, theirs.toarray() * mask, "row_sparse")


@SETTINGS
@given(SIZES, SIZES, st.sampled_from([0, 0.3, 1]), SEEDS)
def test_sums(rows: int, columns: int, density: float, seed: int):
    theirs = matrix(np.random.default_rng(seed), rows, columns, density, "float32")
    ours, values = mx.nd.sparse.csr_matrix(theirs), theirs.toarray()
    for axis in (0, 1):
        np.testing.assert_array_equal(mx.nd.sparse.sum(ours, axis=axis).asnumpy(), values.sum(axis))
        if values.shape[axis]:
            np.testing.assert_allclose(mx.nd.sparse.mean(ours, axis=axis).asnumpy(), values.mean(axis), rtol=1e-6)
    np.testing.assert_allclose(mx.nd.norm(ours).asnumpy(), [np.linalg.norm(values)], rtol=1e-6)
    assert mx.nd.contrib.getnnz(ours).asscalar() == theirs.nnz
    np.testing.assert_array_equal(mx.nd.contrib.getnnz(ours, axis=1).asnumpy(), theirs.getnnz(1))
