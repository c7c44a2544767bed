"""Images in another size: UpSampling, bilinear resizing, adaptive pooling.

Begin with `reference.py`: what each computes. From outside: `regions` and `sampling` take `image` of `shape.py`.
"""
