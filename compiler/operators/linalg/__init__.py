"""Linear algebra over the last two axes: products, triangles, factorisations and what is made of them.

Begin with `graph.py`: products are those of `linear`, gradients are written in operators of the family. Factorisations
are NumPy's (LAPACK), as host steps; triangular systems are a routine.
"""
