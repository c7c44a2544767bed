"""The passes: each takes a graph and gives another that computes the same, or more of what was asked for.

Begin with `pipeline.py` (the passes in their order) and `registry.py` (what a pass is); each pass is a file of its
name with a test file of its name. `simplify_rules/` has the rules of `simplify`. From outside, `planning.py` runs the
pipeline; inference of shapes and dtypes (`infer.py`, `infer_shape.py`, `infer_dtype.py`), `decompose.py` and
`gradient.py` are also asked by the runtime and the frontend.
"""
