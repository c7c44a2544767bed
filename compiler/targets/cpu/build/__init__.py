"""From LLVM IR to code in memory: `jobs.py` says what is to be made of a kernel, `worker.py` has it made in helper
processes, `load.py` by LLVM; `loaded.py` and `image.py` put object code into this process without LLVM."""
