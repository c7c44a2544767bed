"""Opaque operators as routines (kernel/routines/): rules `def NAME(c, params) -> Call`.

c: `shape(k)` and `dtype(k)` of the inputs, `out_shapes` and `out_dtypes` of all outputs, which the routine writes in
their order. Without such a rule an opaque operator is a host step.
"""
