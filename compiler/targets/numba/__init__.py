"""Numba as a generator of LLVM IR: of the CPU's typed source, and of functions that a program has written.

Begin with `generate.py` (kernels) and `arrays.py` (functions over whole arrays); `lowering.py` drives Numba, and
`words.py` tells it the words of the typed source. `targets/cpu` alone imports this, when code is to be made.
"""
