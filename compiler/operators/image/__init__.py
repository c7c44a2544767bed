"""Operators on pictures: to tensors, normalised, flipped, cropped, resized, and changed in their colours.

Begin with `reference.py`: what each computes. Resizing and borders are host steps by OpenCV.
"""
