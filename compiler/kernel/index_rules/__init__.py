"""Operators that move elements, as index arithmetic: which element of which input is the output's element at an index.

A rule `(c, params, index) -> Value`, named in ops.yaml under `index:`. c: `load(k, index, when, fill)` the element of
input k (guarded: `fill` where `when` does not hold), `shape(k)`, `dtype(k)`, `out_shape`, `out_dtype`, `output` (which
output is asked for), `count` (number of inputs), `seed(0)` and `seed(1)` (the run's seed and offset). index: one index
value for each axis of the output.
"""
