"""The gradient of max pooling."""
from __future__ import annotations

import functools
import math

from mxc.compiler.kernel.geometry import MaxPoolGrad
from mxc.compiler.targets.cpu.emit.builder import TYPES, Array, Builder, Number, Value, vector_type
from mxc.compiler.targets.cpu.library.convolution import every_other, inner_axes, pair_masks, split
from mxc.compiler.targets.cpu.library.cutting import volume
from mxc.compiler.targets.cpu.library.printing import KERNEL, Function, Printing
from mxc.compiler.targets.cpu.machine.isa import Isa


def units(g: MaxPoolGrad[int], isa: Isa) -> int:
    return g.window.batch * g.window.groups


def scratch_elements(g: MaxPoolGrad[int], isa: Isa) -> int:
    return volume(g.window.data) + isa.lanes(g.dtype)


def print_kernel(p: Printing) -> None:
    """Per plane: zeros, then each window adds its gradient at its first maximum, then the epilogue over the plane.

    Windows of 2 x 2 that touch but do not overlap have a loop of their own, without a store for each window. So have
    windows of whole planes, whose elements make the vectors.
    """
    with p.b.function(p.symbol, KERNEL) as (args, first, last, scratch):
        made = Function(p, args)
        b, epilogue, lanes, g, plane = p.b, made.epilogue, made.lanes, made.g, p.array(scratch)
        w, (data, out_grad), size = g.window, epilogue.buffers[:2], volume(g.window.data)
        several = b.select(_planes(b, g), last, first)
        for unit in b.range(first, several):
            image, channel = unit // w.groups, unit % w.groups
            source = data.at(image * g.data_strides[0] + channel * g.data_strides[1])
            grad = made.loaded(out_grad[image * g.out_strides[0] + channel * g.out_strides[1]], out_grad.dtype)
            _whole_plane(made, source, grad, [image, channel])
        for unit in b.range(several, last):
            image, channel = unit // w.groups, unit % w.groups
            source = data.at(image * g.data_strides[0] + channel * g.data_strides[1])
            grads = out_grad.at(image * g.out_strides[0] + channel * g.out_strides[1])
            for i in b.range(0, size, lanes):
                plane.put(i, made.zero)
            plane.put(size, made.zero)
            rows, squares = w.out[0] * w.out[1], _squares(b, g)
            for row in b.range(0, b.select(squares, rows, b.lift(0))):
                place = split(row, w.out[:2])
                line = grads.at(place[0] * g.out_strides[2] + place[1] * g.out_strides[3])
                top = source.at(place[0] * g.data_strides[2] + place[1] * g.data_strides[3] * 2)
                target = plane.at((place[0] * w.data[1] + place[1] * 2) * w.data[2])
                _square_row(made, (top, top.at(g.data_strides[3])), line, (target, target.at(w.data[2])))
            for row in b.range(0, b.select(squares, b.lift(0), rows)):
                place = split(row, w.out[:2])
                line = grads.at(place[0] * g.out_strides[2] + place[1] * g.out_strides[3])
                windows = _Windows(made, source, place)
                for x in b.range(0, w.out[2], lanes):
                    windows.add(plane, line, x)
            for i in b.range(0, size, lanes):
                mask = b.first_lanes(size - i, lanes)
                axes = inner_axes(b, g.flat, i, w.data, lanes)
                epilogue.store([image, channel, *axes], plane.vector(i, lanes), p.dtype, mask)


def _planes(b: Builder, g: MaxPoolGrad[Value]) -> Value:
    """Whether there is one window for each plane, which is all of it, and the plane lies together."""
    w, steps = g.window, g.data_strides
    checks = [n.equals(1) for n in w.out] + [n.equals(0) for n in w.pad]
    checks += [w.kernel[i] >= w.data[i] for i in range(3)]
    checks += [steps[4].equals(1), steps[3].equals(w.data[2]) | w.data[1].equals(1),
               steps[2].equals(w.data[1] * w.data[2]) | w.data[0].equals(1), volume(w.data) > 0]
    return functools.reduce(lambda x, y: x & y, checks)


