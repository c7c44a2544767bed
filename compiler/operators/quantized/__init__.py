"""Layers over numbers of 8 bits: products and convolutions summed in int32, and what keeps 8 bits between them.

Begin with `graph.py`: the layers one by one, and those that stand for several operators of a subgraph, as graphs have
them that were made for MXNet's oneDNN. Nothing is imported from outside: rules are found by name.
"""
