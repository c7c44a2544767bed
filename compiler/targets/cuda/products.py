"""Products of matrices, convolutions and their gradients as numba.cuda source: tiles in shared memory.

All are sums C[z, m, n] = A[z, m, k] * B[z, k, n] over a depth k, in steps of an outer index (the taps of a kernel, or
the rows of results) and of an inner one, along which both operands go on by a step each. A block computes one tile of C
at a time. In every step its threads load a tile of A and one of B into shared memory, and each thread adds to a few
elements of C in registers. The tile then goes to shared memory as a whole, and the epilogue runs over its elements. The
order of every sum is fixed by its geometry and by nothing else.
"""
from __future__ import annotations

from typing import Any

from mxc.compiler.kernel import geometry, ir
from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cuda.blocks import Blocks
from mxc.compiler.targets.cuda.epilogue import Epilogue

Lines = list[str]


class _Form:
    """What a template is as a product. g: its geometry with names of the program's integers instead of numbers.

    groups, rows, columns, outers, depth: extents of z, m, n and of the two parts of k, as expressions. k_first: whether
    neighbouring threads load neighbouring places of A along the depth, and not along its rows.
    """

    groups = rows = columns = outers = depth = "1"
    k_first = True
    operands = 0, 1  # positions of the buffers of A and B
    kept: tuple[str, ...] = ()  # what `column` sets

    def __init__(self, g: Any):
        self.g = g

    def column(self) -> Lines:
        """What is known of `column`, which the thread loads, before the sums."""
        return []

    def outer(self) -> Lines:
        """Sets a_at, a_row and a_step, the first place of A, and the steps along rows and depth; b_at and b_step, and
        b_there, whether there is anything for `column`."""
        raise NotImplementedError

    def axes(self) -> Lines:
        """Sets the template's output axes, i0 and so on, from `z`, `row` and `column`."""
        raise NotImplementedError


class _Gemm(_Form):
    def __init__(self, g: Any):
        super().__init__(g)
        self.groups, self.rows, self.columns, self.depth = g.batch, g.m, g.n, g.k

    def outer(self) -> Lines:
        (a0, a1, a2), (b0, b1, b2) = self.g.a_strides, self.g.b_strides
        return [f"a_at = z * {a0}", f"a_row = {a1}", f"a_step = {a2}", f"b_at = z * {b0} + column * {b2}",
                f"b_step = {b1}", f"b_there = column < {self.columns}"]

    def axes(self) -> Lines:
        return ["i0 = z", "i1 = row", "i2 = column"]


class _Windowed(_Form):
    operands = 1, 0
    kept = "image", "p0", "p1", "p2"

    def __init__(self, g: Any):
        super().__init__(g)
        self.w = w = g.window
        self.groups, self.taps = w.groups, " * ".join(w.kernel)

    def pixels(self, extents: Any) -> Lines:
        """Sets image, p0, p1 and p2 to where `column` is in arrays of these spatial extents."""
        return [*_divided("column", "image", ("pixel",), (" * ".join(extents),)),
                *_divided("pixel", "p0", ("p1", "p2"), extents[1:])]

    def tap(self) -> Lines:
        return _divided("outer", "t0", ("t1", "t2"), self.w.kernel[1:])

    def of_pixels(self, extents: Any, channels: str) -> Lines:
        """The axes (n, c, d, h, w), or (n, c, all others)."""
        lines = [*self.pixels(extents), "i0 = image", f"i1 = z * {channels} + row"]
        return [*lines, *(["i2 = pixel"] if self.g.flat else ["i2 = p0", "i3 = p1", "i4 = p2"])]