def _whole_plane(made: Function, source: Array, grad: Value, axes: list[Value]) -> None:
    """The gradient of a window that is a whole plane: each lane finds the largest of its elements, the first of equal
    ones, and then the lanes among each other."""
    b, lanes, size = made.b, made.lanes, volume(made.g.window.data)
    numbers, kind = vector_type("i32", lanes), made.zero.type
    best = [b.number(math.nan, kind), b.zero(numbers)]
    for i in b.range(0, size, lanes, carry=best):
        mask = b.first_lanes(size - i, lanes)
        value = made.loaded(source.vector(i, lanes, mask), source.dtype)
        # `ugt` also holds where the best value so far is NaN: a number replaces NaN, and NaN replaces nothing
        better = b.compare("ugt", value, best[0]) & b.compare("oeq", value, value) & mask
        best[0] = b.select(better, value, best[0])
        best[1] = b.select(better, b.iota(numbers) + b.splat(b.convert("trunc", i, "i32"), lanes), best[1])
    most = b.intrinsic("llvm.vector.reduce.fmax", grad.type, [best[0]], [kind])
    far = b.splat(b.number(2**31 - 1, "i32"), lanes)
    place = b.select(b.compare("oeq", best[0], b.splat(most, lanes)), best[1], far)
    first = b.intrinsic("llvm.vector.reduce.smin", "i32", [place], [numbers])
    first = b.splat(b.select(b.compare("uno", most, most), b.number(0, "i32"), first), lanes)
    for i in b.range(0, size, lanes):
        here = b.iota(numbers) + b.splat(b.convert("trunc", i, "i32"), lanes)
        result = b.select(here.equals(first), b.splat(grad, lanes), made.zero)
        inner = inner_axes(b, made.g.flat, i, made.g.window.data, lanes)
        made.epilogue.store([*axes, *inner], result, made.dtype, b.first_lanes(size - i, lanes))


def _squares(b: Builder, g: MaxPoolGrad[Value]) -> Value:
    """Whether the windows are squares of 2 x 2 elements side by side, all of them inside, in rows that lie together."""
    w = g.window
    ones = (g.data_strides[4], g.out_strides[4], w.kernel[0], w.stride[0])
    twos = (w.kernel[1], w.kernel[2], w.stride[1], w.stride[2])
    checks = [n.equals(value) for numbers, value in ((ones, 1), (twos, 2), (w.pad, 0)) for n in numbers]
    checks += [w.out[0] <= w.data[0], *(w.out[i] * 2 <= w.data[i] for i in (1, 2))]
    return functools.reduce(lambda x, y: x & y, checks)


