"""Index rules and routines of sorting, scans and histograms."""
from __future__ import annotations

from mxc.compiler.kernel import ir
from mxc.compiler.kernel.index_rule import Index, IndexNode
from mxc.compiler.kernel.ir import Value
from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import int32, int64, max_, min_
from mxc.compiler.ops.operator import Params

SPARE = 4  # candidates: there is room for twice the k, and for so many more than k at least


def take_along(c: IndexNode, params: Params, index: Index) -> Value:
    """The element of data (rows, n) in the same row, at the place that order (rows, k) tells."""
    return c.load(0, (index[0], ir.cast(c.load(1, index), ir.INDEX)))


def argsort_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (rows, n) -> (rows, k). A small k of a large n needs few candidates: all others are passed over."""
    rows, n = c.shape(0)
    dtype = "uint8" if c.dtype(0) == "bool" else c.dtype(0)  # truth values are not subtracted
    room = min(n, params.k + max(params.k, SPARE))
    top = 0 if "float" in dtype else 255 if dtype == "uint8" else -1
    return call("argsort", (rows, n, params.k, room), ascending=params.is_ascend, top=top, real=dtype)


def put_along_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data, order (rows, k) -> (rows, n)."""
    return call("put_along", (*c.shape(0), params.n), real=c.dtype(0))


def cumsum_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (outer, n, inner) -> the same."""
    outer, n, inner = c.shape(0)
    if inner == 1:
        return call("cumsum_rows", (outer, n), reverse=params.reverse, real=c.out_dtypes[0])
    return call("cumsum", c.shape(0), reverse=params.reverse, real=c.out_dtypes[0])


def searchsorted_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (rows, n), numbers (rows, each) -> (rows, each)."""
    return call("searchsorted", (*c.shape(0), c.shape(1)[1]))


def histogram_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """data (n), edges (bins + 1) -> (bins)."""
    return call("histogram", (c.shape(0)[0], c.shape(1)[0] - 1))


# long: the language of routines has no functions; this is a selection and a merge sort of what is left
@routine(inputs=("data",), outputs=("order",), units="rows",
         scratch={"keys": ("real", "2 * room"), "ids": ("int32", "2 * room")})
def argsort(first, last, data, order, keys, ids, rows, n, k, room, *, ascending, top, real):
    """order[r, j] = the place in data[r] of its j-th smallest (else largest) number, equal ones by place, NaN last.

    data: (rows, n); order: (rows, k), k <= n. room: n, or at least k + 1: candidates are then sorted whenever so many
    have come up, and what is behind the k-th of them is left out. top: `top - x` reverses the order of the dtype
    without overflow. Each half of keys and ids is the source of one pass of the merge sort, the other its target.
    """
    for row in range(first, last):
        base = row * n
        filled = 0
        limited = False
        limit = real(0)
        i = 0
        while i < n:
            while i < n and filled < room:
                stop = min_(i + 32, n)
                near = 1
                if limited:  # most numbers are then above the limit, and many are looked at together
                    near = 0
                    for j in range(i, stop):
                        key = data[base + j]
                        if not ascending:
                            key = real(real(top) - key)
                        near += int64(key < limit)  # type: ignore[assignment]
                if near == 0:
                    i = stop
                while i < stop and filled < room:
                    key = data[base + i]
                    if not ascending:
                        key = real(real(top) - key)
                    keys[filled] = key
                    ids[filled] = int32(i)
                    # no branch: which come is chance
                    filled += int64(key == key and (not limited or key < limit))  # type: ignore[assignment]
                    i += 1
            for start in range(0, filled, 8):
                for j in range(start + 1, min_(start + 8, filled)):
                    key = keys[j]
                    place = ids[j]
                    at = j
                    while at > start and key < keys[at - 1]:
                        keys[at] = keys[at - 1]
                        ids[at] = ids[at - 1]
                        at -= 1
                    keys[at] = key
                    ids[at] = place
            width = 8
            source = 0
            while width < filled:
                target = room - source
                for start in range(0, filled, 2 * width):
                    left = int64(source + start)
                    middle = source + min_(start + width, filled)
                    right = middle
                    stop = source + min_(start + 2 * width, filled)
                    at = target + start
                    if stop - middle == width:  # no half of the result can use up a run: from both ends at once
                        end = target + start + 2 * width
                        last_left = middle
                        last_right = stop
                        for _ in range(width):
                            lower = keys[left]
                            upper = keys[right]
                            take = int64(upper < lower)  # no branch: it would be guessed wrong half of the time
                            keys[at] = min_(lower, upper)
                            ids[at] = ids[left + (right - left) * take]
                            left += 1 - take  # type: ignore[assignment]
                            right += take
                            at += 1
                            lower = keys[last_left - 1]
                            upper = keys[last_right - 1]
                            take = int64(upper < lower)
                            end -= 1
                            keys[end] = max_(lower, upper)
                            ids[end] = ids[last_right - 1 + (last_left - last_right) * take]
                            last_left -= take
                            last_right -= 1 - take
                        left = middle
                        right = stop
                    while left < middle and right < stop:
                        if keys[right] < keys[left]:
                            keys[at] = keys[right]
                            ids[at] = ids[right]
                            right += 1
                        else:
                            keys[at] = keys[left]
                            ids[at] = ids[left]
                            left += 1  # type: ignore[assignment]
                        at += 1
                    while left < middle:
                        keys[at] = keys[left]
                        ids[at] = ids[left]
                        left += 1  # type: ignore[assignment]
                        at += 1
                    while right < stop:
                        keys[at] = keys[right]
                        ids[at] = ids[right]
                        right += 1
                        at += 1
                source = target
                width *= 2
            filled = min_(filled, k)
            if source > 0:
                for j in range(filled):
                    keys[j] = keys[source + j]
                    ids[j] = ids[source + j]
            if filled == k:
                limited = True
                limit = keys[k - 1]
        i = 0
        while filled < k:
            if data[base + i] != data[base + i]:
                ids[filled] = int32(i)
                filled += 1
            i += 1
        for j in range(k):
            order[row * k + j] = ids[j]


