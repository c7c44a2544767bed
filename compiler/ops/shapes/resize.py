"""Shape rules of operators that resample images."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.shapes.basic import Shape, Shapes, merge
from mxc.compiler.ops.table import Params


def image(data: Shape) -> Shape:
    """`data` itself. Raises MXNetError when it is not (batch, channels, height, width)."""
    if len(data) != 4:
        raise MXNetError(f"expected data of 4 axes (batch, channels, height, width), got {data}")
    return data


def adaptive_size(params: Params) -> Shape:
    """Height and width of an adaptive pooling's output: those given, a single number for both, (1, 1) for any other
    count of numbers."""
    given = params["output_size"]
    assert isinstance(given, tuple)
    return given * 2 if len(given) == 1 else given if len(given) == 2 else (1, 1)


def adaptive_pooling(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Batch and channels stay, space has the parameter's size."""
    if ins[0] is None:
        return ins, outs
    return ins, [merge((*image(ins[0])[:2], *adaptive_size(params)), outs[0])]
