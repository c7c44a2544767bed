"""Geometry as records: how they become a kernel's run-time integers and the parts of its key, and back."""
from __future__ import annotations

import inspect
import itertools
from dataclasses import dataclass, fields, replace

import pytest

from mxc.compiler.kernel import calls, gemm_of_parts, geometry, interpret_calls, ir, plane_geometry, word_geometry
from mxc.compiler.kernel.geometry import Geometry, Window
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.library.printing import Integer, NoAlias, Parameters, Pointer

RECORDS = [each for module in (geometry, plane_geometry, word_geometry, gemm_of_parts)
           for _, each in inspect.getmembers(module, inspect.isclass)
           if issubclass(each, Geometry) and "template" in vars(each) and each.__module__ == module.__name__]
WINDOW = Window(1, 2, 3, 4, (5, 6, 7), (8, 9, 10), (11, 12, 13), (14, 15, 16), (17, 18, 19), (20, 21, 22))
VALUES = {"window": WINDOW, "data_strides": (23, 24, 25, 26, 27), "out_strides": (33, 34, 35, 36, 37),
          "a_strides": (43, 44, 45), "b_strides": (53, 54, 55), "starts": (56, 57), "dtype": "float32",
          "kernel": WINDOW.kernel,
          "whole": calls.gemm("float32", (63, 64, 65, 66), (67, 68, 69), (70, 71, 72))}


def record(kind: type[Geometry]) -> Geometry:
    """A record of different numbers."""
    numbers = itertools.count(100)
    return kind(**{each.name: VALUES.get(each.name) or next(numbers) for each in fields(kind)})


def test_the_numbers_of_a_window_are_in_the_order_of_its_fields():
    assert WINDOW.numbers() == tuple(range(1, 23))
    assert Window.of(range(1, 23)) == WINDOW


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.template)
def test_a_record_is_read_back_from_its_numbers(kind):
    made = record(kind)
    others = [-n for n in made.extents]
    read = made.with_extents(others)
    assert type(read) is kind and list(read.extents) == others and read.params == made.params
    assert made.with_extents(made.extents) == made
    assert len(set(made.extents)) == len(made.extents)


@pytest.mark.parametrize("kind", [kind for kind in RECORDS if kind is not geometry.Parts],
                         ids=lambda kind: kind.template)
def test_a_field_is_baked_or_given(kind):
    """What is baked is in the key with its name, once; all else are run-time integers, windows first."""
    made = record(kind)
    names = [each.name for each in fields(kind)]
    assert [name for name, _ in made.params] == list(kind.baked) and set(kind.baked) <= set(names)
    baked = {value for _, value in made.params}
    assert not baked & set(made.extents)
    assert ("flat" in names) == issubclass(kind, geometry.Merging)
    if isinstance(made, geometry.Windowed):
        assert made.extents[:22] == WINDOW.numbers()


def test_the_order_of_run_time_integers_that_artifacts_keep():
    """Artifacts and stored plans hold them by position: another order needs another version of these files."""
    assert record(geometry.Gemm).extents == (100, 101, 102, 103, 43, 44, 45, 53, 54, 55)
    assert record(geometry.MaxPoolGrad).extents[22:] == (23, 24, 25, 26, 27, 33, 34, 35, 36, 37)
    ring = replace(record(geometry.BlockedDepthwise), ring_start=3, ring=7)  # type: ignore[call-arg]
    assert ring.extents[22:] == (23, 24, 25, 26, 27, 3, 7)


def test_parts_have_the_code_and_the_numbers_of_their_whole():
    made = record(geometry.Parts)
    assert dict(made.params) == {"whole": "gemm", **dict(made.whole.params)}
    assert made.extents == (*made.whole.extents, 100)


def test_every_record_has_a_definition_and_code():
    alone = {geometry.Parts.template}  # a CPU divides no sums
    assert {kind.template for kind in RECORDS} - alone == set(library.MODULES)
    assert set(RECORDS) == set(interpret_calls._TEMPLATES)


def test_axes_are_merged_where_all_stores_walk_them_as_one():
    w = Window(1, 1, 2, 3, (1, 6, 5), (1, 4, 3), (1, 3, 3))
    made = calls.convolution("float32", w, (60, 30, 30, 5, 1), 0)

    def kernel(row: int) -> ir.CallKernel:
        place = calls.linear({0: 36, 1: 12, 3: row, 4: 1})
        return calls.call("", made, ("float32",) * 3, [ir.Store(2, place, ir.acc(0, "float32"))])

    flat, apart = kernel(3), kernel(4)
    assert dict(flat.params)["flat"] and flat.stores[0].index is calls.linear({0: 36, 1: 12, 2: 1})
    assert not dict(apart.params)["flat"] and apart.extents == flat.extents == made.extents


def test_parameters_of_a_printed_function():
    @dataclass(frozen=True)
    class Call(Parameters):
        args: Pointer
        target: NoAlias
        count: Integer

    assert Call.text() == "ptr args, ptr noalias target, i64 count"
    assert Call("a", "b", "c").values() == ["a", "b", "c"]  # type: ignore[arg-type]
