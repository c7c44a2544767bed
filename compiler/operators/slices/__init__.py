"""Parts of arrays: slices, splits and what joins them again, Pad, diagonals.

Begin with `kernel.py`: the index rules. Nothing is imported from outside: rules are found by name.
"""
