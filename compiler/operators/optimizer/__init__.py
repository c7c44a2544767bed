"""What optimizers do to weights: updates in place, whose formulas are in ops.yaml.

`shape.py` is all: shapes and dtypes, with float32 copies of float16 weights. Nothing is imported from outside: rules
are found by name.
"""
