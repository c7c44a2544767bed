"""Reading and writing at indices: take, pick, Embedding, one_hot, gather and scatter.

Begin with `kernel.py`: index rules, and routines that scatter. From outside: `sequence` takes `integers` of
`reference.py`.
"""
