"""Datasets of images, and blocks that change images: `mx.gluon.data.vision`.

Begin with `transforms.py`; `image_datasets.py` reads folders and files of records, `datasets.py` well-known sets of
small images that are on this machine. Programs import the classes from here.
"""
from mxc.gluon.data.vision import datasets, transforms
from mxc.gluon.data.vision.datasets import (
    CIFAR10,
    CIFAR100,
    MNIST,
    FashionMNIST,
    ImageFolderDataset,
    ImageRecordDataset,
)

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "ImageFolderDataset", "ImageRecordDataset", "datasets",
           "transforms"]
