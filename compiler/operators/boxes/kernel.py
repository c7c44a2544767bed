"""Index rules and routines of operators on boxes.

Each coordinate comes from the coordinates that it depends on.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode
from mxc.compiler.kernel.ir import INDEX, Value
from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int32, int64, max_, min_
from mxc.compiler.kernel.simplify_index import index as number
from mxc.compiler.ops.operator import Params


def choice(axis: Value, first: float, second: float, dtype: str) -> Value:
    """`first` where `axis` is 0, else `second`."""
    one, two = (ir.const(float(x), dtype) for x in (first, second))
    return one if first == second else ir.apply("where", ir.apply("eq", axis, number(0)), one, two)


def halved(value: Value) -> Value:
    return ir.apply("mul", value, ir.const(0.5, value.dtype))


def box_decode(c: IndexNode, params: Params, index: Index) -> Value:
    """centre - half of the size in columns 0 and 1, centre + half of it in columns 2 and 3."""
    batch, row, column = index
    axis, dtype = ir.apply("mod", column, number(2)), c.out_dtype
    other = ir.apply("add", axis, number(2))
    at, size = (c.load(1, (number(0), row, k)) for k in (axis, other))
    if params.format == "corner":
        size = ir.apply("sub", size, at)
        at = ir.apply("add", at, halved(size))
    shift = ir.apply("mul", c.load(0, (batch, row, axis)), choice(axis, params.std0, params.std1, dtype))
    grown = ir.apply("mul", c.load(0, (batch, row, other)), choice(axis, params.std2, params.std3, dtype))
    if params.clip > 0:
        grown = ir.apply("min", grown, ir.const(params.clip, dtype))
    centre = ir.apply("add", ir.apply("mul", shift, size), at)
    half = ir.apply("mul", ir.apply("exp", grown), halved(size))
    return ir.apply("where", ir.apply("lt", column, number(2)), ir.apply("sub", centre, half),
                    ir.apply("add", centre, half))


def box_iou(c: IndexNode, params: Params, index: Index) -> Value:
    """Intersection over union of box index[:m] of lhs and box index[m:] of rhs."""
    split, zero = len(c.shape(0)) - 1, ir.const(0.0, c.out_dtype)
    sides = []
    for k, place in enumerate((index[:split], index[split:])):
        a, b, x, y = (c.load(k, (*place, number(i))) for i in range(4))
        width, height = (x, y) if params.format == "center" else (ir.apply("sub", x, a), ir.apply("sub", y, b))
        if params.format == "center":
            a, b = ir.apply("sub", a, halved(x)), ir.apply("sub", b, halved(y))
            x, y = ir.apply("add", a, width), ir.apply("add", b, height)
        negative = ir.apply("or", ir.apply("lt", width, zero), ir.apply("lt", height, zero))
        sides.append((a, b, x, y, ir.apply("where", negative, zero, ir.apply("mul", width, height))))
    one, two = sides
    width, height = (ir.apply("max", ir.apply("sub", ir.apply("min", one[i + 2], two[i + 2]),
                                              ir.apply("max", one[i], two[i])), zero) for i in (0, 1))
    common = ir.apply("mul", width, height)
    union = ir.apply("sub", ir.apply("add", one[4], two[4]), common)
    return ir.apply("where", ir.apply("gt", common, zero), ir.apply("div", common, union), zero)


def kept_boxes(c: IndexNode, params: Params, index: Index) -> Value:
    """The element of the row that `order` names; -1 where it names none.

    Corners become centre and size, or the reverse, in rows whose first coordinate is not negative.
    """
    place, column = index
    row, blank = ir.cast(c.load(1, (place,)), INDEX), ir.const(-1.0, c.out_dtype)
    named = ir.apply("ge", row, number(0))
    value = c.load(0, (row, column), named, blank)
    if params.in_format == params.out_format:
        return value
    start = number(params.coord_start)
    inside = ir.apply("and", ir.apply("ge", column, start), ir.apply("lt", column, number(params.coord_start + 4)))
    offset = ir.apply("where", inside, ir.apply("sub", column, start), number(0))
    axis, low = ir.apply("mod", offset, number(2)), ir.apply("lt", offset, number(2))
    one, two = (c.load(0, (row, ir.apply("add", axis, number(params.coord_start + k))), named, blank) for k in (0, 2))
    if params.out_format == "center":
        other = ir.apply("where", low, halved(ir.apply("add", one, two)), ir.apply("sub", two, one))
    else:
        half = halved(two)
        other = ir.apply("where", low, ir.apply("sub", one, half), ir.apply("add", one, half))
    # NaN does not count as negative.
    negative = ir.apply("lt", c.load(0, (row, start), named, blank), ir.const(0.0, c.out_dtype))
    return ir.apply("where", ir.apply("and", inside, ir.apply("not", negative)), other, value)


def offsets(ends: Sequence[tuple[Value, Value]]) -> tuple[Value, Value]:
    """For two boxes in one direction: the distance of their centres and the second's size, in sizes of the first.

    ends: the lower ends of both, and the upper ends."""
    size, other = (ir.apply("sub", high, low) for low, high in zip(*ends, strict=True))
    at, to = (ir.apply("add", low, halved(s)) for low, s in zip(ends[0], (size, other), strict=True))
    return ir.apply("div", ir.apply("sub", to, at), size), ir.apply("div", other, size)


def box_encode(c: IndexNode, params: Params, index: Index) -> Value:
    """Output 0: columns 0 and 1 are distances of centres, 2 and 3 logarithms of sizes; output 1: the mask."""
    batch, row, column = index
    axis, dtype = ir.apply("mod", column, number(2)), c.out_dtype
    taken = ir.apply("gt", c.load(0, (batch, row)), ir.const(0.5, dtype))
    zero = ir.const(0.0, dtype)
    if c.output == 1:
        return ir.apply("where", taken, ir.const(1.0, dtype), zero)
    match = ir.cast(c.load(1, (batch, row)), INDEX)
    inside = ir.apply("and", ir.apply("ge", match, number(0)), ir.apply("lt", match, number(c.shape(3)[1])))
    ends = []
    for k in (0, 2):
        at = ir.apply("add", axis, number(k))
        ends.append((c.load(2, (batch, row, at)), c.load(3, (batch, match, at), inside, zero)))
    moved, ratio = offsets(ends)
    code = ir.apply("where", ir.apply("lt", column, number(2)), moved, ir.apply("log", ratio))
    code = ir.apply("div", ir.apply("sub", code, c.load(4, (column,))), c.load(5, (column,)))
    return ir.apply("where", taken, code, zero)


def priors(c: IndexNode, params: Params, index: Index) -> Value:
    """A corner's coordinate: the centre, which follows from the place, minus or plus half of the size, which follows
    from the anchor's number at the place."""
    _, position, column = index
    shapes = [(size, params.ratios[0]) for size in params.sizes]
    shapes += [(params.sizes[0], ratio) for ratio in params.ratios[1:]]
    place, each = (ir.apply(op, position, number(len(shapes))) for op in ("div", "mod"))
    y, x = (ir.apply(op, place, number(params.width)) for op in ("div", "mod"))
    steps = params.steps if min(params.steps) > 0 else (1 / params.height, 1 / params.width)
    vertical = ir.apply("eq", ir.apply("mod", column, number(2)), number(1))
    down, across = (ir.apply("mul", ir.apply("add", ir.cast(at, "float32"), ir.const(offset, "float32")),
                             ir.const(step, "float32")) for at, offset, step in zip((y, x), params.offsets, steps,
                                                                                     strict=True))
    half: Value | None = None
    for k, (size, ratio) in enumerate(shapes):
        root = math.sqrt(ratio) if ratio >= 0 else math.nan
        high, wide = size / root / 2 if root else math.inf, size * params.height / params.width * root / 2
        one = ir.apply("where", vertical, ir.const(high, "float32"), ir.const(wide, "float32"))
        half = one if half is None else ir.apply("where", ir.apply("eq", each, number(k)), one, half)
    assert half is not None
    centre = ir.apply("where", vertical, down, across)
    found = ir.apply("where", ir.apply("lt", column, number(2)), ir.apply("sub", centre, half),
                     ir.apply("add", centre, half))
    if params.clip:
        found = ir.apply("min", ir.apply("max", found, ir.const(0.0, "float32")), ir.const(1.0, "float32"))
    return found


