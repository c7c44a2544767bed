"""Baseline JPEGs, or a part of one, decoded by compiled code of our own: the pixels are those of libjpeg-turbo, which
OpenCV decodes with, to the last bit.

`head` says whether a picture is one of those that are decoded here: 8 bits, three colours as JFIF has them, Huffman
codes in one scan without restarts. `Decoder` decodes. Whatever is not as it should be is left to OpenCV.
"""
from __future__ import annotations

import ctypes
import functools
import itertools
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mxc.compiler.kernel import jpeg
from mxc.compiler.kernel.ir import RoutineKernel
from mxc.compiler.targets import host

LEAST = 16  # pixels of a side: smaller pictures are left to OpenCV
MOST = 1 << 28  # pixels: larger ones are, too, which refuses what a few damaged bytes may say
_FRAMES = frozenset({0xC0, 0xC1})  # SOF0 and SOF1: Huffman codes, one number after the other
_OTHERS = frozenset(range(0xC2, 0xD0)) - {0xC4, 0xC8}  # other frames, and arithmetic codes
_DHT, _SOS, _DQT, _DRI, _EXIF, _ADOBE, _END = 0xC4, 0xDA, 0xDB, 0xDD, 0xE1, 0xEE, b"\xff\xd9"
# ITU T.81, figure A.6: for each place in a block its row and column
ZIGZAG = np.array([8 * r + c for r, c in sorted(((r, c) for r in range(8) for c in range(8)), key=lambda p: (
    p[0] + p[1], p[0] if (p[0] + p[1]) % 2 else p[1]))], np.uint8)


@dataclass(frozen=True, slots=True)
class Head:
    """What decoding needs to know of a picture.

    wide, tall: 1 where a sample of colour stands for two pixels across, down. steps: (3, 256), what numbers of each
    component are multiplied with. codes: the four tables, each the counts of codes by length and the symbols. use: for
    each component its tables of DC and AC. begin: where the scan begins.
    """

    width: int
    height: int
    wide: int
    tall: int
    steps: np.ndarray
    codes: bytes
    use: tuple[tuple[int, int], ...]
    begin: int


def head(content: bytes) -> Head | None:
    """What the bytes before the scan of a picture say; None for one that is not decoded here."""
    if content[:2] != b"\xff\xd8" or content[-2:] != _END:
        return None
    at, size = 2, len(content)
    while at + 4 <= size and content[at] == 0xFF:
        end = at + 2 + (content[at + 2] << 8 | content[at + 3])
        if content[at + 1] == _SOS:
            return _head(content[:end])
        at = end
    return None


@functools.lru_cache(maxsize=256)
def _head(content: bytes) -> Head | None:
    """The same of the bytes before the scan alone, which pictures of a size often share."""
    at, is_jfif = 2, False
    steps: dict[int, np.ndarray] = {}
    codes: dict[int, bytes] = {}
    frame, scan = b"", b""
    while at < len(content):
        mark, length = content[at + 1], struct.unpack_from(">H", content, at + 2)[0]
        body, at = content[at + 4:at + 2 + length], at + 2 + length
        if length < 2 or mark in _OTHERS or mark in (_ADOBE, _DRI) or (mark == _EXIF and body[:4] == b"Exif"):
            return None
        if mark == 0xE0:
            is_jfif = is_jfif or body[:5] == b"JFIF\0"
        elif mark in _FRAMES:
            if frame:
                return None
            frame = body
        elif mark == _SOS:
            scan = body
        elif mark == _DQT:
            while body:
                if body[0] > 3 or len(body) < 65:  # of 16 bits
                    return None
                steps[body[0]], body = np.frombuffer(body[1:65], np.uint8).astype(np.int32), body[65:]
        elif mark == _DHT:
            while body:
                count = sum(body[1:17])
                if len(body) < 17 + count or count > 256:
                    return None
                codes[body[0]], body = body[1:17 + count].ljust(jpeg.CODES, b"\0"), body[17 + count:]
    return _checked(frame, scan, steps, codes, len(content)) if is_jfif else None


def _checked(frame: bytes, scan: bytes, steps: dict[int, np.ndarray], codes: dict[int, bytes],
             begin: int) -> Head | None:
    if len(frame) != 15 or frame[0] != 8 or frame[5] != 3 or len(scan) != 10 or scan[0] != 3:
        return None
    height, width = struct.unpack_from(">HH", frame, 1)
    components = [frame[6 + 3 * i:9 + 3 * i] for i in range(3)]
    wanted = [scan[1 + 2 * i:3 + 2 * i] for i in range(3)]
    across, down = components[0][1] >> 4, components[0][1] & 15
    if (min(width, height) < LEAST or width * height > MOST or across not in (1, 2) or down not in (1, 2)
            or scan[7:] != b"\0\x3f\0"
            or components[1][1] != 0x11 or components[2][1] != 0x11
            or any(c[0] != s[0] or c[2] not in steps for c, s in zip(components, wanted, strict=True))
            or len({c[0] for c in components}) != 3):
        return None
    uses = tuple((s[1] >> 4, s[1] & 15) for s in wanted)
    if any(max(use) > 1 or use[0] not in codes or 16 + use[1] not in codes for use in uses):
        return None
    of_components = np.zeros((3, 256), np.int32)
    for row, component in zip(of_components, components, strict=True):
        row[:64] = steps[component[2]]
    empty = bytes(jpeg.CODES)
    return Head(width, height, across - 1, down - 1, of_components,
                b"".join(codes.get(which, empty) for which in (0, 1, 16, 17)),
                tuple((1024 * dc, 1024 * (2 + ac)) for dc, ac in uses), begin)


