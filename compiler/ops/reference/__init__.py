"""What operators mean, in NumPy: slow and obvious."""
