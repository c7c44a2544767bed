"""Pooling over regions of images: ROIPooling, ROIAlign."""
