"""Arrays in another shape or order: Reshape, transpose, reverse, tile, broadcast.

Begin with `shape.py`: how Reshape reads a shape. From outside: `resize` takes `sum_over` of `graph.py`.
"""
