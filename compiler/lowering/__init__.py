"""From a graph to launches of kernels: fusion, kernels over storages, their order, and the memory of a plan.

Begin with `fuse.py` (which nodes share a kernel) and `lower.py` (groups to launches, `program.py`). What follows takes
launches and gives launches. `planning.py`, one level up, calls these stages; the pass `recompute` asks `fuse.py` too.
"""
