"""Datasets of images: `mx.gluon.data.vision`.

Begin with `datasets.py`, which reads files that are on this machine. Programs import the classes from here.
"""
from mxc.gluon.data.vision import datasets
from mxc.gluon.data.vision.datasets import CIFAR10, CIFAR100, MNIST, FashionMNIST

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "datasets"]