def _square_row(made: Function, rows: tuple[Array, Array], line: Array, targets: tuple[Array, Array]) -> None:
    """A row of windows of 2 x 2: each element of two rows gets its window's gradient or 0.

    Both lanes of a window compute its largest number. An element is the first maximum if it equals that, and none
    before it in the order of rows does. Where all four are NaN it is the first.
    """
    b, loaded, lanes = made.b, made.loaded, made.lanes
    other_lanes, twice = [i ^ 1 for i in range(lanes)], [i // 2 for i in range(lanes)]
    kind = vector_type("i32", lanes)
    odd = b.compare("ne", b.binary("and", b.iota(kind), b.splat(b.number(1, "i32"), lanes)), b.zero(kind))
    width = made.g.window.out[2] * 2

    def larger(x: Value, y: Value) -> Value:
        return b.select(b.compare("ugt", y, x) & b.compare("oeq", y, y), y, x)

    for x in b.range(0, width, lanes):
        mask, half = b.first_lanes(width - x, lanes), lanes // 2
        upper, lower = (loaded(row.vector(x, lanes, mask), row.dtype) for row in rows)
        beside_upper, beside_lower = (b.shuffle(v, v, other_lanes) for v in (upper, lower))
        most = larger(larger(upper, lower), larger(beside_upper, beside_lower))
        grads = loaded(line.vector(x // 2, half, b.first_lanes((width - x) // 2, half)), line.dtype)
        grads = b.shuffle(grads, grads, twice)
        is_upper, is_beside_upper, is_lower, is_beside_lower = (
            b.compare("oeq", v, most) for v in (upper, beside_upper, lower, beside_lower))
        none = b.compare("uno", most, most) & b.negate(odd)
        first = is_upper & b.negate(is_beside_upper & odd) | none
        second = is_lower & b.negate(is_upper | is_beside_upper | (is_beside_lower & odd))
        for target, chosen in zip(targets, (first, second), strict=True):
            target.put(x, b.select(chosen, grads, b.zero(grads.type)), mask)


class _Windows:
    """A row of windows of a plane, as many at once as a vector has lanes."""

    def __init__(self, made: Function, source: Array, place: list[Value]):
        g: MaxPoolGrad[Value] = made.g
        b, w = made.b, g.window
        self.b, self.w, self.lanes, self.source, self.loaded = b, w, made.lanes, source, made.loaded
        self.strides, self.out_strides = g.data_strides, g.out_strides
        self.numbers, self.kind = vector_type("i32", self.lanes), vector_type(TYPES[made.dtype], self.lanes)
        starts = [p * w.stride[x] - w.pad[x] for x, p in enumerate(place)]
        self.begin = [b.maximum(0, start) for start in starts]
        self.end = [b.minimum(w.data[x], start + w.kernel[x]) for x, start in enumerate(starts)]

    def splat(self, number: Number) -> Value:
        """A number below 2^31 for every lane."""
        return self.b.splat(self.b.convert("trunc", self.b.lift(number), "i32"), self.lanes)

    def add(self, plane: Array, line: Array, x: Value) -> None:
        """The gradients of the windows from `x` on, out of their row `line`."""
        b, w, lanes = self.b, self.w, self.lanes
        left = x * w.stride[2] - w.pad[2]
        columns = self.splat(left) + b.iota(self.numbers) * self.splat(w.stride[2])
        start = b.select(columns < b.zero(self.numbers), b.zero(self.numbers), columns)
        exists = (start < self.splat(w.data[2])) & (start < columns + self.splat(w.kernel[2]))
        there = (self.begin[0] < self.end[0]) & (self.begin[1] < self.end[1])
        exists = exists & b.first_lanes(w.out[2] - x, lanes) & b.splat(there, lanes)
        corner = (self.begin[0] * w.data[1] + self.begin[1]) * w.data[2]
        best = [b.number(math.nan, self.kind), self.splat(corner) + start]
        for d in b.range(self.begin[0], self.end[0], carry=best):
            for h in b.range(self.begin[1], self.end[1], carry=best):
                row = self.source.at(d * self.strides[2] + h * self.strides[3])
                self._taps(best, row, left, columns, (d * w.data[1] + h) * w.data[2])
        # lanes without a window add nothing, each to an element of its own behind the plane: none waits for another
        behind = self.splat(volume(w.data)) + b.iota(self.numbers)
        at = b.select(exists, best[1], behind)
        for lane in range(lanes):
            grad = line[b.minimum(x + lane, w.out[2] - 1) * self.out_strides[4]]
            grad = b.select(b.lane(exists, lane), self.loaded(grad, line.dtype), b.zero(plane.element))
            cell = plane.at(b.convert("sext", b.lane(at, lane), "i64"))
            cell[0] = cell[0] + grad

    def _taps(self, best: list[Value], row: Array, left: Value, columns: Value, position: Value) -> None:
        """Replaces each window's largest value so far, and its position in the plane, by a larger one of a row of taps.

        One of three loops runs: the windows' elements lie together, two apart, or anywhere.
        """
        b, w, lanes = self.b, self.w, self.lanes
        plain, stride, step = self.strides[4].equals(1), w.stride[2], self.strides[4]
        none = b.lift(0)
        loops = [b.select(plain & stride.equals(apart), w.kernel[2], none) for apart in (1, 2)]
        loops.append(b.select(plain & ((stride.equals(1)) | stride.equals(2)), none, w.kernel[2]))
        for kind, count in enumerate(loops):
            for k in b.range(0, count, carry=best):
                places = columns + self.splat(k)
                inside = b.inside(places, self.splat(w.data[2]))
                if kind == 0:
                    raw = row.vector(left + k, lanes, inside)
                elif kind == 1:
                    masks = pair_masks(b, left + k, w.data[2], b.number(1, "i1"), lanes)
                    raw = every_other(row.at(left + k), masks, lanes)
                else:
                    raw = row.gather(b.convert("sext", places, "i64") * b.splat(step, lanes), inside)
                value = self.loaded(raw, row.dtype)
                # `ugt` also holds where the best value so far is NaN: a number replaces NaN, and NaN replaces nothing
                better = b.compare("ugt", value, best[0]) & b.compare("oeq", value, value) & inside
                best[0] = b.select(better, value, best[0])
                best[1] = b.select(better, self.splat(position) + places, best[1])
