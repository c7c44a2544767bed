"""Batches of sequences of different lengths: mask, last step, reverse."""
