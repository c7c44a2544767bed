"""Likelihoods of events in time: the marked Hawkes process.

Begin with `kernel.py`, which says what is computed. Nothing is imported from outside: rules are found by name.
"""
