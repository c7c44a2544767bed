"""All kernels of whole networks, for inference and training, as code of GPUs: none lacks code, none puts numbers out of
its registers, and of a multiprocessor's threads half run at a time in products and 7 of 16 in others, or there is a
reason why not (docs/cuda.md)."""
from __future__ import annotations

from collections.abc import Callable

import models
import pytest
from zoo import sequences

import mxc as mx
from mxc.compiler.cache import Cache
from mxc.compiler.error import TargetError
from mxc.compiler.kernel.ir import CallKernel, Kernel
from mxc.compiler.planning import plan_graph
from mxc.compiler.targets.cuda import products
from mxc.compiler.targets.cuda.ahead import CudaTarget
from mxc.compiler.targets.cuda.code import toolchain

Case = tuple[Callable[[], mx.sym.Symbol], models.Shapes]
NETWORKS: dict[str, Case] = {
    "resnet50": models.EVERY["resnet50"], "ssd": models.EVERY["ssd"], "language_model": models.EVERY["language_model"],
    "encoder": (lambda: sequences.encoder(width=768, layers=1),
                {"data": (8, 128), "segments": (8, 128), "lengths": (8,), "positions": (128, 768)})}
# The least share of a multiprocessor's threads, by the beginning of a kernel's name.
LESS = {"_mxc_rnn_layer": 0.18, "_mxc_depthwise": 0.31, "_mxc_max_pool_grad": 0.25, "transpose+transpose": 0.37}


def kernels_of(name: str, train: bool, target: CudaTarget) -> dict[str, Kernel]:
    """The kernels of a network's plan, by key."""
    make, shapes = NETWORKS[name]
    net = make()
    requests = {n: "write" for n in net.list_arguments() if n not in shapes} if train else {}
    planned = plan_graph(net.graph, shapes, {}, requests, train, target, True)
    assert all(step.host is None for step in planned.plan.steps), name
    return planned.kernels


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", NETWORKS)
def test_kernels(name: str, arch: str, tmp_path) -> None:
    try:
        toolchain()
    except TargetError as error:
        pytest.skip(str(error))
    tmp_path.chmod(0o700)
    target = CudaTarget(arch, Cache(tmp_path))
    wrong = []
    for key, kernel in {**kernels_of(name, False, target), **kernels_of(name, True, target)}.items():
        library = target.load({key: kernel})
        if library.missing:
            wrong.append(f"{kernel.name}: no code for {library.missing[key]}")
            continue
        used = target.usage(library.codes[key])
        usual = 0.5 if isinstance(kernel, CallKernel) and products.has_form(kernel) else 7 / 16
        least = next((share for begin, share in LESS.items() if kernel.name.startswith(begin)), usual)
        if used["stack"] or used["occupancy"] < least:
            wrong.append(f"{kernel.name}: {used}")
    assert not wrong, "\n".join(wrong)
