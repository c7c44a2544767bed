"""Datasets, samplers and the DataLoader: `mx.gluon.data`.

Begin with `dataset.py` and `dataloader.py`, which makes batches itself or by `workers.py`; these send batches through
the blocks of `shared_batches.py`. Programs import the classes from here.
"""
from mxc.gluon.data import dataloader, dataset, sampler, vision
from mxc.gluon.data.dataloader import DataLoader
from mxc.gluon.data.dataset import ArrayDataset, Dataset, RecordFileDataset, SimpleDataset
from mxc.gluon.data.sampler import BatchSampler, FilterSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["ArrayDataset", "BatchSampler", "DataLoader", "Dataset", "FilterSampler", "RandomSampler",
           "RecordFileDataset", "Sampler", "SequentialSampler", "SimpleDataset", "dataloader", "dataset", "sampler",
           "vision"]
