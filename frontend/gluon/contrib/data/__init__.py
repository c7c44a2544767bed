"""Samplers that stand beside those of `mx.gluon.data`: `mx.gluon.contrib.data`."""
from mxc.gluon.contrib.data import sampler
from mxc.gluon.contrib.data.sampler import IntervalSampler

__all__ = ["IntervalSampler", "sampler"]
