"""From a graph to launches of kernels: fusion, kernels over storages, their order, and the memory of a plan.

Begin with `stages.py`, the list of the stages in their order, which `planning.py`, one level up, runs one after the
other; `stage.py` says what a stage is. `fuse.py` (which nodes share a kernel) and `lower.py` (groups to launches,
`program.py`) come first. What follows takes launches and gives launches. The pass `recompute` asks `fuse.py` too.
"""