def _basis() -> np.ndarray:
    """(8, 8): what each frequency of a row adds to each place, in 8192nd, of the constants of the decoder's integers.

    It is Loeffler, Ligtenberg and Moschytz's transform (ICASSP 1989) with rotations by constants of 13 bits.
    """
    even = np.array([[8192, 8192, 8192, 8192], [10703, 4433, -4433, -10703], [8192, -8192, -8192, 8192],
                     [4433, -10704, 10704, -4433]])
    odd = np.array([[11363, 9633, 6437, 2260], [9633, -2259, -11362, -6436], [6437, -11362, 2261, 9633],
                    [2260, -6436, 9633, -11363]])
    found = np.empty((8, 8), np.int32)
    found[0::2, :4], found[0::2, 4:] = even, even[:, ::-1]
    found[1::2, :4], found[1::2, 4:] = odd, -odd[:, ::-1]
    return found


_BASIS, _ORDER = _basis(), np.append(ZIGZAG, np.full(192, 64, np.uint8))
# Of each routine the dtypes of its arrays, how many of these it reads, and how many integers it takes.
_ROUTINES = {"jpeg_tables": (("uint8", "int32", "int64", "int64"), 1, 0),
             "jpeg_words": (("uint32", "uint32", "int64"), 1, 1),
             "jpeg_samples": (("uint32", "int32", "int64", "uint8", "uint8", "int32", "int32", "int64", "uint8",
                               "int64"), 8, 7),
             "jpeg_colors": (("uint8", "uint8"), 1, 12)}
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def kernel(name: str, integers: Sequence[int]) -> RoutineKernel:
    """One of the routines as a kernel, with its integers."""
    dtypes, inputs, _ = _ROUTINES[name]
    return RoutineKernel(name, name, (), dtypes, tuple(integers), inputs)


@functools.cache
def _functions() -> tuple[Callable[..., None], ...]:
    """The routines' compiled code, in their order."""
    target = host().target()
    kernels = [kernel(name, [1] * integers) for name, (_, _, integers) in _ROUTINES.items()]
    keys = [target.launch(each).key for each in kernels]
    loaded = target.load(dict(zip(keys, kernels, strict=True)))
    return tuple(_FUNCTION(loaded.address(key)) for key in keys)


@functools.lru_cache(maxsize=64)
def _scratch_bytes(width: int) -> int:
    """What the routines need of private memory, for parts so wide."""
    kernels = kernel("jpeg_samples", [1] * 7), kernel("jpeg_colors", [width] * 12)
    return max(host().target().launch(each).scratch_bytes for each in kernels)


class Call:
    """A routine with its arguments: arrays, then integers."""

    def __init__(self, which: int, name: str):
        dtypes, _, integers = _ROUTINES[name]
        self.name, self.arrays = name, [np.zeros(0)] * len(dtypes)  # which are kept alive here
        self._function, self._first = _functions()[which], len(dtypes)
        self._arguments = (ctypes.c_int64 * (len(dtypes) + integers))()
        self._address = ctypes.addressof(self._arguments)

    def put(self, place: int, array: np.ndarray) -> None:
        """Give an array, in one piece, for the argument at a place."""
        self.arrays[place] = array
        self._arguments[place] = address_of(array)

    def __call__(self, scratch: int = 0, *integers: int) -> None:
        self._arguments[self._first:] = integers  # type: ignore[call-overload]  # a tuple does
        self._function(self._address, 0, 1, scratch)


def address_of(array: np.ndarray) -> int:
    """Where an array's memory begins."""
    address: int = array.__array_interface__["data"][0]
    return address


