"""The gradient of max pooling."""
from __future__ import annotations

from mxc.compiler.kernel.calls import Window
from mxc.compiler.kernel.ir import CallKernel
from mxc.compiler.targets.cpu.builder import Array, Builder, Value
from mxc.compiler.targets.cpu.isa import Isa
from mxc.compiler.targets.cpu.library.convolution import inner_axes, split, volume
from mxc.compiler.targets.cpu.library.epilogue import Epilogue


def units(kernel: CallKernel, lanes: int) -> int:
    w = Window.of(kernel.extents)
    return w.batch * w.groups


def scratch_elements(kernel: CallKernel, lanes: int) -> int:
    return int(volume(Window.of(kernel.extents).data)) + lanes  # type: ignore[arg-type]


def print_kernel(kernel: CallKernel, b: Builder, isa: Isa, dtype: str, epilogue: Epilogue, values: list[Value]) -> None:
    """Per plane: zeros, then each window adds its gradient at its first maximum, then the epilogue over the plane."""
    first, last, scratch = values
    lanes, arithmetic = isa.lanes(dtype), epilogue.arithmetic
    w = Window.of(epilogue.extents)  # type: ignore[arg-type]
    data, out_grad = epilogue.buffers[:2]
    strides, out_strides = epilogue.extents[22:27], epilogue.extents[27:]
    plane, size = Array(b, scratch, dtype), b.lift(volume(w.data))
    flat = bool(dict(kernel.params)["flat"])
    for unit in b.range(first, last):
        image, channel = unit // w.groups, unit % w.groups
        source = data.at(image * strides[0] + channel * strides[1])
        grads = out_grad.at(image * out_strides[0] + channel * out_strides[1])
        for i in b.range(0, size):
            plane[i] = b.zero(plane.element)
        for pixel in b.range(0, volume(w.out)):
            place = split(pixel, w.out)
            begin = [b.maximum(0, p * w.stride[x] - w.pad[x]) for x, p in enumerate(place)]
            end = [b.minimum(w.data[x], p * w.stride[x] - w.pad[x] + w.kernel[x]) for x, p in enumerate(place)]
            exists = (begin[0] < end[0]) & (begin[1] < end[1]) & (begin[2] < end[2])
            with b.when(exists):
                start = source[begin[0] * strides[2] + begin[1] * strides[3] + begin[2] * strides[4]]
                best = [
                    arithmetic.loaded(start, data.dtype),
                    (begin[0] * w.data[1] + begin[1]) * w.data[2] + begin[2],
                ]
                for d in b.range(begin[0], end[0], carry=best):
                    for h in b.range(begin[1], end[1], carry=best):
                        row, position = source.at(d * strides[2] + h * strides[3]), (d * w.data[1] + h) * w.data[2]
                        for x in b.range(begin[2], end[2], carry=best):
                            value = arithmetic.loaded(row[x * strides[4]], data.dtype)
                            # a number comes before NaN: greater, or nothing to compare with
                            better = b.compare("ugt", value, best[0]) & b.compare("oeq", value, value)
                            best[0] = b.select(better, value, best[0])
                            best[1] = b.select(better, position + x, best[1])
                offsets = [p * s for p, s in zip(place, out_strides[2:], strict=True)]
                grad = arithmetic.loaded(grads[offsets[0] + offsets[1] + offsets[2]], out_grad.dtype)
                plane[best[1]] = plane[best[1]] + grad
        for i in b.range(0, size, lanes):
            mask = b.first_lanes(size - i, lanes)
            axes = inner_axes(b, flat, i, w.data, lanes)
            epilogue.store([image, channel, *axes], plane.vector(i, lanes), dtype, mask)
