"""Depthwise convolutions, their gradients and those of pooling as numba.cuda source: a thread per result, or a block
where a result is the sum over all pixels of all images."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mxc.compiler.kernel import geometry, ir
from mxc.compiler.kernel.ir import CallKernel, computing_dtype
from mxc.compiler.targets.cuda.epilogue import Epilogue

Lines = list[str]


def _points(axes: Any, flat: bool, first: int) -> tuple[str, Lines]:
    """How many results there are, and statements that set a0 and so on, and the axes of the epilogue, from `point`."""
    lines, left = [], "point"
    for i in reversed(range(len(axes))):
        lines += [f"a{i} = small_(umod({left}, {axes[i]}))", f"left{i} = udiv({left}, {axes[i]})"]
        left = f"left{i}"
    lines += [f"i{i} = a{i}" for i in range(first if flat else len(axes))]
    if flat:
        place = f"a{first}"
        for i in range(first + 1, len(axes)):
            place = f"({place}) * {axes[i]} + a{i}"
        lines.append(f"i{first} = {place}")
    return " * ".join(f"({axis})" for axis in axes), lines


def _indented(lines: Lines, depth: int = 1) -> Lines:
    return [f"{'    ' * depth}{line}" for line in lines]


def _taps(kernel: Any, inside: Lines) -> Lines:
    return [f"for t0 in range({kernel[0]}):", f"    for t1 in range({kernel[1]}):",
            f"        for t2 in range({kernel[2]}):", *_indented(inside, 3)]


def _nested(name: str, first: str, last: str, inside: Lines) -> Lines:
    """Three loops around statements: their variables, starts and ends are these names with 0, 1 and 2. They count with
    32 bits."""
    lines = inside
    for x in (2, 1, 0):
        lines = [f"{name}{x} = {first}{x}", f"while {name}{x} < {last}{x}:",
                 *_indented([*lines, f"{name}{x} = small_({name}{x} + 1)"])]
    return lines


def _depthwise(g: Any, load: Callable[[int, str], str]) -> Lines:
    w, s = g.window, g.data_strides
    place = f"a0 * {s[0]} + a1 * {s[1]} + d0 * {s[2]} + d1 * {s[3]} + d2 * {s[4]}"
    return _taps(g.kernel, [
        *(f"d{x} = small_(a{x + 2} * {w.stride[x]} + t{x} * {w.dilate[x]} - {w.pad[x]})" for x in range(3)),
        f"if {' and '.join(f'd{x} >= 0 and d{x} < {w.data[x]}' for x in range(3))}:",
        f"    total += {load(0, place)} * {load(1, _tap_of('a1', g.kernel))}"])


def _tap_of(channel: str, kernel: Any) -> str:
    return f"(({channel} * {kernel[0]} + t0) * {kernel[1]} + t1) * {kernel[2]} + t2"


def _data_grad(g: Any, load: Callable[[int, str], str]) -> Lines:
    w, s = g.window, g.out_strides
    place = f"a0 * {s[0]} + a1 * {s[1]} + o0 * {s[2]} + o1 * {s[3]} + o2 * {s[4]}"
    inside = " and ".join(f"d{x} >= 0 and o{x} * {w.stride[x]} == d{x} and o{x} < {w.out[x]}" for x in range(3))
    return _taps(g.kernel, [
        *(line for x in range(3) for line in (f"d{x} = small_(a{x + 2} + {w.pad[x]} - t{x} * {w.dilate[x]})",
                                              f"o{x} = small_(udiv(d{x}, {w.stride[x]}))")),
        f"if {inside}:", f"    total += {load(0, place)} * {load(1, _tap_of('a1', g.kernel))}"])


def _weight_grad(g: Any, load: Callable[[int, str], str]) -> Lines:
    """What one thread of a block adds up: every so many-th pixel of the results of all images."""
    w, s, o = g.window, g.data_strides, g.out_strides
    data = f"image * {s[0]} + a0 * {s[1]} + d0 * {s[2]} + d1 * {s[3]} + d2 * {s[4]}"
    out = f"image * {o[0]} + a0 * {o[1]} + o0 * {o[2]} + o1 * {o[3]} + o2 * {o[4]}"
    lines, left = [], "place"
    for x in (2, 1, 0):
        lines += [f"o{x} = small_(umod({left}, {w.out[x]}))", f"image = udiv({left}, {w.out[x]})"]
        left = "image"
    return ["place = thread", f"while place < {w.batch} * {' * '.join(w.out)}:", *_indented([
        *lines, *(f"d{x} = small_(o{x} * {w.stride[x]} + a{x + 2} * {w.dilate[x]} - {w.pad[x]})" for x in range(3)),
        f"if {' and '.join(f'd{x} >= 0 and d{x} < {w.data[x]}' for x in range(3))}:",
        f"    total += {load(0, data)} * {load(1, out)}", "place += cuda.blockDim.x"])]


def _over_windows(w: Any, inside: Lines) -> Lines:
    """`inside` for each window o0, o1, o2 that holds the point."""
    lines: Lines = []
    for x in range(3):
        d = f"a{x + 2}"
        lines += [f"from{x} = small_(udiv(max_({d} + {w.pad[x]} - {w.kernel[x]} + {w.stride[x]}, 0), {w.stride[x]}))",
                  f"to{x} = small_(min_({w.out[x]}, udiv({d} + {w.pad[x]}, {w.stride[x]}) + 1))"]
    return [*lines, *_nested("o", "from", "to", inside)]


def _pool_spread(g: Any, load: Callable[[int, str], str]) -> Lines:
    """The windows that hold the point, each over its divisor."""
    w, o = g.window, g.out_strides
    value = load(0, f"a0 * {o[0]} + a1 * {o[1]} + o0 * {o[2]} + o1 * {o[3]} + o2 * {o[4]}")
    if g.divisor == "none":
        return _over_windows(w, [f"total += {value}"])
    lines = []
    for x in range(3):
        first, end = (0, f"2 * {w.pad[x]}") if g.divisor == "padded" else (w.pad[x], w.pad[x])
        lines.append(f"count{x} = max_(min_(o{x} * {w.stride[x]} + {w.kernel[x]}, {w.data[x]} + {end}) - "
                     f"max_(o{x} * {w.stride[x]}, {first}), 1)")
    kind = computing_dtype(g.dtype)
    return _over_windows(w, [*lines, f"total += {value} / {kind}(count0 * count1 * count2)"])


def _max_pool_grad(g: Any, load: Callable[[int, str], str]) -> Lines:
    """The windows that hold the point, and in each the place of its first maximum."""
    w, s, o = g.window, g.data_strides, g.out_strides
    data, first = (f"a0 * {s[0]} + a1 * {s[1]} + {e}0 * {s[2]} + {e}1 * {s[3]} + {e}2 * {s[4]}" for e in ("e", "low"))
    scan: Lines = []
    for x in range(3):
        scan += [f"low{x} = small_(max_(0, o{x} * {w.stride[x]} - {w.pad[x]}))",
                 f"high{x} = small_(min_({w.data[x]}, o{x} * {w.stride[x]} - {w.pad[x]} + {w.kernel[x]}))"]
    scan += ["seen = 0", "is_first = False", f"best = {load(0, first)}", *_nested("e", "low", "high", [
        f"value = {load(0, data)}", "if seen == 0 or (value == value and (value > best or best != best)):",
        "    best = value", "    is_first = e0 == a2 and e1 == a3 and e2 == a4", "seen = 1"]), "if is_first:",
             f"    total += {load(1, f'a0 * {o[0]} + a1 * {o[1]} + o0 * {o[2]} + o1 * {o[3]} + o2 * {o[4]}')}"]
    return _over_windows(w, scan)


FORMS: dict[type[geometry.Geometry], Callable[[Any, Callable[[int, str], str]], Lines]] = {
    geometry.Depthwise: _depthwise, geometry.DepthwiseDataGrad: _data_grad,
    geometry.DepthwiseWeightGrad: _weight_grad, geometry.MaxPoolGrad: _max_pool_grad,
    geometry.PoolSpread: _pool_spread}


def _axes(g: Any) -> tuple[Any, int]:
    """The output axes, and the first of those that `flat` merges."""
    w = g.window
    if isinstance(g, geometry.DepthwiseWeightGrad):
        return (w.groups, "1", *map(str, g.kernel)), 1
    if isinstance(g, geometry.Depthwise):
        return (w.batch, w.groups, *w.out), 2
    return (w.batch, w.groups, *w.data), 2


def has_form(kernel: CallKernel) -> bool:
    """Whether this file prints a library kernel."""
    return type(kernel.geometry) in FORMS


def points_of(kernel: CallKernel) -> int:
    """How many results there are."""
    total = 1
    for extent in _axes(kernel.geometry)[0]:
        total *= int(extent)
    return total


def by_blocks(kernel: CallKernel) -> bool:
    """Whether a block computes each result: one that sums over all pixels of all images."""
    return isinstance(kernel.geometry, geometry.DepthwiseWeightGrad)


def window_source(kernel: CallKernel, threads: int) -> str:
    """The source of the kernel: constants, then `def kernel(b0, ..., values)`. threads: of a block."""
    epilogue = Epilogue(kernel)
    g, source, dtype = epilogue.geometry, epilogue.source, computing_dtype(kernel.geometry.dtype)
    axes, first = _axes(g)
    count, places = _points(axes, bool(getattr(g, "flat", False)), first)

    def load(buffer: int, place: str) -> str:
        return str(epilogue.printer.element(buffer, place, kernel.buffers[buffer]))

    zero = epilogue.printer.constant(ir.const(0, dtype))
    lines = [*places, f"total = {zero}", *FORMS[type(kernel.geometry)](g, load)]
    with source.block(epilogue.head()):
        for line in epilogue.shared_integers(threads):
            source(line)
        if not by_blocks(kernel):
            with epilogue.printer.scope(f"for point in range(cuda.grid(1), {count}, cuda.gridsize(1)):"):
                for line in lines:
                    source(line)
                epilogue.store()
            return epilogue.text()
        source(f"parts = cuda.shared.array({threads}, {dtype})")
        with source.block(f"for point in range(cuda.blockIdx.x, {count}, cuda.gridDim.x):"):
            for line in [*lines, "parts[thread] = total", "cuda.syncthreads()", "step = cuda.blockDim.x >> 1",
                         "while step > 0:", "    if thread < step:", "        parts[thread] += parts[thread + step]",
                         "    cuda.syncthreads()", "    step = step >> 1"]:
                source(line)
            with epilogue.printer.scope("if thread == 0:"):
                source("total = parts[0]")
                epilogue.store()
            source("cuda.syncthreads()")
    return epilogue.text()
