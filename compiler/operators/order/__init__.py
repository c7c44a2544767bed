"""Sorting, topk, running sums and histograms."""
