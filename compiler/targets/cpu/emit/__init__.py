"""What prints the CPU's kernels: `loops.py` prints a loop kernel as typed Python source, `translate.py` turns that
source into LLVM IR, over `builder.py`, which writes LLVM IR and which the library kernels use directly. Begin with
`loops.py`; `typed.py` and `vocabulary.py` are the language between the two, which targets/numba reads too."""
