"""The routine of a loss over sequences."""
from __future__ import annotations

from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import exp_, floor_, int64, log_, max_, min_
from mxc.compiler.ops.operator import Params

# This number stands for the logarithm of 0. True sums do not come near it, and its difference with itself is 0, where
# that of infinities would be NaN.
FAR = -1e30


def ctc_loss_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """logits (steps, batch, classes), label (batch, most) -> (batch)."""
    return _ctc(c, params, False)


def ctc_loss_grad_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """logits (steps, batch, classes), label (batch, most) -> (steps, batch, classes)."""
    return _ctc(c, params, True)


def _ctc(c: RoutineNode, params: Params, backward: bool) -> RoutineCall:
    steps, batch, classes = c.shape(0)
    integers = (steps, batch, classes, c.shape(1)[1], steps if backward else 2, params.blank, params.padding)
    large = 1e300 if c.dtype(0) == "float64" else 1e38
    return call("ctc", integers, backward=backward, far=FAR, large=large, real=c.dtype(0))


# long: one recursion over a table; routines have no functions of their own. Its loops over places are without branches,
# so that exponentials and logarithms are vector code: a row of the table begins with two places of probability 0.
@routine(inputs=("logits", "label", "data_lengths", "label_lengths"), outputs=("out",), units="batch",
         scratch={"ahead": ("real", "rows * (2 * most + 3)"), "behind": ("real", "2 * most + 3"),
                  "now": ("real", "2 * most + 1"), "over": ("real", "2 * most + 3"),
                  "places": ("int64", "2 * most + 1")})
def ctc(first, last, logits, label, data_lengths, label_lengths, out, ahead, behind, now, over, places, steps, batch,
        classes, most, rows, blank, padding, *, backward, far, large, real):
    """-log(the probability of a row's label) as (batch,), or with `backward` its gradient to the scores that logits
    were made from, as (steps, batch, classes). Both are 0 where the label does not fit into the row's steps.

    logits: (steps, batch, classes), logarithms of probabilities; label: (batch, most); data_lengths, label_lengths:
    (batch,), the latter below 0 for a label that ends before the first `padding`. Labels and lengths are rounded, half
    up. A path goes through the places blank, label 0, blank, label 1, ..., blank: from one to itself or the next, or
    over a blank between labels that differ. A place whose label is no class has the probability 0. ahead: for each of
    the last `rows` steps and each place, the logarithm of the probability of all paths up to there; behind: that of all
    paths that go on from a place; over: 0 where a path may come to a place over a blank, else `far`; now: what a step
    makes of each place.
    """
    for n in range(first, last):
        length = min_(max_(int64(floor_(data_lengths[n] + real(0.5))), int64(0)), int64(steps))
        count = int64(floor_(label_lengths[n] + real(0.5)))
        if count < 0:
            count = int64(0)
            while count < most and floor_(label[n * most + count] + real(0.5)) != real(padding):
                count += 1
        count = min_(count, int64(most))
        width = 2 * count + 1
        needed = count
        for i in range(width):
            places[i] = int64(blank)
        for i in range(width + 2):
            over[i] = real(far)
        for i in range(count):
            places[2 * i + 1] = int64(floor_(label[n * most + i] + real(0.5)))
            if i > 0:
                if places[2 * i + 1] == places[2 * i - 1]:
                    needed += 1
                elif places[2 * i + 1] != blank:
                    over[2 * i + 1] = real(0)
        fits = length > 0 and needed <= length
        if not fits:
            length = int64(0)
        for t in range(length):
            row = t % rows * (width + 2) + 2
            before = (t + rows - 1) % rows * (width + 2) + 2
            base = (t * batch + n) * classes
            ahead[row - 2] = real(far)
            ahead[row - 1] = real(far)
            for i in range(width):
                one = places[i]
                now[i] = max_(logits[base + one], real(far)) if 0 <= one < classes else real(far)
            if t == 0:
                for i in range(width):
                    ahead[row + i] = now[i] if i < 2 else real(far)
            else:
                for i in range(width):
                    stay = ahead[before + i]
                    step = ahead[before + i - 1]
                    jump = ahead[before + i - 2] + over[i]
                    top = max_(max_(stay, step), jump)
                    total = exp_(stay - top) + exp_(step - top) + exp_(jump - top)
                    now[i] = max_(top + log_(total) + now[i], real(far))
                for i in range(width):
                    ahead[row + i] = now[i]
        whole = real(far)
        if fits:
            row = (length - 1) % rows * (width + 2) + 2
            top = max_(ahead[row + width - 1], ahead[row + width - 2])
            whole = top + log_(exp_(ahead[row + width - 1] - top) + exp_(ahead[row + width - 2] - top))
        if not backward:
            out[n] = -whole if fits else real(0)
            if fits and whole <= real(far) / real(2):
                out[n] = real(large) * real(large)  # infinity
        else:
            for t in range(steps):
                base = (t * batch + n) * classes
                for k in range(base, base + classes):
                    out[k] = exp_(logits[k]) if t < length else real(0)
            for i in range(width + 2):
                behind[i] = real(0) if width <= i + 2 < width + 2 else real(far)
            for back in range(length if not whole <= real(far) / real(2) else int64(0)):
                t = length - 1 - back
                row = t * (width + 2) + 2
                base = (t * batch + n) * classes
                if back > 0:
                    following = base + batch * classes
                    for i in range(width):
                        one = places[i]
                        known = 0 <= one < classes
                        behind[i] = max_(behind[i] + logits[following + one], real(far)) if known else real(far)
                    for i in range(width):
                        stay = behind[i]
                        step = behind[i + 1]
                        jump = behind[i + 2] + over[i + 2]
                        top = max_(max_(stay, step), jump)
                        now[i] = top + log_(exp_(stay - top) + exp_(step - top) + exp_(jump - top))
                    for i in range(width):
                        behind[i] = now[i]
                for i in range(width):
                    now[i] = exp_(ahead[row + i] + behind[i] - whole)
                for i in range(width):
                    one = places[i]
                    if 0 <= one < classes:
                        out[base + one] = out[base + one] - now[i]
