"""Boxes: overlaps, suppression, matching, and the MultiBox operators of detectors."""
