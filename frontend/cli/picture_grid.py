"""Pictures of records side by side in one picture, with their numbers, labels and boxes."""
from __future__ import annotations

from typing import Any

import numpy as np

from mxc.cli.record_items import Item
from mxc.compiler.error import MXNetError
from mxc.compiler.system import opencv
from mxc.image.box_base import boxes_in
from mxc.picture_inputs import decoded
from mxc.runtime import whole_file

SIDE, CAPTION, MARGIN = 160, 20, 4  # pixels: of a picture's square, of the line below it, around both
WHITE, INK, RED = (255, 255, 255), (0, 0, 0), (0, 0, 255)
TEXT = 0.4  # size of letters, as a share of OpenCV's
LETTERS = 22  # of a caption, which has room for no more
QUALITY = {".jpg": 95, ".png": 6}


class Grid:
    """So many rows and columns of pictures; fewer when there are fewer pictures. faults: (number of a record, what is
    wrong) of pictures that cannot be decoded, whose squares are empty."""

    def __init__(self, rows: int, columns: int):
        self._most = (rows, columns)
        self.tiles: list[np.ndarray] = []
        self.faults: list[tuple[int, str]] = []

    def add(self, item: Item) -> bool:
        """Draw a record's picture, if it has one. False when there is no room for it."""
        if len(self.tiles) == self._most[0] * self._most[1]:
            return False
        try:
            image = decoded(item.content, 3)[..., ::-1]  # OpenCV, which draws, has blue first
        except MXNetError as error:
            if item.picture is not None:  # else the record has something else
                self.faults.append((item.number, str(error)))
                self.tiles.append(_tile(None, item))
            return True
        self.tiles.append(_tile(image, item))
        return True

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return min(self._most[1], len(self.tiles))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return -(-len(self.tiles) // self._most[1])

    def save(self, path: str, ending: str) -> None:
        """Write the picture. ending: ".png" or ".jpg". Raises FileAccessError where it cannot be written."""
        empty = [_tile(None, None)] * (self.rows * self.columns - len(self.tiles))
        tiles = np.stack([*self.tiles, *empty]).reshape(self.rows, self.columns, *self.tiles[0].shape)
        height, width = self.rows * tiles.shape[2], self.columns * tiles.shape[3]
        image = tiles.transpose(0, 2, 1, 3, 4).reshape(height, width, 3)
        content = opencv.encoded(np.ascontiguousarray(image), QUALITY[ending], ending)
        with whole_file.replacing(path) as file:
            file.write(content)


def _tile(image: np.ndarray | None, item: Item | None) -> np.ndarray:
    """A square with a picture and a caption below it."""
    cv2 = opencv.library()
    tile = np.full((SIDE + CAPTION + 2 * MARGIN, SIDE + 2 * MARGIN, 3), WHITE, np.uint8)
    boxes = None
    if image is not None and item is not None:
        height, width = image.shape[:2]
        scale = SIDE / max(height, width)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        small = np.ascontiguousarray(opencv.resized(image, *size, interpolation=3 if scale < 1 else 1))
        boxes = _boxes(item)
        for box in () if boxes is None else boxes:
            left, top, right, bottom = (int(n) for n in box[1:5] * (*size, *size))
            cv2.rectangle(small, (left, top), (right, bottom), RED, 1)
            for ink, width in ((WHITE, 3), (RED, 1)):  # letters with an edge, to be read on any picture
                cv2.putText(small, f"{box[0]:g}", (left + 2, top + 11), cv2.FONT_HERSHEY_SIMPLEX, TEXT, ink, width,
                            cv2.LINE_AA)
        top, left = MARGIN + (SIDE - size[1]) // 2, MARGIN + (SIDE - size[0]) // 2
        tile[top:top + size[1], left:left + size[0]] = small
    if item is not None:
        caption = f"{item.number}: {'damaged' if image is None else _words(item.label, boxes)}"
        cv2.putText(tile, caption[:LETTERS], (MARGIN, MARGIN + SIDE + CAPTION - 6), cv2.FONT_HERSHEY_SIMPLEX, TEXT, INK,
                    1, cv2.LINE_AA)
    return tile


def _boxes(item: Item) -> np.ndarray | None:
    """The boxes that a label has, as shares of the picture; None for another label."""
    try:
        boxes = boxes_in(np.array(item.label))
    except (MXNetError, ValueError, OverflowError):
        return None
    return boxes if (np.abs(boxes[:, 1:5]) <= 2).all() else None  # shares of the size, not pixels


def _words(label: Any, boxes: np.ndarray | None) -> str:
    if boxes is not None:
        return f"{len(boxes)} boxes" if len(boxes) > 1 else "1 box"
    return " ".join(f"{number:g}" for number in (label if isinstance(label, list) else [label]))
