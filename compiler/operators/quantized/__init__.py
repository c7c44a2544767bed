"""Layers over numbers of 8 bits: products and convolutions summed in int32, and what keeps 8 bits between them.

Begin with `graph.py`: the layers one by one. The family `fused` takes their sums and ranges.
"""
