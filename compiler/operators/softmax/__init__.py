"""softmax, softmin, log_softmax and SoftmaxActivation."""
