"""Which skeleton a canonical loop kernel has on the CPU, and into how many units of work it is divided.

There are four skeletons. A *map* has no accumulators; its innermost axis is the vector loop. *rows* takes one point of
the domain at a time; the innermost reduce axis is the vector loop. *columns* is taken where the loads run along the
domain's last axis rather than along the reduce axes: it takes a block of that axis at a time, whose accumulators lie in
the thread's scratch memory. *windows* is taken where windows slide along that axis (sliding.py): a row of results is
made of vectors by a word of its own (slides.py).

A short last axis of the domain, the *lanes* (canonical.py), is an innermost loop of constant length in maps and rows.
It takes the place of columns: each point of the other axes is a vector or two. Accumulators are then local arrays.

A unit of work is a part of the domain: see `units`. Its sizes are part of the printed code. Values that do not depend
on an inner loop's axis are printed outside of it. Accumulators that use others' results have a sweep of their own.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.canonical import contiguity, lanes
from mxc.compiler.kernel.ir import LoopKernel, Value, computing_dtype
from mxc.compiler.kernel.simplify_index import affine, from_affine
from mxc.compiler.targets.cpu.emit.builder import BYTES
from mxc.compiler.targets.cpu.emit.sliding import sliding
from mxc.compiler.targets.loop_printer import ARG

CHUNK = 8192  # a unit of a map, or of rows, has about so many points
COLUMNS = ((4096, 512), (1024, 256), (1, 64))  # (an axis of at least this length, is cut into so many columns)
WIDE_BLOCK = COLUMNS[0][1]  # the most columns that a unit has
# Where loads run along another axis than stores, squares of TILE x TILE elements are transposed in registers, and a
# unit has at least TILE_ROWS rows.
TILE, TILE_ROWS = 8, 16
STREAMED = 1 << 25  # outputs of at least so many bytes, as large as most last caches, are stored past the caches
PIECE, ROW, SHORT_ROW = 512, 4096, 128  # maps stream so many elements at a time; streamed rows have 128 to 4096
MOST_LANES = 16  # the most elements of a vector of floats
PARTIAL = 4096  # sums are made of partial sums over so many elements, which keeps float32 accurate


def skeleton(kernel: LoopKernel) -> str:
    """The skeleton of a canonical kernel: "map", "rows", "columns" or "windows"."""
    if not kernel.accumulators:
        return "map"
    if not kernel.domain or not kernel.reduce or lanes(kernel):
        return "rows"
    if sliding(kernel) is not None:
        return "windows"
    score = contiguity(kernel)
    last = len(kernel.domain) - 1
    return "columns" if score(last) > score(last + len(kernel.reduce)) else "rows"


def is_tiled(kernel: LoopKernel) -> bool:
    """True for a map with loads that jump along the last axis and run along another, as in a transposition."""
    last = ir.axis(len(kernel.domain) - 1)
    for v in ir.walk(kernel.roots()):
        if v.op == "load" and len(kernel.domain) > 1:
            terms = affine(v.args[0])[0]
            if terms.get(last, 0) not in (0, 1) and any(c == 1 and a.op == "axis" for a, c in terms.items()):
                return True
    return False


def across(kernel: LoopKernel) -> list[Value]:
    """The loads of a tiled map that are transposed in registers: they run along the last axis but one; no lanes."""
    if kernel.accumulators or lanes(kernel) or not is_tiled(kernel):
        return []
    last = len(kernel.domain) - 1
    found = []
    for v in ir.walk(kernel.roots()):
        if v.op == "load" and len(v.args) == 1:
            terms = affine(v.args[0])[0]
            if terms.get(ir.axis(last - 1), 0) == 1 and terms.get(ir.axis(last), 0) not in (0, 1):
                found.append(v)
    return found


@dataclass(frozen=True)
class Marked:
    """What a map stores that has one number, `others`, at all places along its last axis but `place`, where it has
    `there`. Only `place` may lie beyond the axis."""

    place: Value
    there: Value
    others: Value


def one_place(kernel: LoopKernel) -> Marked | None:
    """The places and numbers of a map such as `one_hot`; None for another one."""
    if kernel.accumulators or len(kernel.stores) != 1 or not kernel.domain:
        return None
    store, last = kernel.stores[0], ir.axis(len(kernel.domain) - 1)
    if store.value.op != "where" or store.mode != "write" or affine(store.index)[0].get(last) != 1:
        return None
    test, there, others = store.value.args
    if test.op != "eq" or others.op != "const" or test.args[0] not in (last, ir.cast(last, "int32")):
        return None
    return None if last in ir.walk([test.args[1], there]) else Marked(test.args[1], there, others)


def has_short_loops(kernel: LoopKernel) -> bool:
    """True when the innermost loops have few, constant steps."""
    return lanes(kernel) > 0 or bool(across(kernel))


def units(kernel: LoopKernel) -> int:
    """How many units of work a canonical kernel has; the printed code divides it in the same way."""
    if 0 in kernel.domain:
        return 0
    if not kernel.domain:
        return 1
    kind, width = skeleton(kernel), lanes(kernel)
    domain, chunk = (kernel.domain[:-1], CHUNK // width) if width else (kernel.domain, CHUNK)
    if kind == "rows":
        return -(-math.prod(domain) // max(1, chunk // max(1, math.prod(kernel.reduce))))
    rows, last = math.prod(domain[:-1]), domain[-1]
    if kind == "windows":
        return -(-rows // max(1, chunk // (last * math.prod(kernel.reduce)))) * -(-last // WIDE_BLOCK)
    size = chunk if kind == "map" else next(columns for least, columns in COLUMNS if last >= least)
    parts = -(-last // size)
    block = max(TILE_ROWS if is_tiled(kernel) else 1, chunk // last) if kind == "map" else 1
    return -(-rows // block) * parts


def streams(kernel: LoopKernel) -> dict[int, Value]:
    """The outputs that are stored past the caches: buffer -> where its stretch begins at a point of the domain. They
    are too large for the caches, are not read, and are written along the innermost axis, in maps or in rows. These
    kernels have code of their own (`variant`), so that kernels of smaller arrays do not pay for it."""
    extents, rows = (*kernel.domain, *kernel.reduce), bool(kernel.accumulators)
    if math.prod(extents) * 8 < STREAMED or not kernel.domain or lanes(kernel) or is_tiled(kernel):
        return {}
    if rows and (skeleton(kernel) != "rows" or len(kernel.reduce) != 1):
        return {}
    if not (SHORT_ROW <= extents[-1] <= ROW if rows else extents[-1] >= SHORT_ROW and not kernel.reduce):
        return {}
    known, reads, inner = ir.run_time_integers(kernel.roots()), kernel.reads(), ir.axis(len(extents) - 1)
    found: dict[int, Value] = {}
    for s in kernel.stores:
        terms, offset = affine(s.index)
        size = math.prod(n for i, n in enumerate(extents) if ir.axis(i) in terms) * BYTES[kernel.buffers[s.buffer]]
        if s.mode != "write" or s.buffer in reads or terms.pop(inner, 0) != 1 or size < STREAMED:
            continue
        begin = from_affine(terms, offset)
        alone = sum(other.buffer == s.buffer for other in kernel.stores) == 1
        if alone and all(a.op == "axis" for a in terms) and set(ir.run_time_integers([begin])) <= set(known):
            found[s.buffer] = begin
    return found


def fetched(kernel: LoopKernel) -> dict[int, Value]:
    """The inputs whose next row is fetched while the present one, once read, is worked on: buffer -> where its row
    begins at a point of the domain. They are too large for the caches, and their rows lie behind each other."""
    extents = (*kernel.domain, *kernel.reduce)
    if not kernel.domain or len(kernel.reduce) != 1 or skeleton(kernel) != "rows":
        return {}
    if not SHORT_ROW <= extents[-1] <= ROW:
        return {}
    bodies, inner = [a.body for a in kernel.accumulators], len(extents) - 1
    every = [[s.index, s.value] for s in kernel.stores if ir.axis(inner) in ir.walk([s.index])]
    if not any(v.op == "acc" for roots in (bodies, *every) for v in ir.walk(roots)):
        return {}  # a single sweep reads each row only once
    row = ir.axis(len(kernel.domain) - 1)
    known, found = ir.run_time_integers(kernel.roots()), {}
    for v in ir.walk(bodies):
        if v.op == "load" and len(v.args) == 1 and math.prod(extents) * BYTES[v.dtype] >= STREAMED:
            terms, offset = affine(v.args[0])
            if terms.pop(ir.axis(inner), 0) == 1 and terms.get(row) == extents[-1]:
                begin = from_affine(terms, offset)
                if set(ir.run_time_integers([begin])) <= set(known):
                    found[int(v.data)] = begin
    return found


def variant(kernel: LoopKernel) -> str:
    """What the code of a canonical kernel depends on besides its `code_text`."""
    windows = sliding(kernel)
    rows = [kernel.reduce[axis - len(kernel.domain)] for axis in windows.outer] if windows else []
    parts = {"streams": streams(kernel), "fetches": fetched(kernel), "rows": rows}
    return "".join(f"{name} {sorted(buffers)}\n" for name, buffers in parts.items() if buffers)


def scratch_layout(kernel: LoopKernel) -> tuple[list[tuple[str, int]], int]:
    """The dtype and byte offset of each scratch buffer, for accumulators or for what is streamed, and the bytes of all
    of them."""
    places: list[tuple[str, int]] = []
    if skeleton(kernel) == "windows":
        dtype = computing_dtype(kernel.accumulators[0].body.dtype)
        return [(dtype, 0)], BYTES[dtype] * (WIDE_BLOCK + MOST_LANES)
    if skeleton(kernel) == "columns":
        for a in kernel.accumulators:
            dtypes = [computing_dtype(a.body.dtype)]
            if a.combine in ARG:
                dtypes.append("int64")
            places += [(dtype, (len(places) + i) * 8 * WIDE_BLOCK) for i, dtype in enumerate(dtypes)]
        return places, len(places) * 8 * WIDE_BLOCK
    size = 8 * (ROW if kernel.accumulators else PIECE)
    places = [(kernel.buffers[b], i * size) for i, b in enumerate(streams(kernel))]
    return places, len(places) * size