def box_targets(c: IndexNode, params: Params, index: Index) -> Value:
    """Output 0: the offset of an anchor's label to it, 0 for none; output 1: whether it has one."""
    batch, position = index
    row, column = (ir.apply(op, position, number(4)) for op in ("div", "mod"))
    match, zero = ir.cast(c.load(0, (batch, row)), INDEX), ir.const(0.0, c.out_dtype)
    taken = ir.apply("ge", match, number(0))
    if c.output == 1:
        return ir.apply("where", taken, ir.const(1.0, c.out_dtype), zero)
    axis = ir.apply("mod", column, number(2))
    ends = []
    for k in (0, 2):
        place = ir.apply("add", axis, number(k))
        ends.append((c.load(1, (number(0), row, place)),
                     c.load(2, (batch, match, ir.apply("add", place, number(1))), taken, zero)))
    moved, ratio = offsets(ends)
    first, second = (choice(axis, params.variances[k], params.variances[k + 1], c.out_dtype) for k in (0, 2))
    code = ir.apply("where", ir.apply("lt", column, number(2)), ir.apply("div", moved, first),
                    ir.apply("div", ir.apply("log", ratio), second))
    return ir.apply("where", taken, code, zero)


def class_targets(c: IndexNode, params: Params, index: Index) -> Value:
    """The class of the label plus 1; 0 for a negative anchor, ignore_label for one that does not count."""
    match = ir.cast(c.load(0, index), INDEX)
    zero, one = (ir.const(x, c.out_dtype) for x in (0.0, 1.0))
    taken = ir.apply("ge", match, number(0))
    label = c.load(1, (index[0], match, number(0)), taken, zero)
    other = ir.apply("where", ir.apply("eq", match, number(-1)), zero, ir.const(params.ignore_label, c.out_dtype))
    return ir.apply("where", taken, ir.apply("add", label, one), other)


