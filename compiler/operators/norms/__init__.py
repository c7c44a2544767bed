"""Normalisations: batch, layer, instance, group, L2 and LRN."""
