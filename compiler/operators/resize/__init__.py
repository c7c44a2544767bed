"""Images in another size: UpSampling, bilinear resizing, adaptive pooling."""
