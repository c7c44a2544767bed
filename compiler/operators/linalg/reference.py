"""Linear algebra by NumPy, whose factorisations are LAPACK's."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _turned(data: np.ndarray, is_turned: bool) -> np.ndarray:
    return np.swapaxes(data, -1, -2) if is_turned else data


def _triangle(data: np.ndarray, lower: bool) -> np.ndarray:
    return np.tril(data) if lower else np.triu(data)


def _places(extent: int, params: Params) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of a triangle's elements: the lower one's row by row, where the offset is negative, or 0 and
    `lower` is set; else the upper one's column by column."""
    if params.offset < 0 or (params.offset == 0 and params.lower):
        return np.tril_indices(extent, params.offset)
    columns, rows = np.tril_indices(extent, -params.offset)
    return rows, columns


def _factorised(what: str, work: Callable[[np.ndarray], object], data: np.ndarray) -> list[np.ndarray]:
    try:
        made = work(data)
    except np.linalg.LinAlgError as error:
        raise MXNetError(f"{what} ({error})") from None
    return [np.asarray(made)] if isinstance(made, np.ndarray) else [np.asarray(part) for part in made]  # type: ignore


def gemm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """alpha * op(A) op(B) + beta * C, the rows along `axis`"""
    a, b, *rest = (np.swapaxes(data, params.axis, -2) for data in inputs)
    made = params.alpha * (_turned(a, params.transpose_a) @ _turned(b, params.transpose_b))
    if rest:
        made = made + params.beta * rest[0]
    return [np.swapaxes(made, params.axis, -2)]


def trmm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """alpha * op(A) B, or alpha * B op(A)"""
    a = _turned(_triangle(inputs[0], params.lower), params.transpose)
    return [params.alpha * (inputs[1] @ a if params.rightside else a @ inputs[1])]


def trsm(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The X of op(A) X = alpha * B, or of X op(A) = alpha * B, by substitution; a 0 on the diagonal divides."""
    a = _turned(_triangle(inputs[0], params.lower), params.transpose)
    x = _turned(params.alpha * inputs[1], params.rightside).copy()
    a, is_lower = _turned(a, params.rightside), params.lower ^ params.transpose ^ params.rightside
    rows = range(a.shape[-1]) if is_lower else range(a.shape[-1] - 1, -1, -1)
    for done, row in enumerate(rows):
        for other in rows[:done]:
            x[..., row, :] -= a[..., row, other, None] * x[..., other, :]
        x[..., row, :] /= a[..., row, row, None]
    return [_turned(x, params.rightside)]


def syrk(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """alpha * A A^T, or alpha * A^T A"""
    a = _turned(inputs[0], params.transpose)
    return [params.alpha * (a @ np.swapaxes(a, -1, -2))]


def potrf(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The lower triangle L with L L^T = A, of which the lower triangle is read"""
    return _factorised("a matrix is not positive definite", np.linalg.cholesky, inputs[0])


def potri(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The inverse of A A^T, where A is a lower triangle"""
    lower = np.tril(inputs[0])
    if np.any(np.diagonal(lower, axis1=-2, axis2=-1) == 0):
        raise MXNetError("a matrix is not a Cholesky factor, as of potrf: its diagonal has a 0")
    (inverse,) = _factorised("a matrix is not a Cholesky factor, as of potrf", np.linalg.inv, lower)
    return [np.swapaxes(inverse, -1, -2) @ inverse]


def gelqf(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Q with orthonormal rows, and the lower triangle L with L Q = A"""
    q, r = np.linalg.qr(np.swapaxes(inputs[0], -1, -2))
    return [np.swapaxes(q, -1, -2), np.swapaxes(r, -1, -2)]


def syevd(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The eigenvectors of a symmetric matrix (its lower triangle is read) as rows, and the eigenvalues, rising. Of a
    vector the element of the largest absolute value is positive, as in MXNet."""
    values, vectors = _factorised("eigenvalues do not converge", np.linalg.eigh, inputs[0])
    rows = np.swapaxes(vectors, -1, -2)
    largest = np.take_along_axis(rows, np.abs(rows).argmax(-1)[..., None], -1)
    return [np.where(largest < 0, -rows, rows), values]


def inverse(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The inverse"""
    return _factorised("a matrix is singular, it has no inverse", np.linalg.inv, inputs[0])


def turned_inverse(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The inverse, transposed; zeros where a matrix is singular"""
    made = np.zeros_like(inputs[0])
    for index in np.ndindex(made.shape[:-2]):
        if np.linalg.slogdet(inputs[0][index])[0] != 0:
            made[index] = np.linalg.inv(inputs[0][index]).T
    return [made]


def det(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The determinants"""
    return [np.linalg.det(inputs[0]).reshape(inputs[0].shape[:-2] or (1,))]


def slogdet(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Signs, and logarithms of absolute values, of the determinants"""
    return [np.asarray(part).reshape(inputs[0].shape[:-2] or (1,)) for part in np.linalg.slogdet(inputs[0])]


def sumlogdiag(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Sums of the logarithms of the diagonals"""
    found = np.log(np.diagonal(inputs[0], axis1=-2, axis2=-1)).sum(-1)
    return [np.asarray(found).reshape(inputs[0].shape[:-2] or (1,))]


def extractdiag(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """A diagonal: above the main one where the offset is positive"""
    return [np.diagonal(inputs[0], params.offset, -2, -1)]


def makediag(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Zeros, with the data on a diagonal"""
    data = inputs[0]
    extent = data.shape[-1] + abs(params.offset)
    made = np.zeros((*data.shape[:-1], extent, extent), data.dtype)
    rows = np.arange(data.shape[-1]) + max(-params.offset, 0)
    made[..., rows, rows + params.offset] = data
    return [made]


def extracttrian(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The elements of a triangle (see `_places`)"""
    return [inputs[0][(..., *_places(inputs[0].shape[-1], params))]]


def maketrian(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Zeros, with the data's elements in a triangle (see `_places`)"""
    data = inputs[0]
    side = int((8 * data.shape[-1] + 1) ** 0.5 - 1) // 2 + abs(params.offset)
    made = np.zeros((*data.shape[:-1], side, side), data.dtype)
    made[(..., *_places(side, params))] = data
    return [made]
