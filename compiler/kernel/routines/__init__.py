"""Routines: kernels that are no map-reduce (sorting, suppression, scatter, recurrent steps), written as Python loops
(operators/*/kernel.py). Here is what they are declared by, what they may say, and what rules that call them see.

A routine is one function over flat arrays. Its text is what a target compiles, with its dtypes and constants baked in,
and calling it as it stands, on NumPy arrays, is the definition of what the compiled code computes.
"""
