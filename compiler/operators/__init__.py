"""What operators are, beyond their entries in ops.yaml: a folder for each family.

In a family's folder, each where it is needed: `shape.py` (rules of shapes, dtypes, values and flops), `reference.py`
(what the operators compute, in NumPy: slow and obvious), `graph.py` (decompositions into other operators, gradients,
updates of auxiliary states) and `kernel.py` (index rules, windows, library calls, and routines with the rules that call
them). A rule is found by the role and the name that ops.yaml gives it (ops/rules.py): in its operator's family, or in
`basic`, which has the rules that operators of several families name. Files are imported when they are needed: nobody
imports a family but another family, which may use what its files of the same kind or its `shape.py` offer.
"""
