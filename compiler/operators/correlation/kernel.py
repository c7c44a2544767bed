"""Routines of correlation and of its gradients."""
from __future__ import annotations

from mxc.compiler.kernel.routines.rule import RoutineCall, RoutineNode, call
from mxc.compiler.kernel.routines.spec import routine
from mxc.compiler.kernel.routines.words import abs_
from mxc.compiler.operators.correlation.shape import displacements, windows
from mxc.compiler.ops.operator import Params


def correlation_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """Two images of one shape."""
    return _call("correlation", c, params)


def correlation_grad_routine(c: RoutineNode, params: Params) -> RoutineCall:
    """The same two, and what flows into the output."""
    return _call("correlation_grad", c, params)


def _call(name: str, c: RoutineNode, params: Params) -> RoutineCall:
    data = c.shape(0)
    sizes = (*data, displacements(params), *windows(params, data[2:]), params.kernel_size, params.max_displacement,
             params.stride1, params.stride2)
    return call(name, sizes, multiply=params.is_multiply, real=c.dtype(0))


@routine(inputs=("one", "two"), outputs=("out",), units="batch * side * side")
def correlation(first, last, one, two, out, batch, channels, height, width, side, rows, columns, kernel, border, stride,
                step, *, multiply, real):
    """The mean over channels and kernel of the products, or absolute differences, of two images' elements.

    one, two: (batch, channels, height, width); out: (batch, side, side, rows, columns), where a unit is the plane of a
    displacement: `step` times as many rows and columns as it is away from the middle of (side, side). Kernels begin
    `border` elements from the edge, `stride` apart.
    """
    for unit in range(first, last):
        image = unit // (side * side)
        down = (unit // side % side - side // 2) * step
        across = (unit % side - side // 2) * step
        plane = unit * rows * columns
        for i in range(plane, plane + rows * columns):
            out[i] = real(0)
        for channel in range(channels):
            for tap in range(kernel * kernel):
                for row in range(rows):
                    y = row * stride + border + tap // kernel
                    a = ((image * channels + channel) * height + y) * width + border + tap % kernel
                    b = a + down * width + across
                    to = plane + row * columns
                    for column in range(columns):
                        x = one[a + column * stride]
                        z = two[b + column * stride]
                        out[to + column] = out[to + column] + (x * z if multiply else abs_(x - z))
        for i in range(plane, plane + rows * columns):
            out[i] = out[i] / real(channels * kernel * kernel)


@routine(inputs=("one", "two", "grad"), outputs=("to_one", "to_two"), units="batch * channels")
def correlation_grad(first, last, one, two, grad, to_one, to_two, batch, channels, height, width, side, rows, columns,
                     kernel, border, stride, step, *, multiply, real):
    """The gradients to both images of `correlation`, where grad flows into its output.

    The slope of an absolute difference is 1 where the elements are equal, as MXNet has it.
    """
    for unit in range(first, last):
        base = unit * height * width
        for i in range(base, base + height * width):
            to_one[i] = real(0)
            to_two[i] = real(0)
        for place in range(side * side):
            moved = (place // side - side // 2) * step * width + (place % side - side // 2) * step
            plane = (unit // channels * side * side + place) * rows * columns
            for tap in range(kernel * kernel):
                for row in range(rows):
                    a = base + (row * stride + border + tap // kernel) * width + border + tap % kernel
                    b = a + moved
                    at = plane + row * columns
                    for column in range(columns):
                        i = a + column * stride
                        j = b + column * stride
                        g = grad[at + column]
                        x = one[i]
                        z = two[j]
                        if multiply:
                            to_one[i] = to_one[i] + g * z
                            to_two[j] = to_two[j] + g * x
                        else:
                            flowing = g if x >= z else -g
                            to_one[i] = to_one[i] + flowing
                            to_two[j] = to_two[j] - flowing
        for i in range(base, base + height * width):
            to_one[i] = to_one[i] / real(channels * kernel * kernel)
            to_two[i] = to_two[i] / real(channels * kernel * kernel)
