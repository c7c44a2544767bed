"""What optimizers do to weights: updates in place, whose formulas are in ops.yaml.

Begin with `shape.py`: shapes and dtypes, with float32 copies of float16 weights; `reference.py` has what is no formula
over elements. Nothing is imported from outside: rules
are found by name.
"""
