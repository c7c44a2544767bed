"""Shapes of activations chosen by a parameter, and the constants of selu, which is one of them."""
from __future__ import annotations

from mxc.compiler.error import MXNetError
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772  # Klambauer et al., Self-Normalizing Networks, 2017


def leaky_relu(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """The data's shape for all outputs; gamma has one slope for each of the channels (axis 1), or one for all."""
    data = merge(ins[0], outs[0])
    if len(ins) == 1 or data is None:
        return [data, *ins[1:]], [data] * len(outs)
    channels = data[1] if len(data) > 1 else 1
    gamma = ins[1] or (channels,)
    if len(gamma) != 1 or (gamma[0] not in (0, 1) and channels and gamma[0] != channels):
        raise MXNetError(f"expected gamma of shape ({channels},) or (1,), got {gamma}")
    return [data, gamma if gamma[0] else (channels,)], [data] * len(outs)
