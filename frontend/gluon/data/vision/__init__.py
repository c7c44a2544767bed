"""Datasets of images: `mx.gluon.data.vision`."""
from mxc.gluon.data.vision import datasets
from mxc.gluon.data.vision.datasets import CIFAR10, CIFAR100, MNIST, FashionMNIST

__all__ = ["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "datasets"]
