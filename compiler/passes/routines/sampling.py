"""Gradients of sampling images at a grid."""
from __future__ import annotations

from math import prod

from mxc.compiler.ops.table import Params
from mxc.compiler.passes.routines.context import Call, Context, call


def bilinear_sampler_grad(c: Context, params: Params) -> Call:
    """data (batch, channels, height, width), grid (batch, 2, ...), gradient of (batch, channels, ...)."""
    return call("bilinear_sampler_grad", (*c.shape(0), prod(c.shape(1)[2:])), real=c.dtype(0))
