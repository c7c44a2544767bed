"""Products of matrices, convolutions and their gradients as numba.cuda source: tiles in shared memory.

All are sums C[z, m, n] = A[z, m, k] * B[z, k, n] over a depth k, in steps of an outer index (the taps of a kernel, or
the rows of results) and of an inner one, along which both operands go on by a step each. A block computes one tile of C
at a time. In every step its threads load a tile of A and one of B into shared memory, and each thread adds to a few
elements of C in registers. The tile then goes to shared memory as a whole, and the epilogue runs over its elements. The
order of every sum is fixed by its geometry and by nothing else.
"""
from __future__ import annotations

import operator
from typing import Any

from mxc.compiler.kernel import geometry, ir
from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cuda.blocks import Blocks
from mxc.compiler.targets.cuda.epilogue import Epilogue

Lines = list[str]
QUAD = 4  # neighbouring rows, or columns, that a thread loads and computes together
UNROLLED = 2  # steps of the depth in one round of the inner loop


class _Form:
    """What a template is as a product. g: its geometry with names of the program's integers instead of numbers.

    groups, rows, columns, outers, depth: extents of z, m, n and of the two parts of k, as expressions. k_first: whether
    neighbouring threads load neighbouring places of A along the depth, and not along its rows. state: what threads keep
    of a tile in shared memory. part: how much of the depth a part has; "" where it is not divided.
    """

    groups = rows = columns = outers = depth = "1"
    k_first = True
    operands = 0, 1  # positions of the buffers of A and B
    kept: tuple[str, ...] = ("column",)  # what `column` sets, too
    along: tuple[str, str, str] | None = None  # of B: see `walk`

    def __init__(self, g: Any, part: str = ""):
        self.g, self.part = g, part
        self.state = ("z", "first_row", "first_column", *(("part",) if part else ()))
        self.i = [f"i{axis + bool(part)}" for axis in range(5)]  # the names of the output axes

    @property
    def parts(self) -> str:
        return f"udiv({self.outers} * {self.depth} + {self.part} - 1, {self.part})" if self.part else "1"

    @property
    def sizes(self) -> tuple[str, ...]:
        """How many parts, groups, rows and columns there are, and the extents of the depth."""
        return self.parts, self.groups, self.rows, self.columns, self.outers, self.depth

    def bounds(self) -> Lines:
        """Sets begin and end, the places in the whole depth between which a `part` lies."""
        return [f"begin = part * {self.part}", f"end = min_(begin + {self.part}, {self.outers} * {self.depth})"] if (
            self.part) else []

    def outer_range(self) -> tuple[str, str]:
        """The first `outer`, and the end."""
        if not self.part:
            return "0", self.outers
        return f"udiv(begin, {self.depth})", f"udiv(end + {self.depth} - 1, {self.depth})"

    def inner_range(self) -> tuple[str, str]:
        """The first `inner` of an `outer`, and the end."""
        if not self.part:
            return "0", self.depth
        return f"max_(begin - outer * {self.depth}, 0)", f"min_(end - outer * {self.depth}, {self.depth})"

    def column(self) -> Lines:
        """What is known of `column`, which the thread loads, before the sums."""
        return []

    def of_a(self) -> Lines:
        """Sets a_at, a_row and a_step, the first place of A at `outer`, and the steps along rows and depth."""
        raise NotImplementedError

    def of_b(self) -> Lines:
        """Sets b_at and b_step, as of A, but for `column`; and there, whether there is anything for it."""
        raise NotImplementedError

    def axes(self) -> Lines:
        """Sets the template's output axes from `z`, `row` and `column`."""
        raise NotImplementedError


class _Gemm(_Form):
    def __init__(self, g: Any, part: str = ""):
        super().__init__(g, part)
        self.groups, self.rows, self.columns, self.depth = g.batch, g.m, g.n, g.k

    def of_a(self) -> Lines:
        batch, row, deep = self.g.a_strides
        return [f"a_at = z * {batch}", f"a_row = {row}", f"a_step = {deep}"]

    def of_b(self) -> Lines:
        batch, deep, column = self.g.b_strides
        return [f"b_at = z * {batch} + column * {column}", f"b_step = {deep}", f"there = column < {self.columns}"]

    def axes(self) -> Lines:
        return [f"{self.i[0]} = z", f"{self.i[1]} = row", f"{self.i[2]} = column"]


