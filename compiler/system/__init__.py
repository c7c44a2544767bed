"""Process plumbing: services of the system and of Python that the rest needs; they know nothing of graphs or kernels.

`env` is the one reader of environment variables; `forks`, `interrupts` and `garbage` keep locks, Ctrl-C and the garbage
collector from meeting at bad times; `input_files` opens what users name; `progress` tells how far a compilation is;
`sources` makes digests of the compiler's own text; `syntax` parses Python. Every layer may import all of them.
"""
