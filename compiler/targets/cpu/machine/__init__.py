"""Which CPU code is for: `isa.py` its instructions and tiles, `levels.py` the levels of x86-64, `host.py` what tells
this machine from others, `limits.py` kernels that measure what it can do at most. Begin with `isa.py`, which all
printers of the CPU's kernels ask."""
