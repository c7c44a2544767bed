"""Grids, and images sampled at them: GridGenerator, BilinearSampler, SpatialTransformer."""
