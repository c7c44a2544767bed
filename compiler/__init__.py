"""The compiler: from a graph of operators with known shapes to a plan and the kernels that it runs.

Begin with `api.py` (a graph in, a plan and loaded kernels out) and `planning.py` (the steps between, in their order).
`graph/` and `ops/` have what graphs are made of, `operators/` the rules of each operator, `functions/` a program's own;
`passes/` go from graph to graph, `lowering/` from graph to kernels, `kernel/` defines these, `targets/` make code.
`plan.py` is the result as data; `cache.py` and `stored_plans.py` keep what was made before. `system/` and `error.py`
serve all. Nothing here imports the runtime or the frontend; what these may import of it, tests/test_layers.py lists.
"""
