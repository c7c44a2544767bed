"""Kernels with operators of the program's own."""
from __future__ import annotations

from typing import Any

import elementwise_operators  # noqa: F401  # registers them
from programs import lowered

import mxc as mx
from mxc.compiler.kernel.ir import LoopKernel


def kernels() -> list[LoopKernel]:
    """Of a formula and of three native functions, forward and backward, with a built-in operator between them."""
    net: Any = mx.sym.cut_swish(mx.sym.Variable("data"), beta=1.5) * 3
    net = mx.sym.blended(mx.sym.often_halved(net, most=2), mx.sym.Variable("other"), sharp=True)
    net = net + mx.sym.wholes(mx.sym.Variable("third"))
    shapes = {"data": (50, 7), "other": (50, 7), "third": (50, 7)}
    launches = lowered(net.graph, shapes, None, dict.fromkeys(shapes, "write"), True).launches
    return [launch.kernel for launch in launches if isinstance(launch.kernel, LoopKernel)]
