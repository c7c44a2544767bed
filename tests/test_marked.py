"""Maps that have one number everywhere along their last axis but at one place, as one_hot."""
from __future__ import annotations

import numpy as np
import pytest
from instruction_sets import InstructionSet
from kernel_cases import F, expected, flat

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.ir import INDEX, LoopKernel, Store, Value, apply, axis, cast, const, load
from mxc.compiler.kernel.simplify_index import index
from mxc.compiler.targets.cpu.emit.skeletons import one_place


def marked(dtype: str, domain: tuple[int, ...], there: Value, others: Value, wide: bool = False) -> LoopKernel:
    """`there` at the place that buffer 0 has for each row, `others` elsewhere. wide: compared as indices."""
    row: Value = axis(0)
    for i, extent in enumerate(domain[1:-1], 1):
        row = apply("add", apply("mul", row, index(extent)), axis(i))
    last, place = axis(len(domain) - 1), load(0, row, "int32")
    test = apply("eq", last, cast(place, INDEX)) if wide else apply("eq", cast(last, "int32"), place)
    store = Store(2, flat(domain), apply("where", test, there, others))
    return LoopKernel(f"{dtype} {domain}", ("int32", F, dtype), domain, (), (), (store,))


KERNELS = [
    marked(F, (40, 9), const(1.0, F), const(0.0, F)),
    marked(F, (2, 3, 9000), const(2.5, F), const(-1.0, F), wide=True),
    marked(F, (5, 70), load(1, axis(0), F), const(0.0, F)),
    marked("float64", (3, 33), const(1.0, "float64"), const(0.0, "float64")),
    marked("float16", (3, 33), const(1.0, "float16"), const(0.5, "float16")),
    marked("int8", (3, 65), const(7, "int8"), const(-1, "int8")),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_against_interpreter(kernel: LoopKernel, instructions: InstructionSet) -> None:
    """Places before the first element and behind the last one are nowhere."""
    assert one_place(kernel) is not None
    rows, last = int(np.prod(kernel.domain[:-1])), kernel.domain[-1]
    places = np.resize(np.array([0, last - 1, last // 2, -1, last, 2**31 - 1, -2**31]), rows).astype("int32")
    factors = np.linspace(1, 2, rows, dtype="float32")
    arrays = [places, factors, np.zeros(rows * last, kernel.buffers[2])]
    want = expected(kernel, arrays)
    instructions.run(kernel, arrays)
    np.testing.assert_array_equal(arrays[2], want[2])


def test_other_maps() -> None:
    along = load(1, axis(1), F)
    test = apply("eq", axis(1), cast(load(0, axis(0), "int32"), INDEX))
    for value, place in ((apply("where", test, along, const(0.0, F)), flat((3, 9))),
                         (apply("where", test, const(1.0, F), along), flat((3, 9))),
                         (apply("where", apply("lt", axis(1), index(4)), const(1.0, F), const(0.0, F)), flat((3, 9))),
                         (apply("where", test, const(1.0, F), const(0.0, F)), ir.apply("mul", flat((3, 9)), index(2)))):
        assert one_place(LoopKernel("", ("int32", F, F), (3, 9), (), (), (Store(2, place, value),))) is None
