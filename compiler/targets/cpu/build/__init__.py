"""From LLVM IR to code in memory, with what makes it. Begin with `jobs.py`, which says what is to be made of a kernel.

`codegen.py` chooses the generator of loop kernels, `worker.py` has code made in helper processes, `load.py` by LLVM;
`loaded.py` and `image.py` put object code into this process without LLVM. The target alone imports all this.
"""
