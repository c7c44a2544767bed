"""What programs of several precisions ask of arrays: whether numbers are finite, sums of squares, one dtype for all.

Begin with `graph.py`, which makes them of other operators.
"""
