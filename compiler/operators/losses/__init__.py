"""Losses: operators that begin a gradient of their own, and outputs with labels.

Begin with `graph.py`: the gradients. Nothing is imported from outside: rules are found by name.
"""
