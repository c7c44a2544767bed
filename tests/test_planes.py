"""Convolutions of plain arrays whose taps read one copy, and their gradients to the data: the kernels, and when they
are taken."""
from __future__ import annotations

import pytest
from library_cases import PLANES, check, plane_case, window

from mxc.compiler.kernel.plain import filter_block, fits_planes, plane_waste
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.machine.isa import ISAS
from mxc.compiler.targets.cpu.preferences import FIGURES

KINDS = ["forward", "data"]
VECTORS = pytest.mark.parametrize("vectors", [0, 2], ids=["pixels", "filters"])


@VECTORS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLANES)
def test_kernel(name, kind, vectors, instructions):
    check(*plane_case(kind, PLANES[name], "float32", instructions.isa, vectors=vectors), instructions)


@VECTORS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["same", "deconvolution", "stride beyond two", "3d"])
def test_float64_an_epilogue_and_a_transposed_result(name, kind, vectors, instructions):
    for dtype, form, few in (("float64", {"epilogue": True}, vectors // 2), ("float32", {"epilogue": True}, vectors),
                             ("float32", {"flat": False}, vectors)):
        check(*plane_case(kind, PLANES[name], dtype, instructions.isa, vectors=few, **form), instructions)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("filters", [*range(1, 14), 23])
def test_tiles_of_all_heights(filters, kind, instructions):
    """For so many filters, a tile has several vectors, some, one, and a rest."""
    for width in (15, 16, 17, 47, 64, 129):
        w = window(1, 1, filters, filters, (1, 2, width), (1, 2, 2))
        check(*plane_case(kind, w, "float32", instructions.isa), instructions)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vectors", [1, 2])
def test_rows_of_all_lengths(vectors, kind, instructions):
    """A row has one tile of pixels, of any width, or several."""
    for width in (*range(2, 27), 61):
        w = window(1, 1, 3, 33, (1, 2, width), (1, 2, 2))
        check(*plane_case(kind, w, "float32", instructions.isa, vectors=vectors), instructions)


@VECTORS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda i: i.name)
def test_one_text_serves_every_size(isa, kind, vectors):
    first, second = (plane_case(kind, window(n, 1, c, f, (1, h, h), (1, k, k)), "float32", isa, vectors=vectors)[0]
                     for n, c, f, h, k in ((1, 16, 8, 5, 3), (3, 32, 7, 9, 2)))
    assert library.source(first, "k", isa) == library.source(second, "k", isa)


@VECTORS
@pytest.mark.parametrize("kind", KINDS)
def test_units_copy_what_they_read_whichever_thread_runs_them(kind, vectors, instructions):
    w = window(1, 1, 50, 96, (1, 9, 9), (1, 3, 3))
    call, arrays = plane_case(kind, w, "float32", instructions.isa, vectors=vectors)
    assert library.units(call, instructions.isa) > 1
    check(call, arrays, instructions)


def test_which_windows_the_kernels_are_for():
    def fits(*arguments: object, dtype: str = "float32", transposed: bool = False, **others: object) -> bool:
        w = window(*arguments, **others)  # type: ignore[arg-type]
        return fits_planes(w, dtype, FIGURES.planes, transposed)

    assert fits(1, 1, 64, 64, (1, 28, 28), (1, 3, 3), pad=(0, 1, 1))
    assert fits(1, 1, 64, 64, (1, 28, 28), (1, 3, 3), pad=(0, 1, 1), transposed=True)
    assert not fits(1, 1, 64, 64, (1, 28, 28), (1, 3, 3), pad=(0, 1, 1), dtype="float16")
    assert not fits(1, 1, 64, 64, (1, 28, 28), (1, 1, 1))
    assert fits(1, 1, 64, 64, (1, 28, 28), (1, 1, 1), stride=(1, 2, 2))
    assert not fits(1, 1, 64, 64, (1, 7, 7), (1, 3, 3), pad=(0, 1, 1))  # few pixels
    assert not fits(1, 1, 64, 64, (1, 400, 4), (1, 3, 3), pad=(0, 1, 1))  # between rows there are as many
    assert not fits(1, 1, 64, 64, (1, 1, 5000), (1, 1, 3), pad=(0, 0, 1))  # a row that leaves the cache


def test_which_windows_have_filters_in_lanes():
    def block(*arguments: object, dtype: str = "float32", transposed: bool = False, **others: object) -> int:
        return filter_block(window(*arguments, **others), dtype, FIGURES.filters, 16, transposed)  # type: ignore[arg-type]

    assert block(1, 1, 64, 64, (1, 7, 7), (1, 3, 3), pad=(0, 1, 1)) == 32
    assert block(1, 1, 64, 48, (1, 28, 28), (1, 3, 3), pad=(0, 1, 1)) == 16
    assert block(1, 1, 64, 50, (1, 28, 28), (1, 3, 3), pad=(0, 1, 1)) == 0
    assert block(1, 1, 64, 50, (1, 28, 28), (1, 3, 3), pad=(0, 1, 1), transposed=True) == 32
    assert block(1, 1, 64, 50, (1, 28, 28), (1, 3, 3), pad=(0, 1, 1)) == 0
    assert block(1, 1, 3, 64, (1, 224, 224), (1, 3, 3), pad=(0, 1, 1)) == 0  # soon summed up
    assert block(1, 1, 64, 64, (1, 28, 28), (1, 4, 4), stride=(1, 4, 4), transposed=True) == 0  # in each phase
    assert block(1, 1, 64, 64, (1, 28, 28), (1, 1, 1)) == 0
    assert block(1, 1, 64, 64, (1, 28, 28), (1, 3, 3), dtype="float16") == 0
    assert block(1, 1, 64, 64, (1, 7, 6), (1, 3, 3), pad=(0, 1, 1)) == 0  # few pixels
    assert block(1, 1, 512, 64, (1, 7, 400), (1, 3, 3), pad=(0, 1, 1)) == 0  # rows that leave the cache


def test_multiply_adds_with_what_is_no_pixel():
    assert plane_waste(window(1, 1, 3, 8, (1, 1, 34), (1, 1, 3)), 16) == 0
    assert plane_waste(window(1, 1, 3, 8, (1, 3, 34), (1, 2, 3)), 16) == 18 * (80 / 64 - 1)
