"""Sums, largest elements and norms over axes."""