class _Convolution(_Windowed):
    """Rows are filters, columns pixels of all images; the depth is channels for each tap."""

    def __init__(self, g: Any):
        super().__init__(g)
        w = self.w
        self.rows, self.columns = w.filters, f"{w.batch} * {' * '.join(w.out)}"
        self.outers, self.depth = self.taps, w.channels

    def column(self) -> Lines:
        return self.pixels(self.w.out)

    def outer(self) -> Lines:
        w, s = self.w, self.g.data_strides
        lines = [*self.tap(), f"taps = {self.taps}", f"a_at = z * {w.filters} * {w.channels} * taps + outer",
                 f"a_row = {w.channels} * taps", "a_step = taps"]
        for x in range(3):
            lines.append(f"d{x} = p{x} * {w.stride[x]} + t{x} * {w.dilate[x]} - {w.pad[x]}")
        lines.append(f"b_at = image * {s[0]} + z * {w.channels} * {s[1]} + d0 * {s[2]} + d1 * {s[3]} + d2 * {s[4]}")
        inside = " and ".join(f"d{x} >= 0 and d{x} < {w.data[x]}" for x in range(3))
        return [*lines, f"b_step = {s[1]}", f"b_there = column < {self.columns} and {inside}"]

    def axes(self) -> Lines:
        return self.of_pixels(self.w.out, self.w.filters)


class _DataGrad(_Windowed):
    """Rows are channels, columns pixels of the data of all images; the depth is filters for each tap."""

    k_first = False

    def __init__(self, g: Any):
        super().__init__(g)
        w = self.w
        self.rows, self.columns = w.channels, f"{w.batch} * {' * '.join(w.data)}"
        self.outers, self.depth = self.taps, w.filters

    def column(self) -> Lines:
        return self.pixels(self.w.data)

    def outer(self) -> Lines:
        w, s = self.w, self.g.out_strides
        lines = [*self.tap(), f"taps = {self.taps}", f"a_at = z * {w.filters} * {w.channels} * taps + outer",
                 "a_row = taps", f"a_step = {w.channels} * taps"]
        for x in range(3):
            lines += [f"d{x} = p{x} + {w.pad[x]} - t{x} * {w.dilate[x]}", f"o{x} = d{x} // {w.stride[x]}"]
        lines.append(f"b_at = image * {s[0]} + z * {w.filters} * {s[1]} + o0 * {s[2]} + o1 * {s[3]} + o2 * {s[4]}")
        inside = " and ".join(f"d{x} >= 0 and o{x} * {w.stride[x]} == d{x} and o{x} < {w.out[x]}" for x in range(3))
        return [*lines, f"b_step = {s[1]}", f"b_there = column < {self.columns} and {inside}"]

    def axes(self) -> Lines:
        return self.of_pixels(self.w.data, self.w.channels)


class _WeightGrad(_Windowed):
    """Rows are filters, columns the weights of one filter; the depth is the pixels of each row of results."""

    kept = "channel", "t0", "t1", "t2"

    def __init__(self, g: Any):
        super().__init__(g)
        w = self.w
        self.rows, self.columns = w.filters, f"{w.channels} * {self.taps}"
        self.outers, self.depth = f"{w.batch} * {w.out[0]} * {w.out[1]}", w.out[2]

    def _taps(self) -> Lines:
        return [*_divided("column", "channel", ("tap",), (self.taps,)),
                *_divided("tap", "t0", ("t1", "t2"), self.w.kernel[1:])]

    def column(self) -> Lines:
        return self._taps()

    def outer(self) -> Lines:
        w, s, o = self.w, self.g.data_strides, self.g.out_strides
        lines = _divided("outer", "image", ("o0", "o1"), w.out[:2])
        lines += [f"a_at = image * {o[0]} + z * {w.filters} * {o[1]} + o0 * {o[2]} + o1 * {o[3]}", f"a_row = {o[1]}",
                  f"a_step = {o[4]}"]
        lines += [f"d{x} = o{x} * {w.stride[x]} + t{x} * {w.dilate[x]} - {w.pad[x]}" for x in range(2)]
        lines += [f"d2 = t2 * {w.dilate[2]} - {w.pad[2]}",
                  f"b_at = image * {s[0]} + (z * {w.channels} + channel) * {s[1]} + d0 * {s[2]} + d1 * {s[3]} + "
                  f"d2 * {s[4]}", f"b_step = {w.stride[2]} * {s[4]}"]
        inside = " and ".join(f"d{x} >= 0 and d{x} < {w.data[x]}" for x in range(2))
        return [*lines, f"b_there = column < {self.columns} and {inside}"]

    def within(self) -> str:
        """The condition on `deep` that the data is not padding there."""
        w = self.w
        return f" and d2 + deep * {w.stride[2]} >= 0 and d2 + deep * {w.stride[2]} < {w.data[2]}"

    def axes(self) -> Lines:
        lines = [f"i0 = z * {self.w.filters} + row"]
        return [*lines, "i1 = column"] if self.g.flat else [
            *lines, *self._taps(), "i1 = channel", "i2 = t0", "i3 = t1", "i4 = t2"]