def box_order_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (batch, boxes, width), ranks (batch, most) -> (batch, boxes)."""
    kinds = params.id_index >= 0
    return call("box_order", (*c.shape(0), c.shape(1)[1]),
                score_index=params.score_index, coord_start=params.coord_start, id_index=params.id_index,
                classes=kinds and not params.force_suppress, background=kinds,
                background_id=params.background_id, valid_thresh=params.valid_thresh,
                overlap_thresh=params.overlap_thresh, center=params.in_format == "center", real=c.dtype(0))


def match_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (batch, rows, columns), ranks (batch, rows * columns) -> (batch, rows) and (batch, columns)."""
    return call("match", c.shape(0), most=params.topk + 1 if params.topk > 0 else 0, ascending=params.is_ascend,
                threshold=params.threshold, real=c.dtype(0))


def detect_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """scores, kinds (batch, boxes), boxes (batch, boxes, 4), ranks (batch, boxes) -> (batch, boxes, 6)."""
    return call("detect", c.shape(0), most=max(params.nms_topk, 0), threshold=params.threshold,
                overlap=params.nms_threshold, suppress=0 < params.nms_threshold <= 1, force=params.force_suppress,
                real=c.dtype(0))


def assign_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """anchors (1, n, 4), labels (batch, rows, width) -> (batch, n) twice."""
    batch, rows, width = c.shape(1)
    return call("assign", (batch, c.shape(0)[1], rows, width), threshold=params.overlap_threshold, real=c.dtype(0))


def mine_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """match, best, ranks (batch, n) -> (batch, n)."""
    return call("mine", c.shape(0), ratio=params.negative_mining_ratio, threshold=params.negative_mining_thresh,
                real=c.dtype(1))


@routine(inputs=("data", "ranks"), outputs=("order",), units="batch",
         scratch={"rows": ("int32", "most"), "left": ("real", "most"), "top": ("real", "most"),
                  "right": ("real", "most"), "bottom": ("real", "most"), "areas": ("real", "most"),
                  "kinds": ("int32", "most"), "gone": ("int32", "most")})
