"""The canonical form of loop kernels: few axes, the same results."""
from __future__ import annotations

import pytest
from kernel_cases import F, arrays_for, at, compare, expected, flat, moves, reductions, softmax

from mxc.compiler.kernel.canonical import canonical
from mxc.compiler.kernel.ir import LoopKernel, Store, apply, axis, load
from mxc.compiler.kernel.text import form_text


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
    assert made.domain == (4, 4, 12) and "div" not in form_text(made)


@pytest.mark.parametrize("kernel", [*moves(), *reductions()], ids=lambda k: k.name)
def test_same_results_and_stable(kernel: LoopKernel) -> None:
    made = canonical(kernel)
    assert canonical(made) == made
    arrays = arrays_for(kernel)
    compare(kernel, expected(made, arrays), expected(kernel, arrays))


def test_shapes_share_a_form() -> None:
    one, other = (canonical(add((n, 3, 4), flat((n, 3, 4)), at((2, 1)))) for n in (2, 50))
    assert one != other and form_text(one) == form_text(other)
    assert axis(0) is axis(0)
