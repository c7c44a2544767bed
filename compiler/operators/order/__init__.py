"""Sorting, topk, running sums and histograms.

Begin with `kernel.py`: the routine that sorts. Nothing is imported from outside: rules are found by name.
"""
