"""Grids, and images sampled at them: GridGenerator, BilinearSampler, SpatialTransformer.

Begin with `graph.py`: grids as sums of products. Nothing is imported from outside: rules are found by name.
"""
