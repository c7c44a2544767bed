"""The operator table: `ops.yaml` read and checked, its expression language, and what operators' rules share.

Begin with `operator.py` (the record of an operator) and `table.py` (finding one by name); `loader.py` reads the file,
`rules.py` finds rules in `compiler/operators/`. `expr.py` is the expression language, `derive.py` its derivatives,
`params.py` the parameters' types, `infer.py` shapes and dtypes of one node. All layers above may import every file but
`loader.py` and `rules.py`, which serve the table.
"""