class Decoder:
    """Decodes one picture after the other. Each thread needs its own."""

    def __init__(self) -> None:
        self._codes, self._status = np.zeros(4 * jpeg.CODES, np.uint8), np.zeros(2, np.int64)
        self._known, self._is_sound = b"", False  # the codes that the tables are of, and whether they are any
        self._blocks = np.zeros((6, 8), np.int64)
        self._laid_out: tuple[int, int, tuple[tuple[int, int], ...], int, int] = (0, 0, (), 0, 0)
        self._each = self._pitch = self._blue = self._red = 0
        self._tables, self._words, self._samples, self._colors = (Call(i, name) for i, name in enumerate(_ROUTINES))
        table, longs = np.zeros(4 * 1024, np.int32), np.zeros(4 * 34, np.int64)
        codes, status = self._codes, self._status
        for call, given in ((self._tables, ((0, codes), (1, table), (2, longs), (3, status))),
                            (self._words, ((2, status),)),
                            (self._samples, ((1, table), (2, longs), (3, codes), (4, _ORDER), (6, _BASIS),
                                             (7, self._blocks), (9, status)))):
            for place, array in given:
                call.put(place, array)
        self._room = (0, 0, 0)
        self._raw = self._scratch = 0

    def part(self, content: bytes, of: Head, x: int, y: int, mirrored: bool, out: np.ndarray) -> bool:
        """Write the part of a picture that begins at column x and row y to `out`, (3, height, width) of uint8 in one
        piece. mirrored: left for right. False where the picture is damaged or unusual: `out` then has anything."""
        height, width = out.shape[1:]
        if of.codes != self._known:
            self._codes[:] = np.frombuffer(of.codes, np.uint8)
            self._tables()
            self._is_sound, self._known = not self._status[0], of.codes
        if not self._is_sound:
            return False
        across, left, right = _units(of.width, x, width, of.wide)
        _, top, bottom = _units(of.height, y, height, of.tall)
        shape = (of.wide, of.tall, of.use, right - left + 1, bottom - top + 1)
        if shape != self._laid_out:
            self._lay_out(*shape)
        scan = content[of.begin:-2]
        self._make_room(len(scan), 2 * self._red - self._blue, width)
        ctypes.memmove(self._raw, scan, len(scan))
        self._words(0, len(scan))
        if self._status[0]:
            return False
        self._samples.put(5, of.steps)
        self._samples(self._scratch, self._each, across, top, bottom, left, right, int(self._status[1]))
        if self._status[0]:
            return False
        self._colors.put(1, out)
        last_x = ((of.width + of.wide) >> of.wide) - 1 - 8 * left
        last_y = ((of.height + of.tall) >> of.tall) - 1 - 8 * top
        self._colors(self._scratch, width, height, x - left * (8 << of.wide), y - top * (8 << of.tall), mirrored,
                     of.wide, of.tall, self._pitch, self._blue, self._red, last_x, last_y)
        return True

    def _lay_out(self, wide: int, tall: int, use: tuple[tuple[int, int], ...], across: int, down: int) -> None:
        """Places for the samples of so many units."""
        self._laid_out = (wide, tall, use, across, down)
        self._pitch, rows = across * (8 << wide), 8 << tall
        self._blue = self._pitch * down * rows
        self._red = self._blue + across * 8 * down * 8
        table = [(0, *use[0], 8 * r * self._pitch + 8 * c, self._pitch, 8 << wide, rows * self._pitch, 0)
                 for r in range(tall + 1) for c in range(wide + 1)]
        table += [(k, *use[k], start, across * 8, 8, across * 64, 0) for k, start in ((1, self._blue), (2, self._red))]
        self._each = len(table)
        self._blocks[:self._each] = table

    def _make_room(self, count: int, samples: int, width: int) -> None:
        """Memory for a scan of so many bytes, so many samples, and rows so wide."""
        if count <= self._room[0] and samples <= self._room[1] and width <= self._room[2]:
            return
        self._room = count, samples, width = (
            max(count, self._room[0]), max(samples, self._room[1]), max(width, self._room[2]))
        sizes = (count + 8, count + 8 + 4 * jpeg.SPARE, samples + 64, _scratch_bytes(width))
        starts = [0, *itertools.accumulate(-(-size // 64) * 64 for size in sizes)]
        memory = np.zeros(starts[-1] + 64, np.uint8)
        first = -address_of(memory) % 64
        raw, words, planes, scratch = (memory[first + begin:first + end] for begin, end in itertools.pairwise(starts))
        self._words.put(0, raw.view(np.uint32))
        for call, place in ((self._words, 1), (self._samples, 0)):
            call.put(place, words.view(np.uint32))
        for call, place in ((self._samples, 8), (self._colors, 0)):
            call.put(place, planes)
        self._raw, self._scratch = address_of(raw), address_of(scratch)


def _units(size: int, begin: int, length: int, doubled: int) -> tuple[int, int, int]:
    """Of one direction: how many units a picture has, and the first and last that a part needs. Where samples of colour
    stand for two pixels, a part needs one more on each side."""
    unit = 8 << doubled
    low, high = begin, begin + length - 1
    if doubled:
        low, high = max(low // 2 - 1, 0) * 2, min(high // 2 + 1, (size + 1) // 2 - 1) * 2
    return -(-size // unit), low // unit, high // unit


_decoders = threading.local()


def decoder() -> Decoder:
    """This thread's decoder."""
    found: Decoder | None = getattr(_decoders, "mine", None)
    if found is None:
        found = _decoders.mine = Decoder()
    return found
