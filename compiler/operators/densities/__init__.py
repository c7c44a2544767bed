"""Probability densities of the random operators' distributions."""