def box_order(first, last, data, ranks, order, rows, left, top, right, bottom, areas, kinds, gone, batch, n, width,
              most, *, score_index, coord_start, id_index, classes, background, background_id, valid_thresh,
              overlap_thresh, center, real):
    """Which boxes non-maximum suppression keeps: their rows, counted over the batch, in the order of ranks, then -1.

    data: (batch, n, width); ranks: (batch, most), rows of a batch element; order: (batch, n). Boxes with a score above
    valid_thresh take part, but not those of class background_id if `background`. Of two that overlap by more than
    overlap_thresh, and are of one class if `classes`, the later one goes.
    """
    for unit in range(first, last):
        begin = unit * n
        count = 0
        for i in range(most):
            row = ranks[unit * most + i]
            place = (begin + int64(row)) * width
            taken = data[place + score_index] > real(valid_thresh)
            if background:
                taken = taken and data[place + id_index] != real(background_id)
            if taken:
                x0 = data[place + coord_start]
                y0 = data[place + coord_start + 1]
                x1 = data[place + coord_start + 2]
                y1 = data[place + coord_start + 3]
                across = x1 - x0
                down = y1 - y0
                if center:
                    across = x1
                    down = y1
                    x1 = x0 + across * real(0.5)
                    y1 = y0 + down * real(0.5)
                    x0 = x0 - across * real(0.5)
                    y0 = y0 - down * real(0.5)
                rows[count] = row
                left[count] = x0
                top[count] = y0
                right[count] = x1
                bottom[count] = y1
                areas[count] = real(0) if across < real(0) or down < real(0) else across * down
                kinds[count] = int32(data[place + id_index]) if classes else int32(0)
                gone[count] = int32(0)
                count += 1
        found = 0
        for i in range(count):
            if gone[i] == 0:
                order[begin + found] = int32(begin) + rows[i]
                found += 1
                x0 = left[i]
                y0 = top[i]
                x1 = right[i]
                y1 = bottom[i]
                area = areas[i]
                kind = kinds[i]
                for j in range(i + 1, count):
                    across = max_(min_(x1, right[j]) - max_(x0, left[j]), real(0))
                    down = max_(min_(y1, bottom[j]) - max_(y0, top[j]), real(0))
                    common = across * down
                    over = common / (area + areas[j] - common) > real(overlap_thresh)  # 0 / 0 is not
                    gone[j] = gone[j] | int32(over & (kinds[j] == kind))
        for i in range(found, n):
            order[begin + i] = int32(-1)


