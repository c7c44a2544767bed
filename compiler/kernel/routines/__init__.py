"""Routines: kernels that are no map-reduce (sorting, suppression, scatter, recurrent steps), written as Python loops
(operators/*/kernel.py). Here is how they are declared (`spec.py`), which words they may use (`words.py`), and what the
rules that call them see (`rule.py`).

A routine is one function over flat arrays. Its text is what a target compiles, with its dtypes and constants baked in,
and calling it as it stands, on NumPy arrays, is the definition of what the compiled code computes.
"""
