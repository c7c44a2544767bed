"""What prints the CPU's kernels: `loops.py` prints a loop kernel as typed Python source, `translate.py` turns that
source into LLVM IR, over `builder.py`, which writes LLVM IR and which the library kernels use directly."""
