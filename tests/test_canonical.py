"""The canonical form of loop kernels: few axes, the same results."""
from __future__ import annotations

import pytest
from kernel_cases import F, arrays_for, at, compare, expected, flat, moves, reductions, softmax

from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import Accumulator, LoopKernel, Store, acc, apply, axis, load
from mxc.compiler.kernel.simplify_index import index
from mxc.compiler.kernel.text import code_text
from mxc.compiler.targets.cpu.emit.skeletons import skeleton


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
    forms = {(n, window): code_text(canonical(pooled(n, n + 1, window))) for n in (5, 8) for window in (2, 3, 5, 7)}
    for window in (2, 3, 5, 7):
        assert forms[5, window] == forms[8, window]
    assert len(set(forms.values())) == 3 and forms[5, 5] == forms[5, 7]


def strided(stride: int, divisor: int) -> LoopKernel:
    """Every `stride`-th element, each of them `divisor` times."""
    place = apply("mul", apply("div", axis(0), index(divisor)), index(stride))
    return canonical(LoopKernel("strided", (F, F), (3 * divisor + 1,), (), (), (Store(1, axis(0), load(0, place, F)),)))


def test_short_strides_and_small_divisors_are_part_of_the_form() -> None:
    every = [(stride, divisor) for stride in (-1, 2, 3, 4) for divisor in range(2, 9)]
    assert len({code_text(strided(*numbers)) for numbers in every}) == len(every)
    assert all(not strided(*numbers).values()[1:] for numbers in every)
    assert code_text(strided(5, 9)) == code_text(strided(6, 10)) and strided(5, 9).values()[1:] == (9, 5)


def test_shapes_share_a_form() -> None:
    one, other = (canonical(add((n, 3, 4), flat((n, 3, 4)), at((2, 1)))) for n in (2, 50))
    assert one != other and code_text(one) == code_text(other)
    assert axis(0) is axis(0)


def scaled_sums(factors: int) -> LoopKernel:
    """Sums over rows, and the rows times `factors` numbers of their own."""
    rows, place = (64, 32), at((0, 32), (1, 1))
    value = load(0, place, F)
    for i in range(factors):
        value = apply("mul", value, load(1 + i, at((0, 1)), F))
    stores = (Store(factors + 1, place, value), Store(factors + 2, at((0, 1)), acc(0, F)))
    return canonical(LoopKernel("scaled", (F,) * (factors + 3), rows[:1], rows[1:],
                                (Accumulator("sum", load(0, place, F)),), stores))


def test_what_each_result_reads_once_does_not_choose_the_innermost_axis() -> None:
    """As the scales and shifts of two BatchNorms that are added up."""
    assert [skeleton(scaled_sums(n)) for n in (0, 8)] == ["rows", "rows"]
