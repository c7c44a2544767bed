"""Kernels as data, whatever the target: what a kernel computes, its meaning, and its text.

Begin with `ir.py`, the records; `interpret.py`, `interpret_calls.py` and `interpret_chain.py` run them slowly and so
define them, `text.py` prints them. `calls.py` has the templates of library kernels, `routines/` kernels written as
loops, `math.py` the functions that are computed inline. `index_rule.py`, `window_rule.py` and `call_rule.py` are what
operators' rules import; lowering makes kernels, targets read them.
"""
