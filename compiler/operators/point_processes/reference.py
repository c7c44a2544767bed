"""The reference of likelihoods of events in time: one kind of event at a time, in float64."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mxc.compiler.ops.operator import Params
from mxc.compiler.ops.philox import Draws


def _gaps(inputs: list[np.ndarray], sample: int, kind: int) -> Iterator[tuple[float, bool]]:
    """(time since the one before, whether it is an event) of the events of a kind, and of the end."""
    lags, marks, lengths, times = (array[sample] for array in inputs[4:])
    now = before = 0.0
    for j, (lag, mark) in enumerate(zip(lags, marks, strict=True)):
        if j < lengths:
            now += float(lag)
            if int(mark) == kind:
                yield now - before, True
                before = now
    yield float(times) - before, False


def hawkesll(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """The log likelihood of each sample, and the state at its end; NaN where an event is of no kind"""
    lda, alpha, beta, state = (x.astype(np.float64) for x in inputs[:4])
    total, new = np.zeros(len(lda)), state.copy()
    for i, k in np.ndindex(*lda.shape):
        for gap, is_event in _gaps(inputs, i, k):
            decay = np.exp(-beta[k] * gap)
            if is_event:
                total[i] += np.log(lda[i, k] + alpha[k] * beta[k] * new[i, k] * decay)
            total[i] -= lda[i, k] * gap + alpha[k] * new[i, k] * (1 - decay)
            new[i, k] = new[i, k] * decay + is_event
    marks = inputs[5].astype(int)
    counted = np.arange(marks.shape[1]) < inputs[6][:, None]
    total[(((marks < 0) | (marks >= lda.shape[1])) & counted).any(1)] = np.nan
    return [total, new]


def hawkesll_slopes(params: Params, inputs: list[np.ndarray], is_train: bool, rng: Draws) -> list[np.ndarray]:
    """How each sample's likelihood grows with lda, alpha and beta"""
    lda, alpha, beta, state = (x.astype(np.float64) for x in inputs[:4])
    to_lda, to_alpha, to_beta = np.zeros(lda.shape), np.zeros(lda.shape), np.zeros(lda.shape)
    for i, k in np.ndindex(*lda.shape):
        s, grows = float(state[i, k]), 0.0  # the state, and how it grows with beta
        for gap, is_event in _gaps(inputs, i, k):
            decay = float(np.exp(-beta[k] * gap))
            next_grows = grows * decay - s * gap * decay
            if is_event:
                rate = lda[i, k] + alpha[k] * beta[k] * s * decay
                to_lda[i, k] += 1 / rate
                to_alpha[i, k] += beta[k] * s * decay / rate
                to_beta[i, k] += alpha[k] * (s * decay + beta[k] * next_grows) / rate
            to_lda[i, k] -= gap
            to_alpha[i, k] -= s * (1 - decay)
            to_beta[i, k] -= alpha[k] * (grows - next_grows)
            s, grows = s * decay + is_event, next_grows
    return [to_lda, to_alpha, to_beta]
