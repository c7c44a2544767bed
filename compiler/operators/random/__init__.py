"""Random numbers: distributions, samples, shuffles.

Begin with `graph.py`: distributions as formulas over uniform numbers, where one draw is enough; `kernel.py` has
routines for the others. Nothing is imported from outside: rules are found by name.
"""
