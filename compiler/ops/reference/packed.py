"""What the operators compute that the layout pass makes: the packed weight is unpacked, the plain operator runs."""
from __future__ import annotations

import numpy as np

from mxc.compiler.ops import table
from mxc.compiler.ops.philox import Draws
from mxc.compiler.ops.table import Params


def pack_rows(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """(G, R, K) -> (G, ceil(R / block), K, block): rows in blocks, the last block filled up with zeros."""
    (data,) = inputs
    groups, rows, depth = data.shape
    blocks = -(-rows // params.block)
    filled = np.zeros((groups, blocks * params.block, depth), data.dtype)
    filled[:, :rows] = data
    return [filled.reshape(groups, blocks, params.block, depth).transpose(0, 1, 3, 2)]


def unpacked(packed: np.ndarray, rows: int) -> np.ndarray:
    """(G, blocks, K, block) -> (G, rows, K)"""
    groups, blocks, depth, block = packed.shape
    return packed.transpose(0, 1, 3, 2).reshape(groups, blocks * block, depth)[:, :rows]


def _run(op: str, params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
         **more: object) -> list[np.ndarray]:
    """`op` with those of its parameters that `params` has."""
    operator = table.get(op)
    given = {k: v for k, v in params.items() if k in operator.params}
    return operator.reference(operator.make_params(given | more), inputs, [inputs[0].dtype.name], is_train, rng)


def packed_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                       ) -> list[np.ndarray]:
    """Convolution without bias."""
    data, weight = inputs
    channels = data.shape[1] // params.num_group
    if params.block:
        weight = unpacked(weight, params.num_filter // params.num_group)
    return _run("Convolution", params, [data, weight.reshape(params.num_filter, channels, *params.kernel)], is_train,
                rng, no_bias=True)


def blocked_convolution(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Convolution without bias of an array whose channels lie in blocks (or of a plain one), into blocks."""
    data, packed = inputs
    rank, groups, filters = len(params.kernel), params.num_group, params.num_filter
    inner = data.shape[-1] if data.ndim == rank + 3 else 1
    if data.ndim == rank + 3:
        data = plain_of(data)
    channels = data.shape[1] // groups
    rows = unpacked(packed, filters // groups).reshape(filters, channels // inner, *params.kernel, inner)
    weight = np.moveaxis(rows, -1, 2).reshape(filters, channels, *params.kernel)
    (out,) = _run("Convolution", params, [data, weight.astype(data.dtype)], is_train, rng, no_bias=True)
    return [blocks_of(out, params.block)]


def plain_of(blocks: np.ndarray) -> np.ndarray:
    """(N, C / B, *space, B) -> (N, C, *space)"""
    return np.moveaxis(blocks, -1, 2).reshape(blocks.shape[0], -1, *blocks.shape[2:-1])


def blocks_of(plain: np.ndarray, block: int) -> np.ndarray:
    """(N, C, *space) -> (N, C / B, *space, B)"""
    parts = plain.reshape(plain.shape[0], plain.shape[1] // block, block, *plain.shape[2:])
    return np.moveaxis(parts, 2, -1)


def packed_convolution_data_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                                 ) -> list[np.ndarray]:
    """`_mxc_conv_data_grad`."""
    out_grad, weight = inputs
    groups = params.num_group
    filters, channels = out_grad.shape[1] // groups, params.shape[1] // groups
    if params.block:
        weight = unpacked(weight, channels).reshape(groups, channels, filters, *params.kernel).swapaxes(1, 2)
    return _run("_mxc_conv_data_grad", params, [out_grad, weight.reshape(-1, channels, *params.kernel)], is_train, rng)


def packed_fully_connected(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                           ) -> list[np.ndarray]:
    """FullyConnected of a matrix, without bias."""
    data, packed = inputs
    weight = unpacked(packed, params.num_hidden)[0]
    return _run("FullyConnected", params, [data, weight], is_train, rng, no_bias=True, flatten=False)


def depthwise(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """Convolution without bias, a filter of one channel for each channel."""
    return _run("Convolution", params, inputs, is_train, rng, no_bias=True, num_filter=inputs[0].shape[1],
                num_group=inputs[0].shape[1])


def blocked_depthwise(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """`depthwise` of an array whose channels lie in blocks."""
    data, weight = inputs
    plain, rows = plain_of(data), weight.swapaxes(1, 2).reshape(-1, 1, *params.kernel)
    (out,) = depthwise(params, [plain, rows.astype(data.dtype)], is_train, rng)
    return [blocks_of(out, data.shape[-1])]


def depthwise_data_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                        ) -> list[np.ndarray]:
    """`_mxc_conv_data_grad` of a depthwise convolution."""
    return _run("_mxc_conv_data_grad", params, inputs, is_train, rng, num_group=inputs[0].shape[1])


def depthwise_weight_grad(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws,
                          ) -> list[np.ndarray]:
    """`_mxc_conv_weight_grad` of a depthwise convolution."""
    return _run("_mxc_conv_weight_grad", params, inputs, is_train, rng, num_group=inputs[0].shape[1])
