"""Layers that stand for a subgraph: a convolution or product and what follows it, as graphs for oneDNN have them.

Begin with `graph.py`. Sums over numbers of 8 bits are those of the family `quantized`. Nothing is imported from
outside: rules are found by name.
"""
