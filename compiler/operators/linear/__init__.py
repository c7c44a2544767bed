"""Matrix products: dot, batch_dot, FullyConnected, and packed weights.

Begin with `kernel.py`: the rules that call the matrix product. From outside: `convolution` and `rnn` take what reads
packed weights (`reference.py`), `convolution` also `graph.py`'s biases and `shape.py`'s `expect_shape`.
"""
