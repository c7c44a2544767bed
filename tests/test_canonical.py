"""The canonical form of loop kernels: few axes, the same results."""
from __future__ import annotations

import pytest
from kernel_cases import F, arrays_for, at, compare, expected, flat, moves, reductions, softmax

from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, acc, apply, axis, load
from mxc.compiler.kernel.text import code_text


def add(extents, left, right) -> LoopKernel:
    total = apply("add", load(0, left, F), load(1, right, F))
    return LoopKernel("add", (F, F, F), extents, (), (), (Store(2, flat(extents), total),))


@pytest.mark.parametrize(("kernel", "domain", "reduce"), [
    (add((2, 3, 4), flat((2, 3, 4)), flat((2, 3, 4))), (24,), ()),
    (add((2, 3, 4), flat((2, 3, 4)), at((2, 1))), (6, 4), ()),
    (add((2, 3, 4), flat((2, 3, 4)), at((1, 1))), (2, 3, 4), ()),
    (add((2, 1, 4), at((0, 4), (2, 1)), at((2, 1))), (2, 4), ()),
    (add((1, 1), at((0, 1)), at((1, 1))), (), ()),
    (softmax(8, 5, False), (8,), (5,)),
])
def test_axes(kernel: LoopKernel, domain: tuple, reduce: tuple) -> None:
    made = canonical(kernel)
    assert (made.domain, made.reduce) == (domain, reduce)


def test_axis_used_in_two_parts_is_split() -> None:
    kernel = next(k for k in moves() if k.name == "split axis")
    made = canonical(kernel)
    assert made.domain == (4, 4, 12) and "div" not in code_text(made)


@pytest.mark.parametrize("kernel", [*moves(), *reductions()], ids=lambda k: k.name)
def test_same_results_and_stable(kernel: LoopKernel) -> None:
    made = canonical(kernel)
    assert canonical(made) == made
    arrays = arrays_for(kernel)
    compare(kernel, expected(made, arrays), expected(kernel, arrays))


def pooled(height: int, width: int, window: int) -> LoopKernel:
    """Windows side by side, over rows of which one element is left out, so that no axes are one."""
    pitch = width * window + 1
    place = at((0, pitch * window), (1, window), (2, pitch), (3, 1))
    return LoopKernel("pool", (F, F), (height, width), (window, window), (Accumulator("max", load(0, place, F)),),
                      (Store(1, flat((height, width)), acc(0, F)),))


def test_short_windows_are_part_of_the_form() -> None:
    forms = {(n, window): code_text(canonical(pooled(n, n + 1, window))) for n in (5, 8) for window in (2, 3, 4, 5)}
    for window in (2, 3, 4, 5):
        assert forms[5, window] == forms[8, window]
    assert len(set(forms.values())) == 3 and forms[5, 4] == forms[5, 5]


def test_shapes_share_a_form() -> None:
    one, other = (canonical(add((n, 3, 4), flat((n, 3, 4)), at((2, 1)))) for n in (2, 50))
    assert one != other and code_text(one) == code_text(other)
    assert axis(0) is axis(0)
