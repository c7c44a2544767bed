"""Boxes stay where their objects are, whatever augmenters and ImageDetRecordIter do to an image.

The image has a red, a green and a blue rectangle on black; the boxes' classes are 0, 1 and 2.
"""
from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.system import opencv

pytest.importorskip("cv2")
HEIGHT, WIDTH = 120, 160
BOXES = np.array([[0, 0.1, 0.2, 0.35, 0.55], [1, 0.5, 0.1, 0.85, 0.3], [2, 0.45, 0.5, 0.95, 0.9]], np.float32)
NEAR = 1.6  # pixels that a side may be off: half a pixel of rounding at the first size, and resizing
IMAGE = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
for _class, *_sides in BOXES:
    _left, _top, _right, _bottom = np.rint(np.array(_sides) * (WIDTH, HEIGHT, WIDTH, HEIGHT)).astype(int)
    IMAGE[_top:_bottom, _left:_right, int(_class)] = 255


def seen(image: np.ndarray, kind: int) -> np.ndarray | None:
    """Left, top, right and bottom, in pixels, of what has the colour of a class; None where nothing has."""
    others = [i for i in range(3) if i != kind]
    rows, columns = np.nonzero((image[..., kind] > 130) & (image[..., others] < 110).all(2))
    return np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]) if len(rows) else None


def check(image: np.ndarray, boxes: np.ndarray) -> None:
    height, width = image.shape[:2]
    for kind, *sides in boxes[:, :5]:
        place = seen(image, int(kind))
        assert place is not None
        np.testing.assert_allclose(np.array(sides) * (width, height, width, height), place, rtol=0, atol=NEAR)


@pytest.fixture(autouse=True)
def seeded() -> None:
    random.seed(21)
    np.random.seed(21)


AUGMENTERS = {
    "flipped": lambda: mx.image.DetHorizontalFlipAug(0.5),
    "cropped": lambda: mx.image.DetRandomCropAug(0.3, (0.5, 2.0), (0.2, 0.9), 0.3, 50),
    "padded": lambda: mx.image.DetRandomPadAug((0.5, 2.0), (1.2, 3.0), 50),
    "resized": lambda: mx.image.DetBorrowAug(mx.image.ForceResizeAug((200, 90))),
    "shorter side": lambda: mx.image.DetBorrowAug(mx.image.ResizeAug(70)),
    "colours": lambda: mx.image.DetBorrowAug(mx.image.BrightnessJitterAug(0.2)),
    "one of several crops": lambda: mx.image.CreateMultiRandCropAugmenter(
        [0.1, 0.5], [(0.5, 2.0), (0.75, 1.33)], [(0.1, 1.0), (0.3, 0.9)], 0.3, 50, skip_prob=0.2),
    "flip or border": lambda: mx.image.DetRandomSelectAug(
        [mx.image.DetHorizontalFlipAug(1.0), mx.image.DetRandomPadAug((0.75, 1.33), (1.5, 2.0), 50)], 0.3)}


@pytest.mark.parametrize("name", AUGMENTERS)
def test_each_augmenter(name: str) -> None:
    augmenter, changed = AUGMENTERS[name](), 0
    for _ in range(40):
        image, boxes = augmenter(mx.nd.array(IMAGE.astype(np.float32)), BOXES.copy())
        check(image.asnumpy(), boxes)
        changed += image.shape != IMAGE.shape or bool((image.asnumpy() != IMAGE).any())
    assert changed > 10


def test_the_usual_list() -> None:
    augmenters = mx.image.CreateDetAugmenter(
        (3, 90, 110), resize=100, rand_crop=0.7, rand_pad=0.6, rand_mirror=True, brightness=0.1, contrast=0.1,
        area_range=(0.3, 2.5), min_object_covered=0.5)
    counts = set()
    for _ in range(60):
        image, boxes = mx.nd.array(IMAGE, dtype="uint8"), BOXES.copy()
        for each in augmenters:
            image, boxes = each(image, boxes)
        check(image.asnumpy(), boxes)
        counts.add(len(boxes))
    assert image.shape == (90, 110, 3) and counts == {1, 2, 3}


def test_the_iterator_of_images_with_boxes(tmp_path: Path) -> None:
    made = mx.image.ImageDetIter(6, (3, 90, 110), path_imgrec=records(tmp_path), rand_crop=0.6, rand_pad=0.5,
                                 rand_mirror=True, area_range=(0.4, 2.0), min_object_covered=0.4)
    for batch in made:
        for image, rows in zip(batch.data[0].asnumpy(), batch.label[0].asnumpy(), strict=True):
            check(image.transpose(1, 2, 0), rows[rows[:, 0] >= 0])


def records(folder: Path) -> str:
    """A file of records with the image, 24 times."""
    path, label = str(folder / "boxes.rec"), [2, 5, *BOXES.ravel()]
    with mx.recordio.MXRecordIO(path, "w") as file:
        for i in range(24):
            file.write(mx.recordio.pack((0, label, i, 0), opencv.encoded(IMAGE[..., ::-1], 3, ".png")))
    return path


CHANGES = {
    "none": {}, "mirrored": {"rand_mirror_prob": 0.5}, "padded": {"rand_pad_prob": 0.7, "max_pad_scale": 3},
    "cropped": {"rand_crop_prob": 1, "min_crop_scales": 0.5, "max_crop_scales": 0.9, "min_crop_aspect_ratios": 0.6,
                "max_crop_aspect_ratios": 1.6, "min_crop_object_coverages": 0.8},
    "cropped by overlap": {"rand_crop_prob": 1, "min_crop_scales": 0.5, "crop_emit_mode": "overlap"},
    "resized": {"resize": 80}, "fitting": {"resize_mode": "fit"}, "shrunk": {"resize_mode": "shrink"},
    "colours": {"random_contrast_prob": 1, "max_random_contrast": 0.1},
    "all": {"rand_mirror_prob": 0.5, "rand_pad_prob": 0.5, "max_pad_scale": 2, "rand_crop_prob": 0.5, "resize": 100,
            "min_crop_scales": 0.6}}


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_of_records(name: str, tmp_path: Path) -> None:
    made = mx.io.ImageDetRecordIter(path_imgrec=records(tmp_path), data_shape=(3, 100, 130), batch_size=24, seed=4,
                                    fill_value=0, **CHANGES[name])
    for _ in range(2):
        batch = next(made)
        for pixels, row in zip(batch.data[0].asnumpy(), batch.label[0].asnumpy(), strict=True):
            height, width = row[1:3].astype(int)
            check(pixels.transpose(1, 2, 0)[:height, :width], row[6:4 + int(row[3])].reshape(-1, 5))
        made.reset()
