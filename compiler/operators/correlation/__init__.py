"""How alike two images are, place by place, for small displacements of the second one: Correlation.

Begin with `shape.py`, whose `windows` counts places and displacements. Nothing is imported from outside: rules are
found by name.
"""
