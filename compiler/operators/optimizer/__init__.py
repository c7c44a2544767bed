"""What optimizers do to weights: updates in place."""
