"""Shapes and dtypes of likelihoods of events in time."""
from __future__ import annotations

from mxc.compiler.ops.dtypes import Dtypes, merge_dtypes, require_kind
from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.shapes import Shapes, merge, merge_all


def hawkesll(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """lda and state (samples, kinds), alpha and beta (kinds,), lags and marks (samples, events), valid_length and
    max_time (samples,) -> (samples,), and a new state."""
    lda, alpha, beta, state, lags, marks, lengths, times = ins
    many = merge_all([lda, state, outs[1], (0, 0)])
    events = merge_all([lags, marks, (0, 0)])
    each, rates = merge_all([lengths, times, outs[0], (0,)]), merge_all([alpha, beta, (0,)])
    assert many is not None and events is not None and each is not None and rates is not None
    each = merge(each, (many[0],))
    each = merge(each, (events[0],))
    rates = merge(rates, (many[1],))
    assert each is not None and rates is not None
    many, events = (*each, *rates), (*each, events[1])
    return [many, rates, rates, many, events, events, each, each], [each, many]


def hawkesll_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """One float dtype, but marks are of any, and int32 where nothing tells."""
    known = merge_dtypes([*ins[:5], *ins[6:], *outs])
    require_kind(known, "float", "lda")
    return [*[known] * 5, ins[5] or "int32", known, known], [known, known]


def hawkesll_slopes(params: Params, ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    """Each of the three as lda."""
    return ins, [ins[0]] * 3


def slopes_dtype(params: Params, ins: Dtypes, outs: Dtypes) -> tuple[Dtypes, Dtypes]:
    """As hawkesll_dtype."""
    ins, _ = hawkesll_dtype(params, ins, [])
    return ins, [ins[0]] * 3
