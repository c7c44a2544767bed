"""The two products of self attention, over projections that lie in one array.

Begin with `graph.py`: each is a batch of matrix products, of slices of that array.
"""
