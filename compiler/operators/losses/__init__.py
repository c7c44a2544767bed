"""Losses: operators that begin a gradient of their own, and outputs with labels."""
