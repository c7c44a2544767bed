"""Normalisations: batch, layer, instance, group, L2 and LRN.

Begin with `graph.py`: means and variances of other operators, and gradients. Nothing is imported from outside: rules
are found by name.
"""