FORMS: dict[type[geometry.Geometry], type[_Form]] = {
    geometry.Gemm: _Gemm, geometry.Convolution: _Convolution, geometry.ConvolutionDataGrad: _DataGrad,
    geometry.ConvolutionWeightGrad: _WeightGrad}


def _divided(position: str, first: str, rest: Any, extents: Any) -> Lines:
    """Statements that set the names to the places at a row-major position; extents: those of the axes of `rest`."""
    lines, left = [], position
    for name, extent in reversed(list(zip(rest, extents, strict=True))):
        lines += [f"{name} = umod({left}, {extent})", f"quotient = udiv({left}, {extent})"]
        left = "quotient"
    return [*lines, f"{first} = {left}"]


def has_form(kernel: CallKernel) -> bool:
    """Whether a library kernel is a product that this file prints: one whose operands are plain."""
    g: Any = kernel.geometry
    return type(g) in FORMS and not getattr(g, "block", 0) and not getattr(g, "packed_b", 0)


def tiles_of(kernel: CallKernel, blocks: Blocks) -> int:
    """How many tiles the result has."""
    form = FORMS[type(kernel.geometry)](kernel.geometry.with_extents([str(n) for n in kernel.extents]))
    groups, rows, columns = (eval(text, {}) for text in (form.groups, form.rows, form.columns))  # our own products
    return int(groups * -(-rows // blocks.tile[0]) * -(-columns // blocks.tile[1]))


# long: one kernel's text, in the order in which it stands there
def product_source(kernel: CallKernel, blocks: Blocks) -> str:
    """The source of a product with its epilogue: constants, then `def kernel(b0, ..., values)`."""
    epilogue = Epilogue(kernel, shared=True)
    form = FORMS[type(kernel.geometry)](epilogue.geometry)
    source, dtype = epilogue.source, computing_dtype(kernel.geometry.dtype)
    threads, (rows, columns, depth), (high, wide) = blocks.threads, blocks.tile, blocks.each
    across, pitch_a, pitch_b = columns // wide, rows + 1, columns + 1  # an odd pitch: no conflicts of banks
    down, second = rows // high, depth * (rows + 1)
    assert threads % columns == 0 and across * down == threads
    zero = epilogue.printer.constant(ir.const(0, dtype))
    load_a, load_b = (epilogue.printer.element(i, "{}", kernel.buffers[i]) for i in form.operands)
    within = form.within() if isinstance(form, _WeightGrad) else ""

    def wrapped(text: str) -> str:
        return text if dtype.startswith("float") else f"{dtype}({text})"

    def lines(more: Lines) -> None:
        for line in more:
            source(line)

    with source.block(epilogue.head()):
        # No register has to keep an integer that is read again behind a barrier.
        lines(["thread = cuda.threadIdx.x", f"v = cuda.shared.array({epilogue.count}, int64)"])
        with source.block(f"for element in range(thread, {epilogue.count}, {threads}):"):
            source("v[element] = values[element]")
        if form.kept:
            source(f"places = cuda.shared.array({len(form.kept) * columns}, int64)")
        elements = max(rows * columns, second + depth * pitch_b)
        lines(["cuda.syncthreads()", f"tile = cuda.shared.array({elements}, {dtype})",
               f"tiles_down = udiv({form.rows} + {rows - 1}, {rows})",
               f"tiles_across = udiv({form.columns} + {columns - 1}, {columns})",
               f"here = thread & {across - 1}", f"there = thread >> {across.bit_length() - 1}",
               f"own = thread & {columns - 1}"])
        with source.block(f"for unit in range(cuda.blockIdx.x, {form.groups} * tiles_down * tiles_across, "
                          "cuda.gridDim.x):"):
            lines([*_divided("unit", "z", ("down", "right"), ("tiles_down", "tiles_across")),
                   f"first_row = down * {rows}", f"first_column = right * {columns}", "column = first_column + own",
                   *form.column()])
            if form.kept:
                with source.block(f"if thread < {columns}:"):
                    lines([f"places[{i * columns} + own] = {name}" for i, name in enumerate(form.kept)])
            source("cuda.syncthreads()")
            lines([f"c{i}_{j} = {zero}" for i in range(high) for j in range(wide)])
            with source.block(f"for outer in range({form.outers}):"), source.block(
                    f"for inner in range(0, {form.depth}, {depth}):"):
                # As with the integers, what is computed here needs no registers while the tiles are multiplied.
                lines([f"{name} = places[{i * columns} + own]" for i, name in enumerate(form.kept)])
                lines(["column = first_column + own", *form.outer()])
                # The step is no constant, so the loops stay loops: unrolled, their addresses fill the registers.
                source("element = thread")
                with source.block(f"while element < {rows * depth}:"):
                    lines([*([f"k = element & {depth - 1}", f"m = element >> {depth.bit_length() - 1}"]
                             if form.k_first else
                             [f"m = element & {rows - 1}", f"k = element >> {rows.bit_length() - 1}"]),
                           "row = first_row + m", "deep = inner + k", f"value = {zero}"])
                    with source.block(f"if row < {form.rows} and deep < {form.depth}:"):
                        source(f"value = {load_a.format('a_at + row * a_row + deep * a_step')}")
                    source(f"tile[k * {pitch_a} + m] = value")
                    source("element += cuda.blockDim.x")
                shift = columns.bit_length() - 1
                source(f"k = thread >> {shift}")
                with source.block(f"while k < {depth}:"):
                    lines(["deep = inner + k", f"value = {zero}"])
                    with source.block(f"if b_there and deep < {form.depth}{within}:"):
                        source(f"value = {load_b.format('b_at + deep * b_step')}")
                    source(f"tile[{second} + k * {pitch_b} + own] = value")
                    source(f"k += cuda.blockDim.x >> {shift}")
                source("cuda.syncthreads()")
                with source.block(f"for k in range({depth}):"):
                    lines([f"x{i} = tile[k * {pitch_a} + there + {i * down}]" for i in range(high)])
                    lines([f"y{j} = tile[{second} + k * {pitch_b} + here + {j * across}]" for j in range(wide)])
                    lines([f"c{i}_{j} = {wrapped(f'c{i}_{j} + x{i} * y{j}')}" for i in range(high)
                           for j in range(wide)])
                source("cuda.syncthreads()")
            lines([f"tile[(there + {i * down}) * {columns} + here + {j * across}] = c{i}_{j}" for i in range(high)
                   for j in range(wide)])
            source("cuda.syncthreads()")
            with source.block(f"for element in range(thread, {rows * columns}, {threads}):"):
                lines([f"row = first_row + (element >> {columns.bit_length() - 1})",
                       f"column = first_column + (element & {columns - 1})"])
                with epilogue.printer.scope(f"if row < {form.rows} and column < {form.columns}:"):
                    lines([*form.axes(), "total = tile[element]"])
                    epilogue.store()
    return epilogue.text()
