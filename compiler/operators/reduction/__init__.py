"""Sums, largest elements and norms over axes.

Most are `reduce:` entries of ops.yaml; `graph.py` has what these cannot say. Nothing is imported from outside: rules
are found by name.
"""
