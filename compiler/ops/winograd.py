"""Winograd's minimal filtering F(4x4, 3x3): the matrices, and how an image is cut into tiles.

A tile of 4 x 4 results y of the data d (6 x 6) and the kernel g (3 x 3) is y = A' [(G g G') * (B' d B)] A, with the
product element by element: 36 multiplications in place of 144. What is linear in g has the gradient G' [(A y A') *
(B' d B)] G to it, where y is the gradient of the results. The points of the interpolation are 0, 1, -1, 2, -2 and
infinity (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015).
"""
from __future__ import annotations

import numpy as np

RESULTS = 4  # results of a tile along each axis
READ = 6  # data elements along each axis that the results of a tile depend on
PLACES = READ * READ  # multiplications for a tile, for each channel and filter
TAPS = 9  # elements of a kernel
DATA = np.array([[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0],
                 [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]], np.float64)  # B'
KERNEL = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]], np.float64) / 24  # G
OUTPUT = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
                  np.float64)  # A'
FACTORS = np.kron(KERNEL, KERNEL)  # (36, 9): G g G' from a flat kernel


def grid(out: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of tiles that cover results of the spatial extents `out`."""
    return -(-out[-2] // RESULTS), -(-out[-1] // RESULTS)


def odd(count: int) -> int:
    """The next odd number: so many tiles, or channels of a weight, lie behind each other where there are `count`, the
    last one zero. Places would else lie a power of two apart, and all meet in a few sets of a cache."""
    return count | 1


def tiles(data: np.ndarray, out: tuple[int, int], pad: tuple[int, int]) -> np.ndarray:
    """(N, C, H, W) -> (N * tiles, C, 6, 6): what each tile reads, zeros outside of the data."""
    rows, columns = grid(out)
    n, c, h, w = data.shape
    padded = np.zeros((n, c, max(rows * RESULTS + 2, h + pad[0]), max(columns * RESULTS + 2, w + pad[1])), data.dtype)
    padded[:, :, pad[0] : pad[0] + h, pad[1] : pad[1] + w] = data
    seen = np.lib.stride_tricks.sliding_window_view(padded, (READ, READ), (2, 3))
    seen = seen[:, :, : rows * RESULTS : RESULTS, : columns * RESULTS : RESULTS]
    return seen.transpose(0, 2, 3, 1, 4, 5).reshape(n * rows * columns, c, READ, READ)


def transformed(data: np.ndarray, out: tuple[int, int], pad: tuple[int, int]) -> np.ndarray:
    """(N, C, H, W) -> (36, N * tiles, C): B' d B of every tile, in float64."""
    made = DATA @ tiles(data.astype(np.float64), out, pad) @ DATA.T
    return made.reshape(*made.shape[:2], PLACES).transpose(2, 0, 1)


def kernels(weight: np.ndarray) -> np.ndarray:
    """(36, F, C): G g G' of the weight (F, C, 9), in float64."""
    return np.einsum("pt,fct->pfc", FACTORS, weight.astype(np.float64))


def packed(weight: np.ndarray, columns: int, turned: bool) -> np.ndarray:
    """(36, groups of `columns` filters, odd(C), columns): G g G' of the weight (F, C, 9), with zeros behind it.

    turned: of kernels turned by half a circle, with filters and channels exchanged.
    """
    made = kernels(weight[..., ::-1].swapaxes(0, 1) if turned else weight).swapaxes(1, 2)
    _, channels, filters = made.shape
    whole = np.zeros((PLACES, odd(channels), -(-filters // columns) * columns))
    whole[:, :channels, :filters] = made
    return whole.reshape(PLACES, odd(channels), -1, columns).swapaxes(1, 2)


def unpacked(weight: np.ndarray, filters: int, channels: int) -> np.ndarray:
    """(36, F, C) of what `packed` made."""
    rows = weight.swapaxes(2, 3).reshape(PLACES, -1, weight.shape[2])
    return rows[:, :filters, :channels]


def in_blocks(parts: np.ndarray, block: int) -> np.ndarray:
    """(36, tiles, C) -> (36, C / block, odd(tiles), block)"""
    _, count, channels = parts.shape
    whole = np.zeros((PLACES, odd(count), channels))
    whole[:, :count] = parts
    return whole.reshape(PLACES, odd(count), -1, block).swapaxes(1, 2)


def of_blocks(blocks: np.ndarray, count: int) -> np.ndarray:
    """(36, tiles, C) of `count` tiles that `in_blocks` laid out, in float64."""
    rows = blocks.swapaxes(1, 2).astype(np.float64)
    return rows.reshape(*rows.shape[:2], -1)[:, :count]


def spread(out_grad: np.ndarray) -> np.ndarray:
    """(N, F, H, W) -> (36, N * tiles, F): A y A' of every tile y of 4 x 4 elements, zeros behind the last ones."""
    n, filters, height, width = out_grad.shape
    rows, columns = grid((height, width))
    whole = np.zeros((n, filters, rows * RESULTS, columns * RESULTS))
    whole[:, :, :height, :width] = out_grad
    parts = whole.reshape(n, filters, rows, RESULTS, columns, RESULTS).transpose(0, 2, 4, 1, 3, 5)
    made = OUTPUT.T @ parts.reshape(-1, filters, RESULTS, RESULTS) @ OUTPUT
    return made.reshape(-1, filters, PLACES).transpose(2, 0, 1)


def weight_gradient(data: np.ndarray, out_grad: np.ndarray) -> np.ndarray:
    """(F, C, 3, 3) of the transformed data (36, tiles, C) and the `spread` gradient of the results (36, tiles, F):
    G' [sum over tiles of the products] G."""
    products = np.moveaxis(out_grad.swapaxes(1, 2) @ data, 0, -1)
    return KERNEL.T @ products.reshape(*products.shape[:2], READ, READ) @ KERNEL


def multiplied(data: np.ndarray, weight: np.ndarray, out: tuple[int, int]) -> np.ndarray:
    """(N, F, *out) of the transformed data and weight (36, F, C): A' [sum over channels of the products] A."""
    (rows, columns), filters = grid(out), weight.shape[1]
    product = (data @ weight.astype(np.float64).swapaxes(1, 2)).transpose(1, 2, 0)
    parts = OUTPUT @ product.reshape(-1, filters, READ, READ) @ OUTPUT.T
    whole = parts.reshape(-1, rows, columns, filters, RESULTS, RESULTS).transpose(0, 3, 1, 4, 2, 5)
    return whole.reshape(-1, filters, rows * RESULTS, columns * RESULTS)[:, :, : out[0], : out[1]]


def convolved(data: np.ndarray, weight: np.ndarray, pad: tuple[int, int], out: tuple[int, int]) -> np.ndarray:
    """(N, F, *out) of data (N, C, H, W) and weight (36, F, C), in float64."""
    return multiplied(transformed(data, out, pad), weight, out)
