"""Gradients of Fourier transforms."""
from __future__ import annotations

from mxc.compiler.graph.gradient_rule import Gradient
from mxc.compiler.graph.graph import Entry


def fft_grad(g: Gradient) -> list[Entry | None]:
    """The transform is linear, with the inverse one, not divided by n, as its transpose."""
    return [g.make("_contrib_ifft", g.og)]


def ifft_grad(g: Gradient) -> list[Entry | None]:
    """The transpose of the inverse transform, which is not divided by n."""
    return [g.make("_contrib_fft", g.og)]
