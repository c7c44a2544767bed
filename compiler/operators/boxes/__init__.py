"""Boxes: overlaps, suppression, matching, and the MultiBox operators of detectors.

Begin with `reference.py`: what each operator computes. From outside: `proposals` takes `box_order` of it, and `halved`
of `kernel.py`.
"""
