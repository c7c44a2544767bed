"""Activation and LeakyReLU, which choose a function by a parameter.

Begin with `graph.py`: an activation becomes the operator of its function. Nothing is imported from outside: rules are
found by name.
"""