@routine(inputs=("data", "order"), outputs=("out",), units="rows")
def put_along(first, last, data, order, out, rows, k, n, *, real):
    """out[r, order[r, j]] = data[r, j], and 0 where no j points. data, order: (rows, k), order without repetitions;
    out: (rows, n)."""
    for row in range(first, last):
        for i in range(row * n, row * n + n):
            out[i] = real(0)
        for j in range(row * k, row * k + k):
            out[row * n + int64(order[j])] = data[j]


@routine(inputs=("data",), outputs=("out",), units="outer * ((inner + 63) // 64)")
def cumsum(first, last, data, out, outer, n, inner, *, reverse, real):
    """out[o, j, i] = the sum of data[o, :j + 1, i], from the end where `reverse`; all arrays (outer, n, inner).

    Rounded to the dtype at each step. A unit is 64 columns of one matrix.
    """
    parts = (inner + 63) // 64
    for unit in range(first, last):
        matrix = unit // parts
        start = unit % parts * 64
        stop = min_(start + 64, inner)
        base = matrix * n * inner
        step = inner
        if reverse:
            base += (n - 1) * inner
            step = -inner
        for i in range(start, stop):
            out[base + i] = real(data[base + i])
        for _ in range(1, n):
            base += step
            for i in range(start, stop):
                out[base + i] = real(out[base - step + i] + real(data[base + i]))


@routine(inputs=("data",), outputs=("out",), units="rows")
def cumsum_rows(first, last, data, out, rows, n, *, reverse, real):
    """cumsum where inner is 1. Four rows at a time, because each sum waits for the one before it."""
    start = n - 1 if reverse else 0
    step = -1 if reverse else 1
    row = first
    while row + 4 <= last:
        at = row * n + start
        a = real(data[at])
        b = real(data[at + n])
        c = real(data[at + 2 * n])
        d = real(data[at + 3 * n])
        out[at] = a
        out[at + n] = b
        out[at + 2 * n] = c
        out[at + 3 * n] = d
        for _ in range(1, n):
            at += step
            a = real(a + real(data[at]))
            b = real(b + real(data[at + n]))
            c = real(c + real(data[at + 2 * n]))
            d = real(d + real(data[at + 3 * n]))
            out[at] = a
            out[at + n] = b
            out[at + 2 * n] = c
            out[at + 3 * n] = d
        row += 4
    while row < last:
        at = row * n + start
        a = real(data[at])
        out[at] = a
        for _ in range(1, n):
            at += step
            a = real(a + real(data[at]))
            out[at] = a
        row += 1


@routine(inputs=("data", "numbers"), outputs=("out",), units="rows")
def searchsorted(first, last, data, numbers, out, rows, n, each):
    """out[r, j] = how many of data[r], which do not fall, are at most numbers[r, j]. data: (rows, n); numbers, out:
    (rows, each)."""
    for row in range(first, last):
        for j in range(row * each, row * each + each):
            low = row * n
            left = n
            while left > 0:  # those in front of low are at most the number, those from low + left on are above it
                half = left // 2
                below = int64(data[low + half] <= numbers[j])
                low += below * (half + 1)
                left = half - below * (half + half + 1 - left)
            out[j] = low - row * n


@routine(inputs=("data", "edges"), outputs=("counts",), units="1")
def histogram(first, last, data, edges, counts, n, bins):
    """counts[b] = how many of data (n) are at least edges[b] and below edges[b + 1], of the last bin also equal to it.

    edges: (bins + 1), ascending.
    """
    for _ in range(first, last):
        for b in range(bins):
            counts[b] = 0
        for i in range(n):
            x = data[i]
            if edges[0] <= x and x <= edges[bins]:
                low = 0
                high = bins
                while high - low > 1:  # edges[low] <= x, and x < edges[high] or high is bins
                    middle = (low + high) // 2
                    if edges[middle] <= x:
                        low = middle
                    else:
                        high = middle
                counts[low] = counts[low] + 1
