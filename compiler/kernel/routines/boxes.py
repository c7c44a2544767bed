"""Non-maximum suppression."""
from __future__ import annotations

from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int32, int64, max_, min_


@routine(inputs=("data",), outputs=("order",), units="batch",
         scratch={"scores": ("real", "n"), "rows": ("int32", "n"), "more_scores": ("real", "n"),
                  "more_rows": ("int32", "n"), "left": ("real", "most"), "top": ("real", "most"),
                  "right": ("real", "most"), "bottom": ("real", "most"), "areas": ("real", "most"),
                  "kinds": ("int32", "most"), "gone": ("int32", "most")})
def box_order(first, last, data, order, scores, rows, more_scores, more_rows, left, top, right, bottom, areas, kinds,
              gone, batch, n, width, most, *, score_index, coord_start, id_index, classes, background, background_id,
              valid_thresh, overlap_thresh, center, real):
    """Which boxes non-maximum suppression keeps: their rows, counted over the batch, best score first, then -1.

    data: (batch, n, width); order: (batch, n). Boxes with a score above valid_thresh take part, at most `most` of them,
    but not those of class background_id if `background`. Of two that overlap by more than overlap_thresh, and are of
    one class if `classes`, the one of the lower score goes, or the later one.
    """
    for unit in range(first, last):
        begin = unit * n
        count = 0
        for i in range(n):
            place = (begin + i) * width
            score = data[place + score_index]
            taken = score > real(valid_thresh)
            if background:
                taken = taken and data[place + id_index] != real(background_id)
            if taken:
                scores[count] = score
                rows[count] = int32(i)
                count += 1
        run = 1
        while run < count:  # merge sort: a run on the left wins a tie, so equal scores keep their order
            for start in range(0, count, 2 * run):
                a = start
                middle = min_(start + run, count)
                b = middle
                stop = min_(start + 2 * run, count)
                for k in range(start, stop):
                    if b >= stop or (a < middle and scores[a] >= scores[b]):
                        more_scores[k] = scores[a]
                        more_rows[k] = rows[a]
                        a += 1
                    else:
                        more_scores[k] = scores[b]
                        more_rows[k] = rows[b]
                        b += 1
            for k in range(count):
                scores[k] = more_scores[k]
                rows[k] = more_rows[k]
            run *= 2
        count = min_(count, most)
        for i in range(count):
            place = (begin + int64(rows[i])) * width
            x0 = data[place + coord_start]
            y0 = data[place + coord_start + 1]
            x1 = data[place + coord_start + 2]
            y1 = data[place + coord_start + 3]
            across = x1 - x0
            down = y1 - y0
            if center:
                across = x1
                down = y1
                x0 = x0 - across * real(0.5)
                y0 = y0 - down * real(0.5)
                x1 = data[place + coord_start] + across * real(0.5)
                y1 = data[place + coord_start + 1] + down * real(0.5)
            left[i] = x0
            top[i] = y0
            right[i] = x1
            bottom[i] = y1
            areas[i] = real(0) if across < real(0) or down < real(0) else across * down
            kinds[i] = int32(data[place + id_index]) if classes else int32(0)
            gone[i] = int32(0)
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
                    over = common / (area + areas[j] - common) > real(overlap_thresh)
                    gone[j] = gone[j] | int32(over & (kinds[j] == kind))
        for i in range(found, n):
            order[begin + i] = int32(-1)
