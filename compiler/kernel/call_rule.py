"""What the rule of an anchor sees and says, and geometry that rules share.

A call rule (`call:` in ops.yaml) is `def NAME(c, params) -> (geometry, axes)`: `c` knows the shapes and dtypes of the
node's inputs and output, `geometry` is the record that a template's constructor in `calls.py` makes, and `axes[i]` is
the template's output axis that is axis i of the node's output.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from mxc.compiler.kernel.geometry import Geometry, Triple, Window
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shape

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Preferences


class CallNode(Protocol):
    """What a call rule sees of its node: shapes and dtypes of its inputs, the shape of its output, and the target's
    figures."""

    out_shape: Shape

    @property
    def prefers(self) -> Preferences: ...

    def shape(self, k: int) -> Shape: ...

    def dtype(self, k: int) -> str: ...


Called = tuple[Geometry[int], Sequence[int]]  # a call rule gives (geometry, axes), as the module's text says


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def triple(values: Sequence[int], fill: int) -> Triple:
    """The last three of `values`, with `fill` for the axes that are missing in front."""
    padded = (fill,) * (3 - len(values)) + tuple(values)
    return padded[0], padded[1], padded[2]


def strides(shape: Shape) -> tuple[int, ...]:
    """Strides over (n, c, d, h, w) of an array with one to three spatial axes."""
    strides = dense(shape)
    return (*strides[:2], *triple(strides[2:], 0))


def template_axes(shape: Shape) -> tuple[int, ...]:
    """The template axes (n, c, d, h, w) of an array with one to three spatial axes."""
    return (0, 1, *range(7 - len(shape), 5))


def window_of(params: Params, data: Shape, out: Shape, groups: int) -> Window[int]:
    """The geometry of a convolution of `data` to `out`, both (n, c, spatial...)."""
    spatial = len(data) - 2
    return Window(batch=data[0], groups=groups, channels=data[1] // groups, filters=out[1] // groups,
                  data=triple(data[2:], 1), out=triple(out[2:], 1), kernel=triple(params.kernel, 1),
                  stride=triple(tuple(params.stride) or (1,) * spatial, 1),
                  dilate=triple(_dilate(params) or (1,) * spatial, 1),
                  pad=triple(tuple(params.pad) or (0,) * spatial, 0))


def _dilate(params: Params) -> Shape:
    return tuple(params.dilate) if "dilate" in params else ()


def permuted(values: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple(values[i] for i in order)
