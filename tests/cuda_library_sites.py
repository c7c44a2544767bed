"""Which calls of NVIDIA's libraries the products and convolutions of networks become, and which stay mxc's kernels.

`python tests/cuda_library_sites.py --write` writes golden/cuda_library_sites.txt anew.
"""
from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import models
from zoo import sequences

import mxc as mx
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.planning import plan_graph
from mxc.compiler.targets.cuda.ahead import UNMEASURED, CudaTarget
from mxc.compiler.targets.cuda.nvidia.forms import form_of, is_deep, with_numbers

GOLDEN = Path(__file__).parent / "golden" / "cuda_library_sites.txt"


def algebra() -> mx.sym.Symbol:
    """Products of all transposes, with factors and an array that is added."""
    a, b, c = (mx.sym.var(name) for name in "abc")
    return mx.sym.Group([
        mx.sym.dot(mx.sym.var("left"), mx.sym.var("right"), transpose_a=True),
        mx.sym.batch_dot(a, b, transpose_b=True), mx.sym.linalg.gemm(a, b, c, transpose_b=True, alpha=2.0, beta=0.5),
        mx.sym.linalg.gemm2(a, a, transpose_a=True), mx.sym.linalg.syrk(a, transpose=True)])


def convolutions() -> mx.sym.Symbol:
    """Of one to three axes, of groups, dilated, transposed; and what is added to them."""
    data, volume = mx.sym.var("data"), mx.sym.var("volume")
    first = mx.sym.Convolution(data, kernel=(3, 3), num_filter=8, num_group=2, dilate=(2, 2), pad=(2, 2), name="groups")
    added = mx.sym.Activation(mx.sym.Convolution(first, kernel=(1, 1), num_filter=8, name="point") + first,
                              act_type="relu")
    return mx.sym.Group([
        added, mx.sym.Convolution(data, kernel=(5, 5), num_filter=6, stride=(2, 2), name="strided"),
        mx.sym.Activation(mx.sym.Convolution(data, kernel=(3, 3), num_filter=6, name="tanh"), act_type="tanh"),
        mx.sym.Convolution(volume, kernel=(2, 3, 3), num_filter=4, name="volume"),
        mx.sym.Deconvolution(data, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=3, name="up")])


CASES = {
    "lenet": models.EVERY["lenet"],
    "encoder": (lambda: sequences.encoder(width=768, layers=1),
                {"data": (8, 128), "segments": (8, 128), "lengths": (8,), "positions": (128, 768)}),
    "algebra": (algebra, {"a": (2, 6, 8), "b": (2, 10, 8), "c": (2, 6, 10), "left": (7, 5), "right": (7, 9)}),
    "convolutions": (convolutions, {"data": (2, 4, 16, 16), "volume": (2, 3, 6, 8, 8)}),
}


def golden() -> str:
    """What the golden file is to have."""
    target = CudaTarget("sm_90")
    depths = UNMEASURED.depths
    assert depths is not None
    target.prefers = replace(UNMEASURED, depths=replace(depths, whole=lambda kernel: form_of(kernel) is not None,
                                                          apart=is_deep))
    lines = []
    for name, (make, shapes) in CASES.items():
        for train in (False, True):
            net = make()
            wanted = {each: "write" for each in net.list_arguments() if each not in shapes} if train else {}
            plan = plan_graph(net.graph, shapes, {}, wanted, train, target, True)
            found: Counter[str] = Counter()
            for step in plan.plan.steps:
                kernel = plan.kernels.get(step.kernel)
                if isinstance(kernel, CallKernel):
                    form = form_of(with_numbers(kernel, step.values))
                    found[f"  {step.label}: {'mxc' if form is None else form.text()}"] += 1
            lines += [f"{name}, {'training' if train else 'inference'}",
                      *(f"{line}{f' (x{count})' if count > 1 else ''}" for line, count in found.items())]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    GOLDEN.write_text(golden())
