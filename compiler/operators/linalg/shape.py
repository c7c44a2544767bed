"""Shapes and dtypes of linear algebra. Leading axes are a batch, the same for all arrays."""
from __future__ import annotations

from math import isqrt

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge, merge_all


def matrix_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """All arrays are float32, or all float64."""
    known = merge_dtypes([*ins, *outs])
    if known not in (None, "float32", "float64"):
        raise MXNetError(f"expected float32 or float64, got {known}")
    return [known] * len(ins), [known] * len(outs)


def _rank(name: str, shape: Shape | None, least: int = 2) -> None:
    if shape is not None and len(shape) < least:
        raise MXNetError(f"expected {name} of {least} dimensions or more, got {shape}")


def _square(name: str, shape: Shape | None) -> Shape | None:
    """The shape with both of its last extents known if one is. Raises MXNetError when they differ."""
    _rank(name, shape)
    if shape is None:
        return None
    if shape[-2] and shape[-1] and shape[-2] != shape[-1]:
        raise MXNetError(f"expected square matrices in {name}, got the shape {shape}")
    extent = shape[-2] or shape[-1]
    return (*shape[:-2], extent, extent)


def _vector(batch: Shape) -> Shape:
    """The shape of one number for each matrix: (1,) for a single one."""
    return batch or (1,)


def square(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Square matrices of square matrices."""
    known = _square("A", merge_all([*ins, *outs]))
    return [known], [known]


def number_of_square(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A number, or several, of each square matrix."""
    data = _square("A", ins[0])
    return [data], [out if data is None else merge(_vector(data[:-2]), out) for out in outs]


def eigen(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A's eigenvectors have its shape, the eigenvalues are a vector for each matrix."""
    data = _square("A", merge(ins[0], outs[0]))
    return [data], [data, outs[1] if data is None else merge(data[:-1], outs[1])]


def gelqf(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A (..., m, n) with m <= n gives Q as A and L (..., m, m)."""
    data = merge(ins[0], outs[0])
    _rank("A", data)
    if data is not None and data[-1] and data[-2] > data[-1]:
        raise MXNetError(f"expected at least as many columns as rows in A, got the shape {data}")
    return [data], [data, outs[1] if data is None else merge((*data[:-1], data[-2]), outs[1])]


def product(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """(..., m, k) times (..., k, n), each perhaps transposed; the rows are along `axis`, the columns along the last."""
    for name, shape in zip("ABC", ins, strict=False):
        _rank(name, shape)
    if ins[0] is None or ins[1] is None:
        return ins, outs
    rank = len(ins[0])
    axis = params.axis + rank if params.axis < 0 else params.axis
    if not 0 <= axis < rank - 1:
        raise MXNetError(f"expected an axis of rows before the last of {rank} axes, got axis={params.axis}")
    if len(ins[1]) != rank:
        raise MXNetError(f"expected A and B of equally many dimensions, got {ins[0]} and {ins[1]}")
    rows, left = (ins[0][-1], ins[0][axis]) if params.transpose_a else (ins[0][axis], ins[0][-1])
    right, columns = (ins[1][-1], ins[1][axis]) if params.transpose_b else (ins[1][axis], ins[1][-1])
    if left and right and left != right:
        raise MXNetError(f"expected as many columns of A as rows of B, got {left} and {right} of the shapes {ins[0]} "
                         f"and {ins[1]}")
    other = [merge((*s[:axis], 0, *s[axis + 1:-1]), None) for s in (ins[0], ins[1])]
    try:
        batch = merge_all(other)
    except MXNetError:
        raise MXNetError(f"expected the same extents in A and B but along axis {axis} and the last one, got {ins[0]} "
                         f"and {ins[1]}") from None
    assert batch is not None
    known = merge_all([(*batch[:axis], rows, *batch[axis + 1:], columns), *ins[2:], outs[0]])
    return [*ins[:2], *[known] * (len(ins) - 2)], [known]


def triangular(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A square triangle A and a matrix B, which the output is like; A stands on its right with `rightside`."""
    data, other = _square("A", ins[0]), merge(ins[1], outs[0])
    _rank("B", other)
    if data is not None and other is not None:
        if len(data) != len(other):
            raise MXNetError(f"expected A and B of equally many dimensions, got {data} and {other}")
        place = -1 if params.rightside else -2
        if data[-1] and other[place] and data[-1] != other[place]:
            raise MXNetError(f"expected {data[-1]} {'columns' if params.rightside else 'rows'} of B, as A has, got "
                             f"{other[place]} of the shapes {data} and {other}")
        batch = merge(data[:-2], other[:-2]) or ()
        data = (*batch, *data[-2:])
        other = (*batch, *other[-2:])
    return [data, other], [other]


def syrk(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A times A transposed: square, of A's rows, or of its columns with `transpose`."""
    data = ins[0]
    _rank("A", data)
    if data is None:
        return ins, outs
    extent = data[-1] if params.transpose else data[-2]
    return [data], [merge((*data[:-2], extent, extent), outs[0])]


def _shorter(offset: int, data: Shape) -> int:
    """The length of a diagonal. Raises MXNetError where there is none."""
    length = data[-1] - abs(offset)
    if data[-1] and length <= 0:
        raise MXNetError(f"expected an offset of a diagonal in matrices of {data[-1]} rows and columns, got {offset}")
    return max(length, 0)


def extractdiag(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """A diagonal of each square matrix."""
    data = _square("A", ins[0])
    if data is None:
        return ins, outs
    return [data], [merge((*data[:-2], _shorter(params.offset, data)), outs[0])]


def makediag(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Square matrices that have a diagonal for the data's last axis."""
    data = ins[0]
    _rank("A", data, 1)
    if data is None:
        return ins, outs
    extent = data[-1] + abs(params.offset) if data[-1] else 0
    return [data], [merge((*data[:-1], extent, extent), outs[0])]


def extracttrian(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The elements of a triangle of each square matrix."""
    data = _square("A", ins[0])
    if data is None:
        return ins, outs
    side = _shorter(params.offset, data)
    return [data], [merge((*data[:-2], side * (side + 1) // 2), outs[0])]


def maketrian(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Square matrices whose triangle has the elements of the data's last axis."""
    data = ins[0]
    _rank("A", data, 1)
    if data is None:
        return ins, outs
    side = (isqrt(8 * data[-1] + 1) - 1) // 2
    if side * (side + 1) // 2 != data[-1]:
        raise MXNetError(f"expected as many elements along the last axis as a triangle has (1, 3, 6, 10, ...), got "
                         f"{data[-1]} of the shape {data}")
    extent = side + abs(params.offset) if data[-1] else 0
    return [data], [merge((*data[:-1], extent, extent), outs[0])]
