"""Outputs of networks that find objects: classes, scores and boxes, in the two forms that MXNet's networks give."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np


ROWS_OF = "_contrib_MultiBoxDetection"  # whose rows are class, score and box


class Detections(NamedTuple):
    """classes, scores: (N, M), -1 for a class where there is nothing. boxes: (N, M, 4), the corners' x and y. outputs:
    the names of the outputs that they are of."""

    classes: np.ndarray
    scores: np.ndarray
    boxes: np.ndarray
    outputs: tuple[str, ...]

    def best(self, row: int, most: int) -> list[tuple[int, float, list[float]]]:
        """Class, score and box of what was found in a row, the highest scores first, `most` at most."""
        import numpy as np

        found = [int(i) for i in np.argsort(-self.scores[row], kind="stable") if self.classes[row, i] >= 0][:most]
        return [(int(self.classes[row, i]), float(self.scores[row, i]), [float(v) for v in self.boxes[row, i]])
                for i in found]

    def count(self, row: int) -> int:
        """How many objects were found in a row."""
        return int((self.classes[row] >= 0).sum())


def of_outputs(outputs: Mapping[str, np.ndarray], operators: Set[str]) -> Detections | None:
    """The detections that outputs are, by their shapes and values; None where they are none. operators: the model's.

    As of GluonCV's SSD, YOLO, CenterNet and others, three outputs (N, M, 1) or (N, M), the same, and (N, M, 4):
    classes, scores, boxes. As of MultiBoxDetection, one output (N, M, 6): class, score and box in each row.
    """
    import numpy as np

    names, arrays = tuple(outputs), [array for array in outputs.values() if array.dtype.kind in "fiu"]
    if len(arrays) != len(names):
        return None
    if len(arrays) == 1 and arrays[0].ndim == 3 and arrays[0].shape[2] == 6 and ROWS_OF in operators:
        rows = arrays[0].astype(np.float64)
        found = Detections(rows[..., 0], rows[..., 1], rows[..., 2:], names)
    elif len(arrays) == 3 and arrays[2].ndim == 3 and arrays[2].shape[2] == 4 and all(
            array.size == arrays[2].size // 4 and array.shape[:2] == arrays[2].shape[:2] for array in arrays[:2]):
        classes, scores = (array.reshape(array.shape[:2]).astype(np.float64) for array in arrays[:2])
        found = Detections(classes, scores, arrays[2].astype(np.float64), names)
    else:
        return None
    is_class = np.isfinite(found.classes) & (found.classes == np.floor(found.classes)) & (found.classes >= -1)
    scores = found.scores[found.classes >= 0]
    return found if bool(is_class.all() and ((scores >= 0) & (scores <= 1)).all()) else None


def as_data(found: Detections, most: int, names: Sequence[str] | None, rows: Sequence[str]) -> list[dict[str, Any]]:
    """What was found in each row, as plain data; NaN and infinities of boxes are text. names: of classes. rows: what
    the rows are called, if anything."""
    return [{**({"file": rows[row]} if rows else {}), "found": found.count(row), "best": [
        {"class": number, **({} if names is None else {"name": name_of(number, names)}), "score": score,
         "box": [value if math.isfinite(value) else str(value) for value in box]}
        for number, score, box in found.best(row, most)]} for row in range(len(found.classes))]


def name_of(number: int, names: Sequence[str]) -> str:
    """The name of a class; its number where there is none."""
    return names[number] if 0 <= number < len(names) else str(number)