class _Windowed(_Form):
    operands = 1, 0
    kept = "column", "image", "p0", "p1", "p2"

    def __init__(self, g: Any, part: str = ""):
        super().__init__(g, part)
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
        lines = [*self.pixels(extents), f"{self.i[0]} = image", f"{self.i[1]} = z * {channels} + row"]
        return [*lines, *([f"{self.i[2]} = pixel"] if self.g.flat else [f"{self.i[2 + x]} = p{x}" for x in range(3)])]


class _Convolution(_Windowed):
    """Rows are filters, columns pixels of all images; the depth is channels for each tap."""

    def __init__(self, g: Any, part: str = ""):
        super().__init__(g, part)
        w = self.w
        self.rows, self.columns = w.filters, f"{w.batch} * {' * '.join(w.out)}"
        self.outers, self.depth = self.taps, w.channels

    def column(self) -> Lines:
        return self.pixels(self.w.out)

    def of_a(self) -> Lines:
        w = self.w
        return [f"taps = {self.taps}", f"a_at = z * {w.filters} * {w.channels} * taps + outer",
                f"a_row = {w.channels} * taps", "a_step = taps"]

    def of_b(self) -> Lines:
        w, s = self.w, self.g.data_strides
        lines = [*self.tap(), f"b_at = image * {s[0]} + z * {w.channels} * {s[1]}", f"b_step = {s[1]}",
                 f"there = column < {self.columns}"]
        for x in range(3):
            lines += [f"d = small_(p{x} * {w.stride[x]} + t{x} * {w.dilate[x]} - {w.pad[x]})",
                      f"there = there & (d >= 0) & (d < {w.data[x]})", f"b_at += d * {s[2 + x]}"]
        return lines

    def axes(self) -> Lines:
        return self.of_pixels(self.w.out, self.w.filters)


class _DataGrad(_Windowed):
    """Rows are channels, columns pixels of the data of all images; the depth is filters for each tap."""

    k_first = False

    def __init__(self, g: Any, part: str = ""):
        super().__init__(g, part)
        w = self.w
        self.rows, self.columns = w.channels, f"{w.batch} * {' * '.join(w.data)}"
        self.outers, self.depth = self.taps, w.filters

    def column(self) -> Lines:
        return self.pixels(self.w.data)

    def of_a(self) -> Lines:
        w = self.w
        return [f"taps = {self.taps}", f"a_at = z * {w.filters} * {w.channels} * taps + outer", "a_row = taps",
                f"a_step = {w.channels} * taps"]

    def of_b(self) -> Lines:
        w, s = self.w, self.g.out_strides
        lines = [*self.tap(), f"b_at = image * {s[0]} + z * {w.filters} * {s[1]}", f"b_step = {s[1]}",
                 f"there = column < {self.columns}"]
        for x in range(3):
            lines += [f"d = small_(p{x} + {w.pad[x]} - t{x} * {w.dilate[x]})", f"o = small_(udiv(d, {w.stride[x]}))",
                      f"there = there & (d >= 0) & (o * {w.stride[x]} == d) & (o < {w.out[x]})",
                      f"b_at += o * {s[2 + x]}"]
        return lines

    def axes(self) -> Lines:
        return self.of_pixels(self.w.data, self.w.channels)


