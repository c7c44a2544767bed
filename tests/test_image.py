"""Linking kernels' objects into one image, and running it."""
from __future__ import annotations

import ctypes

import pytest

from mxc.compiler.error import TargetError
from mxc.compiler.targets.cpu.build import image, load
from mxc.compiler.targets.cpu.build.load import machine, optimised
from mxc.compiler.targets.cpu.build.loaded import load_functions

pytestmark = pytest.mark.skipif(not image.is_native(), reason="images are for Linux on x86-64")

SCALE = """
@table = private unnamed_addr constant [2 x double] [double 3.0, double 5.0], align 64
define double @scale(double %x, i64 %i) {
  %place = getelementptr [2 x double], ptr @table, i64 0, i64 %i
  %factor = load double, ptr %place
  %y = fmul double %x, %factor
  ret double %y
}
"""
POWER = """
declare double @pow(double, double)
declare double @scale(double, i64)
define double @power(double %x, double %y) {
  %z = call double @pow(double %x, double %y)
  %w = call double @scale(double %z, i64 1)
  ret double %w
}
"""
COUNTER = """
@count = internal global i64 0
define i64 @counter() {
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  ret i64 %new
}
"""


def objects(*texts: str) -> list[bytes]:
    host = machine()
    return [host.emit_object(optimised(text, host, 0)) for text in texts]


def test_code_constants_and_functions_of_the_c_library():
    linked = image.link(objects(POWER, SCALE), ["power", "scale"])
    assert list(linked.imports) == ["pow"]
    base = image.load(linked.code, linked.imports)
    scale = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(base + linked.symbols["scale"])
    power = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(base + linked.symbols["power"])
    assert (scale(2, 0), scale(2, 1), power(2, 10)) == (6, 10, 5120)


def test_what_it_cannot_link_is_refused():
    with pytest.raises(image.LinkError, match="more than code and constants"):
        image.link(objects(COUNTER), ["counter"])
    with pytest.raises(image.LinkError, match="the C library has no function no_such"):
        image.link(objects(POWER.replace("@pow", "@no_such"), SCALE), ["power"])
    with pytest.raises(image.LinkError, match="no object defines none"):
        image.link(objects(SCALE), ["none"])
    with pytest.raises(image.LinkError, match="no x86-64 ELF object"):
        image.link([b"\0" * 100], [])


def test_a_function_that_is_missing_here():
    with pytest.raises(TargetError, match="the C library has no function no_such"):
        image.load(bytes(64), {"no_such": 0})


def test_llvm_loads_only_what_is_of_another_form(monkeypatch: pytest.MonkeyPatch):
    simple, counter = objects(POWER, SCALE), objects(COUNTER)
    by_llvm: list[list[str]] = []
    really = load.load_by_llvm
    monkeypatch.setattr(load, "load_by_llvm", lambda codes, names: by_llvm.append(names) or really(codes, names))
    scale = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)
    assert scale(load_functions(simple, ["scale", "power"])["scale"])(2, 1) == 10
    assert load_functions([], []) == {} and not by_llvm
    count = ctypes.CFUNCTYPE(ctypes.c_int64)(load_functions(counter, ["counter"])["counter"])
    assert (count(), count(), by_llvm) == (1, 2, [["counter"]])
    with pytest.raises(TargetError, match="does not define none"):
        load_functions(simple, ["none"])
