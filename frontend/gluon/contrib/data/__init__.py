"""Samplers that stand beside those of `mx.gluon.data`: `mx.gluon.contrib.data`.

Begin with `sampler.py`; programs import its classes from here.
"""
from mxc.gluon.contrib.data import sampler
from mxc.gluon.contrib.data.sampler import IntervalSampler

__all__ = ["IntervalSampler", "sampler"]