class _WeightGrad(_Windowed):
    """Rows are filters, columns the weights of one filter; the depth is the pixels of each row of results."""

    kept = "column", "channel", "t0", "t1", "t2"

    def __init__(self, g: Any, part: str = ""):
        super().__init__(g, part)
        w = self.w
        self.rows, self.columns = w.filters, f"{w.channels} * {self.taps}"
        self.along = "d", w.stride[2], w.data[2]
        self.outers, self.depth = f"{w.batch} * {w.out[0]} * {w.out[1]}", w.out[2]

    def _taps(self) -> Lines:
        return [*_divided("column", "channel", ("tap",), (self.taps,)),
                *_divided("tap", "t0", ("t1", "t2"), self.w.kernel[1:])]

    def column(self) -> Lines:
        return self._taps()

    def _row(self) -> Lines:
        return _divided("outer", "image", ("o0", "o1"), self.w.out[:2])

    def of_a(self) -> Lines:
        o = self.g.out_strides
        return [*self._row(), f"a_at = image * {o[0]} + z * {self.w.filters} * {o[1]} + o0 * {o[2]} + o1 * {o[3]}",
                f"a_row = {o[1]}", f"a_step = {o[4]}"]

    def of_b(self) -> Lines:
        w, s = self.w, self.g.data_strides
        lines = [*self._row(), f"b_at = image * {s[0]} + (z * {w.channels} + channel) * {s[1]}",
                 f"b_step = {w.stride[2]} * {s[4]}", f"there = column < {self.columns}"]
        for x in range(2):
            lines += [f"d = small_(o{x} * {w.stride[x]} + t{x} * {w.dilate[x]} - {w.pad[x]})",
                      f"there = there & (d >= 0) & (d < {w.data[x]})", f"b_at += d * {s[2 + x]}"]
        return [*lines, f"d = small_(t2 * {w.dilate[2]} - {w.pad[2]})", f"b_at += d * {s[4]}"]

    def axes(self) -> Lines:
        lines = [f"{self.i[0]} = z * {self.w.filters} + row"]
        return [*lines, f"{self.i[1]} = column"] if self.g.flat else [
            *lines, *self._taps(), f"{self.i[1]} = channel", *(f"{self.i[2 + x]} = t{x}" for x in range(3))]


FORMS: dict[type[geometry.Geometry], type[_Form]] = {
    geometry.Gemm: _Gemm, geometry.Convolution: _Convolution, geometry.ConvolutionDataGrad: _DataGrad,
    geometry.ConvolutionWeightGrad: _WeightGrad}


def _quad(name: str, first: int) -> str:
    return ", ".join(f"{name}{first + i}" for i in range(QUAD))


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
    g = g.whole if isinstance(g, geometry.Parts) else g
    return type(g) in FORMS and not getattr(g, "block", 0) and not getattr(g, "packed_b", 0)


def _form(g: Any) -> _Form:
    return FORMS[type(g.whole)](g.whole, g.part) if isinstance(g, geometry.Parts) else FORMS[type(g)](g)


def sizes_of(kernel: CallKernel) -> tuple[int, ...]:
    """What a form's `sizes` are."""
    form = _form(kernel.geometry.with_extents([str(n) for n in kernel.extents]))
    return tuple(int(eval(text, {"udiv": operator.floordiv})) for text in form.sizes)  # our own products


