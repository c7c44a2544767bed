"""The library kernels' templates: what each computes, and in which order its operands come.

A template's constructor takes its geometry and gives a record of `geometry.py`; it decides what is baked into the code.
`call` makes the kernel of a record and an epilogue. A template's result has the computing dtype (float32 for float16
storage); acc(0, dtype) is the result converted to `dtype`. `interpret_calls.py` is the definition of all templates in
NumPy.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from mxc.compiler.kernel import geometry, ir
from mxc.compiler.kernel.geometry import Geometry, Triple, Window
from mxc.compiler.kernel.ir import CallKernel, ChainKernel, Store, Value
from mxc.compiler.kernel.plain import is_pointwise
from mxc.compiler.kernel.word_geometry import OfWords, WordProduct
from mxc.compiler.ops import winograd
from mxc.compiler.ops.dtypes import NARROW

if TYPE_CHECKING:
    from mxc.compiler.targets.preferences import Products

TOGETHER = 11  # a blocked convolution prints the taps of a kernel's row without a loop if they are this many or fewer


def gemm(
    dtype: str, sizes: tuple[int, int, int, int], a_strides: Triple, b_strides: Triple, packed_b: int = 0,
    figures: Products | None = None,
) -> geometry.Gemm[int]:
    """C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n]; output axes (b, m, n).

    dtype: that of A and B. sizes: (batch, m, n, k). a_strides: elements between (b, m, k) of A; b_strides: between
    (b, k, n) of B; a stride of 0 repeats elements. packed_b: 0, or the block of the layout `pack_rows` in which B
    transposed comes, [ceil(n / block)][k][block], filled up with zeros; only the batch's stride of B counts then.
    figures: the target's; without them no rows are read in place, and `few` is 1.

    The record's other fields are decided here. Rows of A, or columns of B, can be read in place where the numbers of
    each lie side by side along the depth k.

    - turned: the kernel computes the transposed product, whose rows are the columns of B. It does so where these can
      be read in place, and the rows of A cannot or are fewer than they.
    - rows_in_place: the product's rows are read in place, as they can be and the product is small. A large product
      packs them: packed rows serve many columns.
    - vector: how the matrix lies that is multiplied with a single row (m = 1) or a single column (turned): "rows" where
      the numbers of both operands lie side by side along the depth, "columns" where those of the matrix do along its
      other axis, "" where neither holds, or where no operand is a single row or column.
    - few: the number of rows, where there are few for a large matrix that lies in "columns": each number of the matrix
      is then read once for all rows. Else 1.
    """
    batch, m, n, k = sizes
    rows, columns = (step == 1 and dtype not in NARROW for step in (a_strides[2], b_strides[1]))
    turned = not packed_b and columns and (m < n or not rows)
    fewer, more = sorted((m, n))
    is_small = figures is not None and (
        fewer <= figures.few or (fewer <= figures.moderate[0] and more <= figures.moderate[1]))
    in_place = (turned or rows) and is_small
    vector = ""
    if 1 in (m, n) and not packed_b:
        along, (line, deep) = (a_strides[2], (b_strides[2], b_strides[1])) if m == 1 else (b_strides[1], a_strides[1:])
        vector = "rows" if deep == along == 1 else "columns" if line == 1 else ""
        turned = m != 1 if vector else turned
    few = 1
    limits = figures.at_once if figures is not None else ()
    at_once = any(1 < m <= most and n >= wide and n * k >= elements for most, wide, elements in limits)
    if at_once and b_strides[2] == 1 and not packed_b:
        vector, turned, few = "columns", False, m
    return geometry.Gemm(dtype=dtype, batch=batch, m=m, n=n, k=k, a_strides=a_strides, b_strides=b_strides,
                         packed_b=packed_b, turned=turned, rows_in_place=in_place, vector=vector, few=few)


def convolution(
    dtype: str, window: Window[int], data_strides: Sequence[int], block: int,
) -> geometry.Convolution[int]:
    """out[n, c, d, ...] = sum over i, k, ... of data[n, i, d * stride + k * dilate - pad, ...] * weight[c, i, k, ...]

    over three spatial axes, 0 outside of data; output axes (n, c, d, h, w), c over all groups. Operands: data, with
    `data_strides` elements between (n, c, d, h, w); weight as `pack_rows` of each group's (filters, channels * kernel)
    with `block`: [groups][ceil(filters / block)][channels * kernel][block], or with block 0 as it is:
    (groups * filters, channels, kernel).
    """
    return geometry.Convolution(dtype=dtype, window=window, data_strides=tuple(data_strides), block=block)


def panel_convolution(
    dtype: str, window: Window[int], data_strides: Sequence[int], block: int,
) -> geometry.PanelConvolution[int]:
    """`convolution` with packed weights, for windows that `plain.fits_panels`: computed image by image.

    Two facts of the geometry are baked into the code: whether the window is `pointwise` (it has one tap, and a result
    for each pixel), and if it is not, the stride along rows where that is 1 or 2. `stride` is 0 in all other cases.
    """
    pointwise = is_pointwise(window)
    stride = window.stride[2] if not pointwise and window.stride[2] <= 2 else 0
    return geometry.PanelConvolution(dtype=dtype, window=window, data_strides=tuple(data_strides), block=block,
                                     pointwise=pointwise, stride=stride)


def quad_convolution(
    window: Window[int], data_strides: Sequence[int], block: int,
) -> geometry.QuadConvolution[int]:
    """`panel_convolution` of numbers of 8 bits, summed in int32: an element of the data and of the packed weight is an
    int32 that holds those of four channels, the first one in its lowest byte. The data's are uint8, the weight's int8.
    `window` counts such elements as channels.
    """
    made = panel_convolution("int32", window, data_strides, block)
    return geometry.QuadConvolution(**{each.name: getattr(made, each.name) for each in fields(made)})


# many parameters: each is a decision of the pass that makes blocks
def blocked_convolution(
    dtype: str, window: Window[int], data_strides: Sequence[int], data_block: int, block: int, columns: int,
    copied: bool, alone: bool = False, paired: bool = False,
) -> geometry.BlockedConvolution[int]:
    """`convolution` whose results lie in blocks of `block` filters, which divides the filters of a group.

    Output axes (n, filter block, filter in the block, d, h, w), the blocks over all groups. Operands: data, with
    `data_strides` elements between (n, channel block, d, h, w) and the `data_block` channels of a block next to each
    other (1 or `block` of them); weight, in the computing dtype, as `pack_rows` with `columns` of each group's
    (filters, channel blocks * kernel * data_block). copied: whether the kernel copies what it reads to scratch first,
    as it must where there is padding, or where the data has not the computing dtype, or is not in blocks. alone: one
    thread runs all units, so nothing is cut for the sake of others. Baked in are how many taps of a row are printed
    `together`, whether the kernel is `pointwise` (of one tap, on data whose pixels follow each other as the results'
    do), and whether columns are `whole`: filters fill them.

    paired: products of bfloat16 are added two by two. What is counted as a channel is a pair of them, in the window, in
    `data_block`, which is half of `block`, and in the strides; the weight, of bfloat16, has both of each column next to
    each other.
    """
    width = window.kernel[2] if data_block == 1 and window.dilate[2] == 1 else 1
    rows_follow = data_strides[3] == window.data[2] * data_block
    pointwise = {*window.kernel, *window.stride} == {1} and not copied and rows_follow
    return geometry.BlockedConvolution(
        dtype=dtype, window=window, data_strides=tuple(data_strides), alone=int(alone), data_block=data_block,
        block=block, columns=columns, whole=window.filters % columns == 0, copied=copied,
        together=width if width <= TOGETHER else 1, pointwise=pointwise, paired=paired)


def blocked_quads(
    window: Window[int], data_strides: Sequence[int], data_block: int, block: int, columns: int, copied: bool,
    planes: int = 0,
) -> geometry.BlockedQuads[int]:
    """`blocked_convolution` of numbers of 8 bits, summed in int32. The data are of uint8, or of int8: to these, and to
    what lies around the image, 128 is added, and they must be `copied`. An element of the packed weight is an int32
    that holds the int8 of four channels, the first one in its lowest byte. `window`, `data_strides` and `data_block`
    count such fours; what a row of the data has lies together.

    planes: the data are plain, with so many channels in a single group, and `data_strides` elements between their
    (n, c, d, h, w); they must be `copied`, in fours, of which the last one may have anything for channels that are not
    there.
    """
    made = blocked_convolution("int32", window, data_strides, data_block, block, columns, copied)
    return geometry.BlockedQuads(**{each.name: getattr(made, each.name) for each in fields(made)}, planes=planes,
                                 plain=planes > 0)


def winograd_convolution(
    dtype: str, window: Window[int], data_strides: Sequence[int], block: int, rows: int, columns: int, given: int = 0,
    transforms: bool = False,
) -> geometry.WinogradConvolution[int]:
    """A convolution with 3 x 3 kernels, of stride 1, undilated, in one group, by ops/winograd.py.

    Output axes as in `blocked_convolution`. Operands: data, with `data_strides` elements between (n, channel block, d,
    h, w) and the `block` channels of a block next to each other, or, if `given`, what `winograd_data` makes of them
    with that pitch; what `winograd_weight` makes of the weight, with `columns`, or, if the kernel `transforms` it in
    each run, the weight as `blocked_convolution` reads it.
    rows: how many tiles of the image one register tile holds, at most. They are multiplied in groups of `tiles`, which
    have room for a register tile. `whole` says that filters fill the columns.
    """
    count = max(1, winograd_tiles(window))
    even = -(-count // -(-count // rows))
    return geometry.WinogradConvolution(
        dtype=dtype, window=window, data_strides=tuple(data_strides), given=given, block=block, rows=rows,
        tiles=next(n for n in winograd_rows(rows) if n >= even), columns=columns,
        whole=window.filters % columns == 0, transforms=transforms)


def winograd_data(
    name: str, dtype: str, window: Window[int], data_strides: Sequence[int], block: int, tiles: int, pitch: int,
) -> CallKernel:
    """The kernel that computes B' d B of every tile d of the data that a `winograd_convolution` reads. It has no
    epilogue of its own: it stores its result as that template reads it.

    Output axes (place, tile group, channel block, tile of the group, channel in the block). A group has `tiles` tiles;
    those that the last group has too many are zero. Operand: data, as in `winograd_convolution`. The result is dense,
    except that its places are `pitch` elements apart.
    """
    step = tiles * block
    places = linear({0: pitch, 1: window.channels * tiles, 2: step, 3: block, 4: 1})
    made = geometry.WinogradData(dtype=dtype, window=window, data_strides=tuple(data_strides), pitch=pitch, block=block,
                                 tiles=tiles)
    return call(name, made, (dtype, dtype), (Store(1, places, ir.acc(0, dtype)),))


def winograd_side(
    dtype: str, window: Window[int], strides: Sequence[int], block: int, of_results: bool,
) -> geometry.WinogradSide[int]:
    """B' d B of every tile d of plain data, or, `of_results`, A y A' of every tile y of 4 x 4 elements of what has the
    shape of the results.

    Output axes (place, block, tile, channel in the block), the blocks of `block` channels, or filters. Operand: the
    data or the other array, with `strides` elements between (n, c, d, h, w).
    """
    return geometry.WinogradSide(dtype=dtype, window=window, strides=tuple(strides), block=block,
                                 of_results=of_results)


def winograd_weight(dtype: str, window: Window[int], columns: int, turned: bool) -> geometry.WinogradWeight[int]:
    """G g G' of each kernel g of a weight (filters, channels, 3, 3), packed as `winograd_convolution` reads it.

    Output axes (place, group of `columns` filters, channel, filter of the group); filters that the last group has too
    many are zero. turned: of kernels turned by half a circle, with filters and channels exchanged, as the gradient to
    the data reads them. Operand: the weight, dense.
    """
    return geometry.WinogradWeight(dtype=dtype, window=window, columns=columns, turned=turned)


def plain_winograd(dtype: str, window: Window[int], block: int, columns: int) -> geometry.PlainWinograd[int]:
    """A convolution as in `winograd_convolution`, to a plain array; output axes (n, c, d, h, w).

    Operands: what `winograd_side` makes of the data, dense; the weight as in `winograd_convolution`.
    """
    return geometry.PlainWinograd(dtype=dtype, window=window, block=block, columns=columns,
                                  whole=window.filters % columns == 0)


def winograd_weight_grad(dtype: str, window: Window[int], block: int) -> geometry.WinogradWeightGrad[int]:
    """`convolution_weight_grad` of a convolution as in `winograd_convolution`; output axes (o, i, kd, kh, kw).

    Operands: what `winograd_side` makes of the data, and of the gradient of the results, dense.
    """
    return geometry.WinogradWeightGrad(dtype=dtype, window=window, block=block)


def winograd_tiles(window: Window[int]) -> int:
    """How many tiles the images of a Winograd convolution have."""
    return window.batch * math.prod(winograd.grid(window.out))


def winograd_rows(rows: int) -> list[int]:
    """The register tiles of Winograd's products have so many rows, tiles of the image: more than half of `rows`, since
    groups are as even as can be, and few, because images of up to 8 x 8 pixels have 4."""
    return sorted({4, *range(rows // 2 + 1, rows + 1)})


def convolution_data_grad(
    dtype: str, window: Window[int], out_strides: Sequence[int], block: int,
) -> geometry.ConvolutionDataGrad[int]:
    """grad[n, i, d, ...] = sum over c, k of out_grad[n, c, (d + pad - k * dilate) / stride, ...] * weight[c, i, k, ...]

    where the division leaves no rest and the result lies inside; output axes (n, i, d, h, w) of the data. Also the
    forward pass of Deconvolution. Operands: out_grad, with `out_strides` elements between (n, c, d, h, w); weight as
    `pack_rows` of each group's (channels, filters * kernel) with `block`:
    [groups][ceil(channels / block)][filters * kernel][block], or with block 0 as it is:
    (groups * filters, channels, kernel), as it must be where a stride is not 1.
    """
    strided = any(s > 1 for s in window.stride)
    if strided and block:
        raise ValueError("the weight of a strided convolution_data_grad is not packed: expected block 0")
    return geometry.ConvolutionDataGrad(dtype=dtype, window=window, out_strides=tuple(out_strides), block=block,
                                        strided=strided)


def image_convolution(dtype: str, window: Window[int], data_strides: Sequence[int]) -> geometry.ImageConvolution[int]:
    """`convolution` with block 0, computed for neighbouring images at once: for batches that fill vectors."""
    return geometry.ImageConvolution(dtype=dtype, window=window, data_strides=tuple(data_strides))


def image_data_grad(dtype: str, window: Window[int], out_strides: Sequence[int]) -> geometry.ImageDataGrad[int]:
    """`convolution_data_grad` with block 0, computed for neighbouring images at once: for batches that fill vectors."""
    return geometry.ImageDataGrad(dtype=dtype, window=window, out_strides=tuple(out_strides))


def convolution_weight_grad(
    dtype: str, window: Window[int], data_strides: Sequence[int], out_strides: Sequence[int],
) -> geometry.ConvolutionWeightGrad[int]:
    """grad[o, i, k, ...] = sum over n, d, ... of data[n, i, d * stride + k * dilate - pad, ...] * og[n, o, d, ...]

    over three spatial axes, i within o's group; output axes (o, i, kd, kh, kw), o over all groups. Operands: data,
    out_grad, with their strides over (n, c, d, h, w).
    """
    return geometry.ConvolutionWeightGrad(dtype=dtype, window=window, data_strides=tuple(data_strides),
                                          out_strides=tuple(out_strides))


def pool_spread(dtype: str, window: Window[int], out_strides: Sequence[int], divisor: str) -> geometry.PoolSpread[int]:
    """grad[n, c, d, h, w] = sum of out_grad over the windows that d, h, w lies in, each over its divisor.

    Output axes (n, c, d, h, w) of the data; `window.groups` counts the channels (channels = filters = 1). divisor:
    "none", or how many elements a window has, at least 1: of the "padded" data, which end with a padding as wide as the
    one before them, or of those "inside". Operand: out_grad, with its strides.
    """
    return geometry.PoolSpread(dtype=dtype, window=window, out_strides=tuple(out_strides), divisor=divisor)


def depthwise(dtype: str, window: Window[int], data_strides: Sequence[int]) -> geometry.Depthwise[int]:
    """`convolution` for one channel and one filter in each group; weight dense: (groups, kd, kh, kw). Like that of all
    depthwise kernels, its code is printed for one size of kernel."""
    return geometry.Depthwise(dtype=dtype, window=window, data_strides=tuple(data_strides), kernel=window.kernel)


def blocked_depthwise(
    dtype: str, window: Window[int], data_strides: Sequence[int], block: int, ring_start: int = 0, ring: int = 0,
) -> geometry.BlockedDepthwise[int]:
    """`depthwise` over arrays whose channels lie in blocks of `block`; output axes as in `blocked_convolution`.

    Operands: data, with `data_strides` elements between (n, channel block, d, h, w); weight in the computing dtype,
    dense: (channel blocks, kernel, block). The data may lie in a ring of `ring` rows: row h is then row
    (h + ring_start) % ring of the ring.
    """
    return geometry.BlockedDepthwise(
        dtype=dtype, window=window, data_strides=tuple(data_strides), ring_start=ring_start,
        ring=ring or window.data[1], kernel=window.kernel, stride=window.stride[2], dilate=window.dilate[2],
        block=block)


def depthwise_data_grad(dtype: str, window: Window[int], out_strides: Sequence[int]) -> geometry.DepthwiseDataGrad[int]:
    """`convolution_data_grad` for one channel and one filter in each group; weight dense: (groups, kd, kh, kw)."""
    return geometry.DepthwiseDataGrad(dtype=dtype, window=window, out_strides=tuple(out_strides), kernel=window.kernel)


def depthwise_weight_grad(
    dtype: str, window: Window[int], data_strides: Sequence[int], out_strides: Sequence[int],
) -> geometry.DepthwiseWeightGrad[int]:
    """`convolution_weight_grad` for one channel and one filter in each group; output axes (o, i, kd, kh, kw), i = 0."""
    return geometry.DepthwiseWeightGrad(dtype=dtype, window=window, data_strides=tuple(data_strides),
                                        out_strides=tuple(out_strides), kernel=window.kernel)


def max_pool_grad(
    dtype: str, window: Window[int], data_strides: Sequence[int], out_strides: Sequence[int],
) -> geometry.MaxPoolGrad[int]:
    """grad[n, c, d, h, w] = sum of out_grad over the windows whose first maximum (row-major order) is at d, h, w.

    NaN is no maximum; where a window holds nothing else, its first element counts as the maximum.
    Output axes (n, c, d, h, w) of the data; `window.groups` counts the channels (channels = filters = 1). A window's
    part outside of data does not count. Operands: data, out_grad, with their strides.
    """
    return geometry.MaxPoolGrad(dtype=dtype, window=window, data_strides=tuple(data_strides),
                                out_strides=tuple(out_strides))


# --- the kernel of a geometry, with its innermost axes merged


def call(name: str, made: Geometry[int], buffers: Sequence[str], stores: Sequence[Store]) -> CallKernel:
    """The library kernel of a geometry with an epilogue.

    name: for people. buffers: the dtypes of the template's operands and of what the epilogue loads and stores, in this
    order. stores: over acc(0) and the template's output axes. Where the innermost axes of all stores and loads walk
    memory as one axis would ("flat"; they do in dense arrays), they are merged into one: the printed kernel then runs
    over whole planes.
    """
    if isinstance(made, geometry.Merging):
        flat, stores = _flattened(stores, *made.merged())
        made = replace(made, flat=flat)
    return CallKernel(name, made, tuple(buffers), tuple(stores))


def affine(index: Value) -> tuple[dict[int, list[Value]], list[Value]]:
    """An affine index as the coefficients of each axis, which add up (an axis alone has the coefficient 1), and the
    constants that are added. Raises ValueError for an index that is not affine."""
    terms: dict[int, list[Value]] = {}
    constants: list[Value] = []
    todo = [index]
    while todo:
        v = todo.pop()
        if v.op == "add":
            todo += reversed(v.args)
        elif v.op == "axis":
            terms.setdefault(v.data, []).append(ir.const(1, ir.INDEX))
        elif v.op == "const":
            constants.append(v)
        elif v.op == "mul" and {v.args[0].op, v.args[1].op} == {"axis", "const"}:
            position, number = (v.args[0], v.args[1]) if v.args[0].op == "axis" else (v.args[1], v.args[0])
            terms.setdefault(position.data, []).append(number)
        else:
            raise ValueError(f"an epilogue's index must be a sum of axis * constant and constants, not {v.op}")
    return terms, constants


def coefficients(index: Value) -> tuple[dict[int, int], int]:
    """An affine index as what each axis is multiplied by, and what is added."""
    terms, constants = affine(index)
    return {a: sum(int(v.data) for v in vs) for a, vs in terms.items()}, sum(int(v.data) for v in constants)


def _merged(index: Value, first: int, inner: Sequence[int]) -> Value | None:
    """`index` with the axes from `first` on (extents `inner`) replaced by one, or None if they are not one walk."""
    try:
        strides, constant = coefficients(index)
    except ValueError:
        return None
    step: int | None = None
    scale = 1
    for position in reversed(range(len(inner))):
        if inner[position] == 1:
            continue
        stride = strides.get(first + position, 0)
        if step is None:
            step = stride
        elif stride != step * scale:
            return None
        scale *= inner[position]
    outer = {a: s for a, s in strides.items() if a < first}
    return linear({**outer, first: step or 0}, constant)


def linear(strides: dict[int, int], constant: int = 0) -> Value:
    """The affine index sum of axis(a) * strides[a], plus `constant`."""
    total: Value | None = None
    for position, stride in strides.items():
        if stride != 0:
            term = ir.axis(position)
            term = term if stride == 1 else ir.apply("mul", term, ir.const(stride, ir.INDEX))
            total = term if total is None else ir.apply("add", total, term)
    if total is None:
        return ir.const(constant, ir.INDEX)
    return total if constant == 0 else ir.apply("add", total, ir.const(constant, ir.INDEX))


def _flattened(stores: Sequence[Store], first: int, inner: Sequence[int]) -> tuple[bool, Sequence[Store]]:
    """Whether the axes from `first` on (extents `inner`) can be merged in all of the stores' places, and the stores
    with these axes merged, or as they are."""
    values = [s.value for s in stores]
    roots = [s.index for s in stores] + [
        a for v in ir.walk(values) for a in v.args if a.dtype == ir.INDEX and v.dtype != ir.INDEX
    ]
    merged = {}
    for v in roots:
        place = _merged(v, first, inner)
        if place is None:
            return False, stores
        merged[id(v)] = place
    return True, [Store(s.buffer, merged[id(s.index)], v, s.mode)
                  for s, v in zip(stores, replaced(values, merged), strict=True)]


def replaced(values: Sequence[Value], done: dict[int, Value]) -> list[Value]:
    """`values` with the parts whose ids are in `done` replaced."""
    done = dict(done)
    for v in ir.walk(values):
        if id(v) not in done:
            done[id(v)] = ir.make(v.op, [done[id(a)] for a in v.args], v.dtype, v.data)
    return [done[id(v)] for v in values]


def flops(kernel: CallKernel | ChainKernel) -> int:
    """How many multiplications and additions the template's product has, those with padding too; 0 if it has no
    product."""
    if isinstance(kernel, ChainKernel):
        return kernel.images * sum(flops(each) for each, _ in kernel.calls())
    g: Any = kernel.geometry
    g = g.whole if isinstance(g, geometry.Parts) else g
    per = g.numbers_of_a_word if isinstance(g, OfWords) else 1
    if isinstance(g, geometry.Gemm | WordProduct):
        return 2 * per * g.batch * g.m * g.n * g.k
    moves = (geometry.MaxPoolGrad, geometry.PoolSpread, geometry.WinogradData, geometry.WinogradSide,
             geometry.WinogradWeight)
    if isinstance(g, moves):
        return 0
    w = g.window
    if isinstance(g, geometry.WinogradConvolution | geometry.PlainWinograd | geometry.WinogradWeightGrad):
        return 2 * w.batch * w.filters * w.channels * math.prod(winograd.grid(w.out)) * winograd.PLACES
    return int(2 * per * w.batch * w.groups * w.filters * w.channels * math.prod((*w.out, *w.kernel)))
