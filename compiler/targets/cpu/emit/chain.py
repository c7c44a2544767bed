"""A chain of library kernels: one small function that calls theirs, as a table among its run-time integers says.

The table, after the addresses of the buffers, has

    how many segments there are, how many integers a record has, and at which byte of the chain's scratch memory that of
        the kernels begins
    the first call of each segment, and the number of all calls
    a record for each call: address of the code, and how many units, places and values it has;
        for each place its buffer (-1: a private array), its offset and what each image adds, in bytes;
        the values

A thread's scratch memory holds the arguments of the call being made, the private arrays, and the kernels' scratch
memory, in this order.
"""
from __future__ import annotations

from collections.abc import Callable

from mxc.compiler.kernel.ir import CallKernel, ChainKernel, Place
from mxc.compiler.targets.cpu import library
from mxc.compiler.targets.cpu.emit.builder import BYTES, Array, Builder
from mxc.compiler.targets.cpu.machine.isa import Isa
from mxc.compiler.targets.launch import LaunchConfig

HEAD, CALL, PLACE = 3, 4, 3  # how many integers the table's head, a record before its places, and a place have
ALIGNMENT = 64  # bytes: each private array begins at a multiple of a cache line


def launch(kernel: ChainKernel, key: str, launch_of: Callable[[CallKernel], LaunchConfig], isa: Isa) -> LaunchConfig:
    """How a chain is launched. key: that of its code. launch_of: says how a library kernel is launched."""
    codes: list[LaunchConfig] = []
    forms: dict[int, LaunchConfig] = {}
    for call, _ in kernel.calls():  # those with the very same stores differ in their extents alone
        if id(call.stores) not in forms:
            forms[id(call.stores)] = launch_of(call)
        code = forms[id(call.stores)]
        numbers = (*call.extents, *code.values[len(call.extents) :])
        codes.append(LaunchConfig(code.key, library.units(call, isa), library.scratch_bytes(call, isa), numbers))
    width = max(CALL + PLACE * len(places) + len(code.values)
                for (_, places), code in zip(kernel.calls(), codes, strict=True))
    private, end = _private(kernel, width)
    firsts, count = [], 0
    for segment in kernel.segments:
        firsts.append(count)
        count += len(segment)
    values = [len(kernel.segments), width, end, *firsts, count]
    addresses = []
    for (call, places), code in zip(kernel.calls(), codes, strict=True):
        addresses.append((len(values), code.key))
        record = [0, code.units, len(places), len(code.values)]
        for place, dtype in zip(places, call.buffers, strict=True):
            record += _bytes(place, len(kernel.buffers), dtype, private)
        record += code.values
        values += [*record, *[0] * (width - len(record))]
    scratch = end + max(code.scratch_bytes for code in codes)
    return LaunchConfig(key, kernel.images * len(kernel.segments), scratch, tuple(values), tuple(addresses))


def _private(kernel: ChainKernel, width: int) -> tuple[list[int], int]:
    """The bytes of the scratch memory at which each private array begins, and where they end."""
    begins, at = [], _aligned(8 * width)
    for elements in kernel.private:
        begins.append(at)
        at = _aligned(at + elements * BYTES["float32"])
    return begins, at


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _bytes(place: Place, buffers: int, dtype: str, private: list[int]) -> tuple[int, int, int]:
    offset, step = place.offset * BYTES[dtype], place.step * BYTES[dtype]
    return (place.buffer, offset, step) if place.buffer < buffers else (-1, private[place.buffer - buffers] + offset, 0)


def source(kernel: ChainKernel, symbol: str) -> str:
    """LLVM IR text that defines @`symbol`."""
    b, count = Builder(), len(kernel.buffers)
    with b.function(symbol, "ptr args, i64 first, i64 last, ptr scratch") as (args, first, last, scratch):
        buffers, own = Array(b, args, "int64"), Array(b, scratch, "int64")
        table = buffers.at(count)
        segments, width = table[0], table[1]
        private = b.emit("i64", f"ptrtoint ptr {scratch.text} to i64")
        kernels_scratch = b.pointer(private + table[2])
        calls = table.at(segments + (HEAD + 1))
        for unit in b.range(first, last):
            image, segment = unit // segments, unit % segments
            bounds = table.at(segment + HEAD)
            for at in b.range(bounds[0], bounds[1]):
                record = calls.at(at * width)
                places, values = record[2], record[3]
                for i in b.range(0, places):
                    place = record.at(i * PLACE + CALL)
                    buffer = place[0]
                    base = b.select(buffer < 0, private, buffers[b.maximum(buffer, 0)])
                    own[i] = base + place[1] + place[2] * image
                numbers, target = record.at(places * PLACE + CALL), own.at(places)
                for i in b.range(0, values):
                    target[i] = numbers[i]
                arguments = f"ptr {scratch.text}, i64 0, i64 {record[1].text}, ptr {kernels_scratch.text}"
                b.raw(f"call void {b.pointer(record[0]).text}({arguments})")
    return b.module()