def tiles_of(kernel: CallKernel, blocks: Blocks) -> int:
    """How many tiles the result has."""
    parts, groups, rows, columns, _, _ = sizes_of(kernel)
    return parts * groups * -(-rows // blocks.tile[0]) * -(-columns // blocks.tile[1])


def product_source(kernel: CallKernel, blocks: Blocks) -> str:
    """The source of a product with its epilogue: constants, then `def kernel(b0, ..., values)`."""
    return _Product(kernel, blocks).text()


class _Product:
    """Prints a product.

    What all threads of a block have alike is kept in shared memory, in the array `v` of the run-time integers and the
    array `state` of a tile's places, and is read again behind every barrier: no register has to keep it while the tiles
    are multiplied. Loops count with `while`, and add numbers that are no constants where they are not to be unrolled.
    """

    def __init__(self, kernel: CallKernel, blocks: Blocks):
        self.kernel, self.blocks = kernel, blocks
        self.epilogue = epilogue = Epilogue(kernel)
        self.source, self.form = epilogue.source, _form(epilogue.geometry)
        self.of_truth = kernel.geometry.dtype == "bool"  # then it counts what is true in both
        self.dtype = "int32" if self.of_truth else computing_dtype(kernel.geometry.dtype)
        self.zero = epilogue.printer.constant(ir.const(0, self.dtype))
        rows, columns, depth = blocks.tile
        # A step of the depth takes a multiple of 16 bytes, and begins in another bank than the one before.
        self.pitch_a, self.pitch_b = rows + QUAD, columns + QUAD
        self.second = depth * self.pitch_a  # where the tile of B begins
        self.across, self.down = columns // blocks.each[1], rows // blocks.each[0]
        assert not any(blocks.threads % size for size in blocks.tile) and self.across * self.down == blocks.threads
        assert not (blocks.each[0] % QUAD or blocks.each[1] % QUAD or depth % UNROLLED)

    def lines(self, more: Lines) -> None:
        for line in more:
            self.source(line)

    def text(self) -> str:
        form, source, (rows, columns, depth) = self.form, self.source, self.blocks.tile
        with source.block(self.epilogue.head()):
            self.lines(self.epilogue.shared_integers(self.blocks.threads))
            source(f"state = cuda.shared.array({len(form.state)}, int64)")
            source(f"places = cuda.shared.array({len(form.kept) * columns}, int64)")
            elements = max(rows * columns, self.second + depth * self.pitch_b)
            self.lines([f"tile = cuda.shared.array({elements}, {self.dtype}, 16)",
                        f"own = thread & {columns - 1}", "unit = small_(cuda.blockIdx.x)"])
            with source.block(f"while unit < {form.parts} * {form.groups} * {self._tiles(form.rows, rows)} * "
                              f"{self._tiles(form.columns, columns)}:"):
                self.place()
                self.lines([f"c{i}_{j} = {self.zero}" for i in range(self.blocks.each[0])
                            for j in range(self.blocks.each[1])])
                self.sums()
                self.store()
                self.lines(["cuda.syncthreads()", "unit = small_(unit + cuda.gridDim.x)"])
        return self.epilogue.text()

    def sums(self) -> None:
        """Goes through the depth, in steps."""
        source, (first_outer, last_outer), (first, last) = self.source, self.form.outer_range(), self.form.inner_range()
        bounds = [f"part = state[{len(self.form.state) - 1}]", *self.form.bounds()] if self.form.part else []
        self.lines([*bounds, f"outer = small_({first_outer})"])
        with source.block(f"while outer < {last_outer}:"):
            source(f"inner = small_({first})")
            with source.block(f"while inner < {last}:"):
                self.load()
                source("cuda.syncthreads()")
                self.multiply()
                self.lines(["cuda.syncthreads()", f"inner = small_(inner + {self.blocks.tile[2]})", *bounds])
            source("outer = small_(outer + 1)")

    @staticmethod
    def _tiles(extent: str, size: int) -> str:
        return f"udiv({extent} + {size - 1}, {size})"

    def place(self) -> None:
        """Where the tile of `unit` begins, for all threads; and what is known of the columns that they load."""
        form, (rows, columns, _) = self.form, self.blocks.tile
        self.lines([*_divided("unit", "part", ("z", "down", "right"), (
            form.groups, self._tiles(form.rows, rows), self._tiles(form.columns, columns))),
            f"first_row = down * {rows}", f"first_column = right * {columns}",
            "column = first_column + own", *form.column()])
        with self.source.block(f"if thread < {columns}:"):
            self.lines([f"places[{i * columns} + own] = {name}" for i, name in enumerate(form.kept)])
        with self.source.block("if thread == 0:"):
            self.lines([f"state[{i}] = {name}" for i, name in enumerate(form.state)])
        self.source("cuda.syncthreads()")

    def load(self) -> None:
        """Both tiles of a step, from `inner` on."""
        form, (rows, columns, depth) = self.form, self.blocks.tile
        (first, second), last = form.operands, form.inner_range()[1]
        self.lines([*self.state(), *form.of_a()])
        if form.k_first:
            self.lines([f"k = thread & {depth - 1}", f"m = thread >> {depth.bit_length() - 1}", "row = first_row + m",
                        "at = a_at + row * a_row + (inner + k) * a_step", f"left = {form.rows} - first_row",
                        f"there = inner + k < {last}", f"to = k * {self.pitch_a} + m"])
            self.walk(first, "m", rows, "a_row", self.blocks.threads // depth, 1)
        else:
            self.lines([f"k = thread >> {rows.bit_length() - 1}", f"m = thread & {rows - 1}", "row = first_row + m",
                        "at = a_at + row * a_row + (inner + k) * a_step", f"left = {last} - inner",
                        f"there = row < {form.rows}", f"to = k * {self.pitch_a} + m"])
            self.walk(first, "k", depth, "a_step", self.blocks.threads // rows, self.pitch_a)
        self.lines([f"{name} = places[{i * columns} + own]" for i, name in enumerate(form.kept)])
        self.lines([*form.of_b(), f"k = thread >> {columns.bit_length() - 1}", "at = b_at + (inner + k) * b_step",
                    f"left = {last} - inner", f"to = {self.second} + k * {self.pitch_b} + own"])
        self.walk(second, "k", depth, "b_step", self.blocks.threads // columns, self.pitch_b, form.along)

    def walk(self, buffer: int, name: str, end: int, step: str, by: int, pitch: int,
             along: tuple[str, str, str] | None = None) -> None:
        """Loads what one thread loads of an operand: elements `by` apart, from `at` in the buffer and `to` in the tile
        on, up to `end` or what is `left`; zeros beyond, and where nothing is `there`. step, pitch: to the next element
        in the buffer and in the tile. along: a place that also goes on, its step and the extent it has to be in."""
        source, shift = self.source, (self.blocks.threads // by).bit_length() - 1
        place, of_place, extent = along or ("", "", "")
        self.lines([f"{name} = small_({name})", "to = small_(to)", f"step = {step} * {by}",
                    f"left = small_(select(there, min_(left, {end}), 0))"])
        if along:
            self.lines([f"{place} = small_({place} + (inner + {name}) * {of_place})",
                        f"of_place = small_({of_place} * {by})"])
        with source.block(f"while {name} < {end}:"):
            source(f"value = {self.zero}")
            inside = f" and {place} >= 0 and {place} < {extent}" if along else ""
            with source.block(f"if {name} < left{inside}:"):
                element = self.epilogue.printer.element(buffer, "at", self.kernel.buffers[buffer])
                source(f"value = {f'int32({element})' if self.of_truth else element}")
            self.lines(["put_(tile, to, value)", "at += step", f"to = small_(to + {by * pitch})",
                        f"{name} = small_({name} + (cuda.blockDim.x >> {shift}))"])
            if along:
                source(f"{place} = small_({place} + of_place)")

    def state(self) -> Lines:
        """Reads what `place` has kept."""
        return [*(f"{name} = state[{i}]" for i, name in enumerate(self.form.state)), *self.form.bounds()]

    def multiply(self) -> None:
        """Adds the products of the tiles' elements to the sums, in the order of the depth."""
        (high, wide), depth = self.blocks.each, self.blocks.tile[2]
        whole = "{}" if self.dtype.startswith("float") else f"{self.dtype}({{}})"
        self.lines(["k = small_(0)", f"from_a = small_((thread >> {self.across.bit_length() - 1}) * {QUAD})",
                    f"from_b = small_({self.second} + (thread & {self.across - 1}) * {QUAD})"])
        with self.source.block(f"while k < {depth}:"):
            for step in range(UNROLLED):
                self.lines([f"{_quad('x', i)} = four_(tile, from_a + {step * self.pitch_a + i * self.down})"
                            for i in range(0, high, QUAD)])
                self.lines([f"{_quad('y', j)} = four_(tile, from_b + {step * self.pitch_b + j * self.across})"
                            for j in range(0, wide, QUAD)])
                self.lines([f"c{i}_{j} = {whole.format(f'c{i}_{j} + x{i} * y{j}')}" for i in range(high)
                            for j in range(wide)])
            self.lines([f"from_a = small_(from_a + {UNROLLED * self.pitch_a})",
                        f"from_b = small_(from_b + {UNROLLED * self.pitch_b})", f"k = small_(k + {UNROLLED})"])

    def store(self) -> None:
        """The epilogue of all elements of the tile."""
        form, source, (rows, columns, _), (high, wide) = self.form, self.source, self.blocks.tile, self.blocks.each
        source(f"to = (thread >> {self.across.bit_length() - 1}) * {QUAD * columns} + "
               f"(thread & {self.across - 1}) * {QUAD}")
        for i in range(high):
            at = (i - i % QUAD) * self.down + i % QUAD
            self.lines([f"put_four_(tile, to + {at * columns + j * self.across}, {_quad(f'c{i}_', j)})"
                        for j in range(0, wide, QUAD)])
        self.lines(["cuda.syncthreads()", *self.state(), "element = thread"])
        with source.block(f"while element < {rows * columns}:"):
            self.lines([f"row = first_row + (element >> {columns.bit_length() - 1})",
                        f"column = first_column + (element & {columns - 1})"])
            with self.epilogue.printer.scope(f"if row < {form.rows} and column < {form.columns}:"):
                total = f"tile[element]{' != 0' if self.of_truth else ''}"
                self.lines([*form.axes(), *(["i0 = part"] if form.part else []), f"total = {total}"])
                self.epilogue.store()
            source("element += cuda.blockDim.x")
