"""The functions of numbers that expressions of the operator table may call.

Begin with records.py: one record for each, from which every table of them is made. special.py computes those that
NumPy lacks, element by element: the reference. From outside: `records.BUILTINS` and `records.OF_KERNELS`, and of
special.py the terms of series that kernel/math.py needs too. Nothing here imports another part of the compiler.
"""