@routine(inputs=("data", "ranks"), outputs=("column_of", "row_of"), units="batch")
def match(first, last, data, ranks, column_of, row_of, batch, rows, columns, *, most, ascending, threshold, real):
    """Rows and columns of a matrix in pairs: the column of each row and the row of each column, -1 for none.

    data: (batch, rows, columns); ranks: (batch, rows * columns), the matrix's places in the order in which they are
    taken, while they are beyond the threshold; column_of: (batch, rows); row_of: (batch, columns). most: 0, or the
    number of pairs.
    """
    for unit in range(first, last):
        for i in range(rows):
            column_of[unit * rows + i] = int32(-1)
        for i in range(columns):
            row_of[unit * columns + i] = int32(-1)
        size = rows * columns
        pairs = 0
        i = 0
        while i < size:
            place = int64(ranks[unit * size + i])
            score = data[unit * size + place]
            beyond = score < real(threshold) if ascending else score > real(threshold)
            i += 1
            if not beyond or (most > 0 and pairs == most):
                i = size
            else:
                row = unit * rows + place // columns
                column = unit * columns + place % columns
                if column_of[row] < 0 and row_of[column] < 0:
                    column_of[row] = int32(place % columns)
                    row_of[column] = int32(place // columns)
                    pairs += 1


@routine(inputs=("scores", "kinds", "boxes", "ranks"), outputs=("out",), units="batch",
         scratch={"ids": ("real", "n"), "counts": ("int32", "n")})
def detect(first, last, scores, kinds, boxes, ranks, out, ids, counts, batch, n, *, most, threshold, overlap,
           suppress, force, real):
    """Rows (class, score, four coordinates) of the boxes whose score is at least `threshold`, best first; then -1.

    scores, kinds: (batch, n); boxes: (batch, n, 4); ranks: (batch, n), the best score first; out: (batch, n, 6). With
    `suppress`, the class of a row becomes -1 where the box overlaps an earlier one, of its class or, with `force`, any,
    by at least `overlap`. Only `most` rows (0: all) are sorted and suppressed; behind them stand the rows that have
    these places without sorting, their class -1. Without `suppress` nothing is sorted.
    """
    for unit in range(first, last):
        begin = unit * n
        count = 0
        for i in range(n):
            score = scores[begin + i]
            if score >= real(threshold) and score > real(-1):
                counts[count] = int32(i)
                count += 1
        sorted_rows = count if suppress else 0
        if most > 0:
            sorted_rows = min_(sorted_rows, most)
        for i in range(count):
            row = begin + int64(ranks[begin + i] if i < sorted_rows else counts[i])
            target = (begin + i) * 6
            ids[i] = real(-1) if suppress and i >= sorted_rows else kinds[row]
            out[target] = ids[i]
            out[target + 1] = scores[row]
            for k in range(4):
                out[target + 2 + k] = boxes[row * 4 + k]
        for i in range((begin + count) * 6, (begin + n) * 6):
            out[i] = real(-1)
        for i in range(sorted_rows):
            if ids[i] >= real(0):
                a = (begin + i) * 6
                area = (out[a + 4] - out[a + 2]) * (out[a + 5] - out[a + 3])
                for j in range(i + 1, sorted_rows):
                    if ids[j] >= real(0) and (force or ids[i] == ids[j]):
                        b = (begin + j) * 6
                        across = max_(min_(out[a + 4], out[b + 4]) - max_(out[a + 2], out[b + 2]), real(0))
                        down = max_(min_(out[a + 5], out[b + 5]) - max_(out[a + 3], out[b + 3]), real(0))
                        common = across * down
                        union = area + (out[b + 4] - out[b + 2]) * (out[b + 5] - out[b + 3]) - common
                        if union > real(0) and common / union >= real(overlap):
                            ids[j] = real(-1)
                            out[b] = real(-1)


@routine(inputs=("anchors", "labels"), outputs=("match", "best"), units="batch",
         scratch={"overlaps": ("real", "n * rows"), "done": ("int32", "rows")})
def assign(first, last, anchors, labels, match, best, overlaps, done, batch, n, rows, width, *, threshold, real):
    """The label of each anchor, -1 for none, -2 where an image has no labels; and its largest overlap with a label.

    anchors: (n, 4); labels: (batch, rows, width): class and corners, up to the first of class -1; match, best:
    (batch, n). The pair that overlaps most is matched first, until each label has an anchor or overlaps none that is
    free; then, if threshold is above 0, other anchors get the label that they overlap by more than it.
    """
    for unit in range(first, last):
        base = unit * n
        given = unit * rows * width
        count = 0
        while count < rows and labels[given + count * width] != real(-1):
            done[count] = int32(0)
            count += 1
        for j in range(n):
            match[base + j] = int32(-2) if count == 0 else int32(-1)
            best[base + j] = real(-1)
            a = j * 4
            for k in range(count):
                b = given + k * width + 1
                across = max_(min_(anchors[a + 2], labels[b + 2]) - max_(anchors[a], labels[b]), real(0))
                down = max_(min_(anchors[a + 3], labels[b + 3]) - max_(anchors[a + 1], labels[b + 1]), real(0))
                common = across * down
                union = (anchors[a + 2] - anchors[a]) * (anchors[a + 3] - anchors[a + 1])
                union = union + (labels[b + 2] - labels[b]) * (labels[b + 3] - labels[b + 1]) - common
                overlap = common / union if union != real(0) else real(0)
                overlaps[j * rows + k] = overlap
                best[base + j] = max_(best[base + j], overlap)
        free = count
        while free > 0:
            most = real(1e-6)
            anchor = -1
            label = -1
            for j in range(n):
                if match[base + j] < 0:
                    for k in range(count):
                        if done[k] == 0 and overlaps[j * rows + k] > most:
                            most = overlaps[j * rows + k]
                            anchor = j
                            label = k
            free -= 1
            if anchor < 0:
                free = 0
            else:
                match[base + anchor] = int32(label)
                done[label] = int32(1)
        if threshold > 0:
            for j in range(n):
                if match[base + j] == -1 and best[base + j] > real(threshold):
                    k = 0
                    while overlaps[j * rows + k] != best[base + j]:
                        k += 1
                    match[base + j] = int32(k)


@routine(inputs=("match", "best", "ranks"), outputs=("out",), units="batch")
def mine(first, last, match, best, ranks, out, batch, n, *, ratio, threshold, real):
    """`match`, in which -1 becomes -2 except for negative anchors that count: the first in the order of ranks whose
    `best` is below the threshold, `ratio` times as many as there are matches. All arrays are (batch, n)."""
    for unit in range(first, last):
        base = unit * n
        matched = int64(0)
        for j in range(base, base + n):
            out[j] = int32(match[j]) if match[j] >= 0 else int32(-2)
            matched += int64(match[j] >= 0)
        wanted = int64(real(matched) * real(ratio))
        for i in range(n):
            j = base + int64(ranks[base + i])
            if wanted > 0 and match[j] == -1 and best[j] < real(threshold):
                out[j] = int32(-1)
                wanted -= 1  # type: ignore[assignment]
