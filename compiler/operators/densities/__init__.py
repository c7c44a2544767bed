"""Probability densities of the random operators' distributions.

Begin with `reference.py`: the densities, one function each. Nothing is imported from outside: rules are found by name.
"""
