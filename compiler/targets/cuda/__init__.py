"""NVIDIA GPUs: loop kernels and functions of a program's own as numba.cuda source, and machine code made of it.

Begin with `loops.py` (a kernel as source); `code.py` compiles it, on a machine without a GPU too; `ahead.py` is the
target that `mxc compile --target cuda:...` asks for; `target.py` runs kernels on a GPU or in Numba's simulator.
"""
