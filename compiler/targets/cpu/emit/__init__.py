"""What prints the CPU's kernels: `loops.py` a loop kernel as typed Python source, `translate.py` that source as LLVM IR,
over `builder.py`, which writes LLVM IR and which the library kernels use directly."""
