"""Batches of sequences of different lengths: mask, last step, reverse.

Begin with `kernel.py`: the index rules. Nothing is imported from outside: rules are found by name.
"""
