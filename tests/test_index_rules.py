"""Index rules against the operators' NumPy references."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mxc.compiler.kernel.index_rule import flatten
from mxc.compiler.kernel.interpret import run
from mxc.compiler.kernel.ir import LoopKernel, Store, Value, axis, load
from mxc.compiler.kernel.simplify_index import Simplifier
from mxc.compiler.ops import table

CASES = [
    ("Reshape", {"shape": (4, 6)}, [(2, 3, 4)]), ("transpose", {"axes": (1, 2, 0)}, [(2, 3, 4)]),
    ("transpose", {}, [(2, 3)]), ("slice_axis", {"axis": 1, "begin": -4, "end": None}, [(2, 5)]),
    ("Concat", {"num_args": 3, "dim": 1}, [(2, 3), (2, 1), (2, 4)]),
    ("SliceChannel", {"num_outputs": 2}, [(2, 4, 2)]),
    ("SliceChannel", {"num_outputs": 2, "squeeze_axis": True}, [(3, 2)]),
    ("_mxc_pack_rows", {"block": 4}, [(2, 5, 3)]), ("_arange", {"start": 2, "stop": 9, "step": 1.5, "repeat": 2}, []),
    ("_arange", {"start": 5, "stop": None, "dtype": "int32"}, []),
    ("slice", {"begin": (-1, None), "end": (None, -1), "step": (-2, 3)}, [(5, 6)]),
    ("_slice_assign", {"begin": (1, None), "end": (None, None), "step": (2, -3)}, [(6, 5), (3, 2)]),
    ("tile", {"reps": (2, 1, 3)}, [(2, 3)]), ("repeat", {"repeats": 3}, [(2, 3)]),
    ("repeat", {"repeats": 3, "axis": -2}, [(2, 3)]), ("depth_to_space", {"block_size": 2}, [(1, 8, 2, 3)]),
    ("space_to_depth", {"block_size": 2}, [(1, 2, 4, 6)]), ("diag", {"k": 1, "axis1": 2, "axis2": 0}, [(2, 3, 4)]),
    ("Pad", {"mode": "reflect", "pad_width": (0,) * 4 + (2, 1, 0, 3)}, [(1, 2, 3, 4)]),
    ("Pad", {"mode": "edge", "pad_width": (0,) * 4 + (2, 1, 0, 3)}, [(1, 2, 3, 4)]),
    ("im2col", {"kernel": (2, 3), "pad": (1, 0), "stride": (2, 1)}, [(2, 2, 4, 5)]),
    ("_contrib_index_array", {"axes": (1, 0)}, [(2, 3)]),
]


class Context:
    """A node alone: loads are of its own inputs."""

    def __init__(self, inputs: Sequence[np.ndarray], out: np.ndarray, output: int):
        self.inputs, self.output = inputs, output
        self.out_shape, self.out_dtype = out.shape, out.dtype.name
        self.count = len(inputs)

    def shape(self, k: int) -> tuple[int, ...]:
        return self.inputs[k].shape

    def dtype(self, k: int) -> str:
        return self.inputs[k].dtype.name

    def load(self, k: int, index: Sequence[Value], when: Value | None = None, fill: Value | None = None) -> Value:
        return load(k, flatten(index, self.shape(k)), self.dtype(k), when, fill)


@pytest.mark.parametrize(("name", "params", "shapes"), CASES)
def test_against_reference(name: str, params: dict, shapes: list) -> None:
    op = table.get(name)
    made = op.make_params(params)
    inputs = [np.arange(1, np.prod(s) + 1, dtype="float32").reshape(s) * (i + 1) for i, s in enumerate(shapes)]
    outs = op.rule("reference")(made, inputs, False, np.random.default_rng(0))
    for position, out in enumerate(outs):
        out = np.ascontiguousarray(out)
        value = op.rule("index")(Context(inputs, out, position), made, tuple(map(axis, range(out.ndim))))
        simplify = Simplifier(out.shape)
        place = simplify(flatten(tuple(map(axis, range(out.ndim))), out.shape))
        buffers = (*(a.dtype.name for a in inputs), out.dtype.name)
        result = np.full(out.size, 99, out.dtype)
        run(LoopKernel(name, buffers, out.shape, (), (), (Store(len(inputs), place, simplify(value)),)),
            [*(a.ravel() for a in inputs), result])
        np.testing.assert_array_equal(result.reshape(out.shape), out)
