"""Activation and LeakyReLU, which choose a function by a parameter."""
