"""Routines of likelihoods of events in time.

A marked Hawkes process (A. Hawkes 1971) whose kinds of events excite themselves alone. Events of a kind come at the
rate lda + alpha * beta * (the sum of exp(-beta * age) over the earlier ones). The state is that sum at the latest event
of the kind. The likelihood's logarithm is the sum of the logarithms of the rates at the events, less the rates'
integrals up to the end.
"""
from __future__ import annotations

from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import exp_, int64, log_
from mxc.compiler.ops.operator import Params


def hawkesll_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """The operator's inputs."""
    return call("hawkesll", (*c.shape(0), c.shape(4)[1]), real=c.dtype(0))


def hawkesll_slopes_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """The operator's inputs."""
    return call("hawkesll_slopes", (*c.shape(0), c.shape(4)[1]), real=c.dtype(0))


INPUTS = "lda", "alpha", "beta", "state", "lags", "marks", "lengths", "ends"


@routine(inputs=INPUTS, outputs=("out", "new"), units="samples", scratch={"seen": ("real", "kinds")})
def hawkesll(first, last, lda, alpha, beta, state, lags, marks, lengths, ends, out, new, seen, samples, kinds, events,
             *, real):
    """The logarithm of each sample's likelihood, and the state at its end.

    lda, state, new: (samples, kinds); alpha, beta: (kinds,); lags, marks: (samples, events), time since the event
    before, and kind; lengths, ends, out: (samples,), how many events there are, and when the time is over. seen: when
    there was an event of each kind. An event of a kind that there is not makes the likelihood NaN.
    """
    for sample in range(first, last):
        for kind in range(kinds):
            seen[kind] = real(0)
            new[sample * kinds + kind] = state[sample * kinds + kind]
        total = real(0)
        now = real(0)
        for j in range(events):
            if real(j) < lengths[sample]:
                now += lags[sample * events + j]
                mark = int64(marks[sample * events + j])
                if 0 <= mark < kinds:
                    at = sample * kinds + mark
                    gap = now - seen[mark]
                    decay = exp_(-beta[mark] * gap)
                    total += log_(lda[at] + alpha[mark] * beta[mark] * new[at] * decay)
                    total -= lda[at] * gap + alpha[mark] * new[at] * (real(1) - decay)
                    new[at] = real(1) + new[at] * decay
                    seen[mark] = now
                else:
                    total += log_(real(-1))
        for kind in range(kinds):
            at = sample * kinds + kind
            gap = ends[sample] - seen[kind]
            decay = exp_(-beta[kind] * gap)
            total -= lda[at] * gap + alpha[kind] * new[at] * (real(1) - decay)
            new[at] = new[at] * decay
        out[sample] = total


@routine(inputs=INPUTS, outputs=("to_lda", "to_alpha", "to_beta"), units="samples",
         scratch={"seen": ("real", "kinds"), "sums": ("real", "kinds"), "grows": ("real", "kinds")})
def hawkesll_slopes(first, last, lda, alpha, beta, state, lags, marks, lengths, ends, to_lda, to_alpha, to_beta, seen,
                    sums, grows, samples, kinds, events, *, real):
    """How the logarithm of each sample's likelihood grows with lda, alpha and beta, each (samples, kinds).

    sums: the state; grows: how that grows with beta.
    """
    for sample in range(first, last):
        for kind in range(kinds):
            seen[kind] = real(0)
            sums[kind] = state[sample * kinds + kind]
            grows[kind] = real(0)
            to_lda[sample * kinds + kind] = real(0)
            to_alpha[sample * kinds + kind] = real(0)
            to_beta[sample * kinds + kind] = real(0)
        now = real(0)
        for j in range(events + kinds):  # the events, then the end for each kind
            ended = j >= events
            mark = int64(j - events)
            time = ends[sample]
            some = ended
            if not ended:
                some = real(j) < lengths[sample]
                if some:
                    now += lags[sample * events + j]
                time = now
                mark = int64(marks[sample * events + j])
                some = some and 0 <= mark < kinds
            if some:
                at = sample * kinds + mark
                gap = time - seen[mark]
                decay = exp_(-beta[mark] * gap)
                risen = (grows[mark] - sums[mark] * gap) * decay
                if not ended:
                    rate = lda[at] + alpha[mark] * beta[mark] * sums[mark] * decay
                    to_lda[at] = to_lda[at] + real(1) / rate
                    to_alpha[at] = to_alpha[at] + beta[mark] * sums[mark] * decay / rate
                    to_beta[at] = to_beta[at] + alpha[mark] * (sums[mark] * decay + beta[mark] * risen) / rate
                to_lda[at] = to_lda[at] - gap
                to_alpha[at] = to_alpha[at] - sums[mark] * (real(1) - decay)
                to_beta[at] = to_beta[at] - alpha[mark] * (grows[mark] - risen)
                sums[mark] = real(1) + sums[mark] * decay
                grows[mark] = risen
                seen[mark] = time
