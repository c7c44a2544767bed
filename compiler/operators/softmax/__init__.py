"""softmax, softmin, log_softmax and SoftmaxActivation.

Begin with `graph.py`: softmax of other operators. From outside: `losses` takes `softmax_over` of it and of
`reference.py`.
"""
