"""Pooling over windows, and its gradients."""
