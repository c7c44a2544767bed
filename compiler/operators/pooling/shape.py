"""Shapes and flops of pooling."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape, Shapes, merge


def pooling_v1(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The shape of Pooling, for data with 4 axes."""
    data = ins[0]
    if data is None:
        return ins, outs
    if len(data) != 4:
        raise MXNetError(f"expected data of 4 axes, got {data}")
    return ins, [merge(pooled(params, data), outs[0])]


@dataclass(frozen=True)
class Windows:
    """Pooling with a number for every axis of space; `first` is the position of the first such axis."""

    kernel: Shape
    stride: Shape
    pad: Shape
    first: int


def windows(params: Params, data: Shape) -> Windows:
    """The windows over `data`; global pooling has one, of the size of space (its kernel, stride and pad do not count).

    Raises MXNetError when the parameters do not fit each other or the data's rank.
    """
    rank = len(data) - 2
    if not 1 <= rank <= 3:
        raise MXNetError(f"expected data of 3, 4 or 5 axes, got {data}")
    layout = params.get("layout")
    if layout is not None and (not isinstance(layout, str) or len(layout) != rank + 2):
        raise MXNetError(f"expected a layout of {rank + 2} axes for data {data}, got {layout}")
    first = 1 if isinstance(layout, str) and layout.endswith("C") else 2
    is_same = params["pooling_convention"] == "same" and not params["global_pool"]
    if is_same and (rank > 1 or any(params.pad)):
        raise MXNetError("pooling_convention same is for one axis of space, without pad; others take valid or full; "
                         f"got pad {params.pad} for data {data}")
    if params["global_pool"]:
        return Windows(data[first:first + rank], (1,) * rank, (0,) * rank, first)
    kernel = params["kernel"]
    assert isinstance(kernel, tuple)
    if len(kernel) != rank:
        raise MXNetError(f"expected a kernel with {rank} numbers for data {data}, got {kernel}")
    parts = []
    for name, default in (("stride", 1), ("pad", 0)):
        given = () if is_same and name == "pad" else params[name]
        given = given or (default,) * rank
        assert isinstance(given, tuple)
        if len(given) != rank or min(given) < default:
            raise MXNetError(f"expected {name} with {rank} numbers of at least {default}, got {given}")
        parts.append(given)
    if min(kernel) < 1 or any(p >= k for p, k in zip(parts[1], kernel, strict=True)):
        raise MXNetError(f"expected a kernel of at least 1 and larger than pad, got kernel {kernel} and pad {parts[1]}")
    return Windows(kernel, parts[0], parts[1], first)


def pooled(params: Params, data: Shape) -> Shape:
    """The output's shape; unknown sizes (0) stay unknown."""
    if params["pool_type"] == "lp" and params.get("p_value") not in (1, 2, 3):
        raise MXNetError(f"expected a p_value of 1, 2 or 3 for pool_type lp, got {params.get('p_value')}")
    convention = params.pooling_convention
    w = windows(params, data)
    out = list(data)
    for i, (k, s, p) in enumerate(zip(w.kernel, w.stride, w.pad, strict=True)):
        size = data[w.first + i]
        if params["global_pool"]:
            out[w.first + i] = 1
        elif size:
            room = size + 2 * p - k
            if room < 0:
                raise MXNetError(f"kernel size {k} exceeds the padded input's {size + 2 * p} along axis {w.first + i}")
            windows_behind = {"valid": room // s, "full": -(-room // s), "same": (size - 1) // s}
            out[w.first + i] = windows_behind[convention] + 1
    return tuple(out)


def pooling(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """size = (size + 2 pad - kernel) / stride + 1, rounded down (valid) or up (full); size / stride, rounded up (same);
    1 for global pooling."""
    data = ins[0]
    return (ins, outs) if data is None else (ins, [merge(pooled(params, data), outs[0])])


def pooling_flops(params: Params, ins: Sequence[Shape], outs: Sequence[Shape]) -> int:
    """One for each element of each window; all of the input for global pooling."""
    if params.global_pool:
        return prod(ins[0])
    kernel = params["kernel"]
    assert isinstance(kernel, tuple)
    return prod(outs[0]) * prod(kernel)
