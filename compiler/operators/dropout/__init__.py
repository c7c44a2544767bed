"""Dropout: a product with a random mask.

Begin with `graph.py`, which makes the mask of random numbers. Nothing is imported from outside: rules are found by
name.
"""
