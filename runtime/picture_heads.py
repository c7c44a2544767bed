"""What the bytes of a JPEG or PNG picture say of it before they are decoded: its size, and whether its end is there."""
from __future__ import annotations

import struct
from dataclasses import dataclass

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_END = b"IEND\xaeB`\x82"  # The last part's name and check sum; it has no content.
_JPEG = b"\xff\xd8\xff"
_JPEG_END = b"\xff\xd9"
# Marks of a JPEG's frame, which has the size: SOF0 to SOF15 without DHT, JPG and DAC, which stand between them.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCAN = 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # Marks without a length behind them.


@dataclass(frozen=True, slots=True)
class PictureHead:
    """kind: "jpeg" or "png". width, height: of the pixels as they are stored; 0 where the bytes end before them."""

    kind: str
    width: int
    height: int


def picture_head(content: bytes) -> PictureHead | None:
    """What a picture's first bytes say; None for bytes that begin no JPEG or PNG."""
    if content.startswith(_PNG):
        if len(content) < 24 or content[12:16] != b"IHDR":
            return PictureHead("png", 0, 0)
        return PictureHead("png", *struct.unpack_from(">II", content, 16))
    if not content.startswith(_JPEG):
        return None
    mark, at = _jpeg_mark(content, frozenset({*_FRAMES, _SCAN}))
    if mark not in _FRAMES or at + 9 > len(content):
        return PictureHead("jpeg", 0, 0)
    height, width = struct.unpack_from(">HH", content, at + 5)
    return PictureHead("jpeg", width, height)


def is_cut_off(content: bytes) -> bool:
    """Whether a JPEG or PNG lacks its end; False for other bytes."""
    if content.startswith(_PNG):
        return content.rfind(_PNG_END) < 0
    if not content.startswith(_JPEG):
        return False
    _, scan = _jpeg_mark(content, frozenset({_SCAN}))  # A small picture in the head may have an end of its own.
    return content.find(_JPEG_END, scan) < 0


def _jpeg_mark(content: bytes, wanted: frozenset[int]) -> tuple[int, int]:
    """The first of the wanted marks of a JPEG, and its place; (0, place) where the bytes end, or are none, before."""
    at = 2
    while at + 4 <= len(content) and content[at] == 0xFF:
        mark = content[at + 1]
        if mark in wanted:
            return mark, at
        if mark == 0xFF:  # It fills up.
            at += 1
        elif mark in _ALONE:
            at += 2
        else:
            at += 2 + struct.unpack_from(">H", content, at + 2)[0]
    return 0, at
