"""Functions of a program's own, written in Python, that become operators: how they are read, checked and rewritten.

Begin with `source.py` (a function's syntax tree and its errors), `formula.py` (functions of numbers as expressions of
the operator table) and `arrays.py` (functions over whole arrays). `typed.py`, `integers.py` and `unbound.py` rewrite
functions of numbers so that compiled code computes what Python would; `reference.py` defines that. The runtime imports
this to make operators, targets to make code, `plan.py` the errors of `faults.py`.
"""
