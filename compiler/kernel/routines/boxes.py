"""Non-maximum suppression, and matching of boxes."""
from __future__ import annotations

from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int32, int64, max_, min_


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
    """match with -2 instead of -1 but for the negative anchors that count: the first of ranks whose `best` is below the
    threshold, `ratio` times as many as there are matches. All arrays are (batch, n)."""
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
