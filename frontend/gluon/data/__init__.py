"""Datasets, samplers and the DataLoader: `mx.gluon.data`."""
from mxc.gluon.data import dataloader, dataset, sampler, vision
from mxc.gluon.data.dataloader import DataLoader
from mxc.gluon.data.dataset import ArrayDataset, Dataset, SimpleDataset
from mxc.gluon.data.sampler import BatchSampler, FilterSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["ArrayDataset", "BatchSampler", "DataLoader", "Dataset", "FilterSampler", "RandomSampler", "Sampler",
           "SequentialSampler", "SimpleDataset", "dataloader", "dataset", "sampler", "vision"]
