"""What augmenters and ImageRecordIter draw at random has the distribution that they say, by fixed seeds.

Pictures say where each of their pixels was: red is 4 times its column, green 4 times its row.
"""
from __future__ import annotations

import collections
import itertools
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.compiler.ops.pictures import DIRECTIONS, VARIANCES
from mxc.compiler.system import opencv

pytest.importorskip("cv2")
stats = pytest.importorskip("scipy.stats")
LEAST = 1e-3  # the probability below which numbers are none of a distribution; seeds are fixed, so it is met or not
SIDE, STEP = 60, 4
PLACES = np.stack([*np.meshgrid(np.arange(SIDE), np.arange(SIDE)), np.full((SIDE, SIDE), 30)], 2)
PLACES = (PLACES * STEP).astype(np.uint8)


def evenly(found: Sequence[object], values: Sequence[object]) -> None:
    """Each of the values is as likely."""
    counts = collections.Counter(found)
    assert set(counts) == set(values), sorted(counts.items(), key=str)
    assert stats.chisquare([counts[value] for value in values]).pvalue > LEAST


def uniform(found: Sequence[float], low: float, high: float) -> None:
    """Numbers between the two, each as likely."""
    assert low - 1e-6 <= min(found) and max(found) <= high + 1e-6, (min(found), max(found))
    assert stats.kstest(found, "uniform", (low, high - low)).pvalue > LEAST


def with_probability(found: Sequence[bool], p: float) -> None:
    assert stats.binomtest(sum(found), len(found), p).pvalue > LEAST


# ---- mx.image

IMAGE = mx.nd.array(PLACES.astype(np.float32))


def made_by(augmenter: Callable, image: np.ndarray = PLACES, times: int = 400) -> list[np.ndarray]:
    """What an augmenter makes of an image, float32, again and again."""
    random.seed(3)
    np.random.seed(3)
    return [augmenter(mx.nd.array(image.astype(np.float32))).asnumpy() for _ in range(times)]


def test_crops_are_everywhere() -> None:
    found = made_by(mx.image.RandomCropAug((52, 55)), times=900)
    evenly([int(each[0, 0, 0]) // STEP for each in found], range(9))
    evenly([int(each[0, 0, 1]) // STEP for each in found], range(6))
    boxes = []
    random.seed(4)
    for _ in range(400):
        boxes.append(mx.image.random_size_crop(mx.nd.zeros((300, 400, 3)), (8, 8), (0.2, 0.5), (0.75, 4 / 3))[1])
    uniform([w * h / 120000 for _, _, w, h in boxes if 0.2 <= w * h / 120000 <= 0.5], 0.2, 0.5)
    ratios = [math.log(w / h) for _, _, w, h in boxes]
    assert stats.kstest(ratios, "uniform", (math.log(0.75), 2 * math.log(4 / 3))).pvalue > LEAST
    uniform([x / (400 - w) for x, _, w, _ in boxes], 0, 1)
    uniform([y / (300 - h) for _, y, _, h in boxes], 0, 1)


def test_flips_and_greys_have_their_probability() -> None:
    with_probability([each[0, 0, 0] > 0 for each in made_by(mx.image.HorizontalFlipAug(0.3))], 0.3)
    with_probability([np.ptp(each, axis=2).max() < 1e-3 for each in made_by(mx.image.RandomGrayAug(0.2))], 0.2)


def test_factors_of_colours() -> None:
    pair = np.array([[[10, 20, 30], [50, 60, 70]]])
    found = made_by(mx.image.BrightnessJitterAug(0.4), pair)
    uniform([each[0, 0, 1] / 20 for each in found], 0.6, 1.4)
    found = made_by(mx.image.ContrastJitterAug(0.3), pair)
    uniform([(each[0, 1, 0] - each[0, 0, 0]) / 40 for each in found], 0.7, 1.3)
    means = [each @ np.array([0.299, 0.587, 0.114], np.float32) for each in found]
    np.testing.assert_allclose([each.mean() for each in means], np.mean(means[0]), rtol=1e-4)  # which stays
    found = made_by(mx.image.SaturationJitterAug(0.5), pair)
    uniform([(each[0, 0, 2] - each[0, 0, 0]) / 20 for each in found], 0.5, 1.5)
    turns = []
    for each in made_by(mx.image.HueJitterAug(0.25), pair):
        was, now = ([complex(*axes) for axes in (pixels @ mx.image.HueJitterAug(0).tyiq.T)[0, :, 1:]]
                    for pixels in (pair, each))
        turns.append(np.angle(now[0] / was[0]))
    assert max(map(abs, turns)) < math.pi / 4 + 0.03  # the matrices are each other's inverse to two digits
    assert stats.kstest(turns, "uniform", (-math.pi / 4, math.pi / 2)).pvalue > LEAST
    found = [np.linalg.solve(np.array(DIRECTIONS), each[0, 0] - 100) / VARIANCES
             for each in made_by(mx.image.LightingAug(0.1, np.array(VARIANCES), np.array(DIRECTIONS)),
                                 np.full((1, 1, 3), 100))]
    for numbers in np.array(found).T:
        assert stats.kstest(numbers, "norm", (0, 0.1)).pvalue > LEAST


def test_choices_among_several() -> None:
    class Said(mx.image.Augmenter):
        def __init__(self, name: str):
            self.name = name

        def __call__(self, src: list) -> list:
            return [*src, self.name]

    random.seed(5)
    several = mx.image.RandomOrderAug([Said(name) for name in "abc"])
    evenly(["".join(several([])) for _ in range(600)], ["".join(each) for each in itertools.permutations("abc")])
    evenly([mx.image.image._get_interp_method(10) for _ in range(500)], range(5))

    class Boxes(mx.image.DetAugmenter):
        def __init__(self, name: str):
            self.name = name

        def __call__(self, src: str, label: object) -> tuple[str, object]:
            return self.name, label

    one_of = mx.image.DetRandomSelectAug([Boxes(name) for name in "abc"], skip_prob=0.25)
    evenly([one_of("none", None)[0] for _ in range(800)], ["a", "b", "c", "none"])
    image = mx.nd.array([[[1.0], [2.0]]])
    turned = [mx.image.DetHorizontalFlipAug(0.7)(image, np.zeros((1, 5)))[0][0, 0, 0].asscalar() for _ in range(300)]
    with_probability([value == 2 for value in turned], 0.7)


def test_the_usual_list_changes_as_its_arguments_say() -> None:
    random.seed(6)
    augmenters = mx.image.CreateAugmenter((3, 50, 50), rand_crop=True, rand_mirror=True, mean=np.array([STEP] * 3),
                                          std=np.array([STEP] * 3))
    found = []
    for _ in range(500):
        image = mx.nd.array(PLACES, dtype="uint8")
        for each in augmenters:
            image = each(image)
        found.append(image.asnumpy())
    turned = [each[0, 0, 0] > each[0, -1, 0] for each in found]
    with_probability(turned, 0.5)
    evenly([round(min(each[0, 0, 0], each[0, -1, 0])) + 1 for each in found], range(11))
    evenly([round(each[0, 0, 1]) + 1 for each in found], range(11))


# ---- ImageRecordIter

def drawn(folder: Path, image: np.ndarray = PLACES, size: int = 50, times: int = 500, ending: str = ".png",
          **more: object) -> np.ndarray:
    """What ImageRecordIter makes of an image as often as that, (times, channels, size, size)."""
    path = str(folder / "one.rec")
    with mx.recordio.MXRecordIO(path, "w") as file:
        encoded = opencv.encoded(image[..., ::-1], 100 if ending == ".jpg" else 3, ending)
        for i in range(times):
            file.write(mx.recordio.pack((0, 0.0, i, 0), encoded))
    made = mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, size, size), batch_size=times, seed=9, **more)
    return next(made).data[0].asnumpy()


@pytest.mark.parametrize("ending", [".png", ".jpg"])  # mxc decodes the second of these itself
def test_parts_of_records_are_everywhere(ending: str, tmp_path: Path) -> None:
    found = np.rint(drawn(tmp_path, ending=ending, rand_crop=True, rand_mirror=True) / STEP)
    turned = found[:, 0, 5, 0] > found[:, 0, 5, -1]
    with_probability(turned.tolist(), 0.5)
    columns, rows = np.where(turned, found[:, 0, 5, -1], found[:, 0, 5, 0]), found[:, 1, 0, 5]
    evenly(columns.tolist(), range(11))
    evenly(rows.tolist(), range(11))
    assert abs(np.corrcoef([turned, columns, rows])[np.triu_indices(3, 1)]).max() < 0.15


def slopes(found: np.ndarray) -> np.ndarray:
    """Of each picture how many columns and rows of the original, (times, 2, ...), a step to the right and one down go:
    the regression over its middle."""
    middle = found[:, :2, 10:-10, 10:-10] / STEP
    steps = np.arange(middle.shape[3]) - (middle.shape[3] - 1) / 2
    return np.stack([middle.mean(axis) @ steps / (steps @ steps) for axis in (2, 3)], 2)


def test_turns_scales_and_proportions(tmp_path: Path) -> None:
    turned = slopes(drawn(tmp_path, max_rotate_angle=6, size=40))
    evenly(np.rint(np.degrees(np.arctan2(turned[:, 1, 0], turned[:, 0, 0]))).tolist(), range(-6, 7))
    scaled = 1 / slopes(drawn(tmp_path, min_random_scale=1.0, max_random_scale=1.6))[:, 0, 0]
    assert stats.kstest(scaled, "uniform", (1.0, 0.6)).pvalue > LEAST and scaled.max() < 1.63
    sheared = slopes(drawn(tmp_path, max_shear_ratio=0.3, size=40))[:, 0, 1]
    assert stats.kstest(sheared, "uniform", (-0.3, 0.6)).pvalue > LEAST and abs(sheared).max() < 0.32
    parts = slopes(drawn(tmp_path, max_aspect_ratio=0.25, size=40))
    ratios = parts[:, 0, 0] / parts[:, 1, 1]
    assert stats.kstest(ratios, "uniform", (0.75, 0.5)).pvalue > LEAST and 0.72 < ratios.min() < ratios.max() < 1.28


def test_parts_of_random_sizes(tmp_path: Path) -> None:
    sizes = slopes(drawn(tmp_path, min_crop_size=30, max_crop_size=40, size=60, rand_crop=True))[:, 0, 0] * 60
    evenly(np.rint(sizes).tolist(), range(30, 41))
    parts = slopes(drawn(tmp_path, random_resized_crop=True, min_random_area=0.2, max_random_area=0.5, size=60,
                         min_aspect_ratio=0.75, max_aspect_ratio=1.25))
    wide, high = parts[:, 0, 0] * 60, parts[:, 1, 1] * 60
    for found, low, high_end in ((wide * high / SIDE ** 2, 0.2, 0.5), (wide / high, 0.75, 1.25)):
        assert stats.kstest(found, "uniform", (low, high_end - low)).pvalue > LEAST, low


def test_colours_of_records(tmp_path: Path) -> None:
    flat = np.full((16, 16, 3), 100, np.uint8)
    halves = flat.copy()
    halves[8:] = 150
    tinted = flat.copy()
    tinted[..., 2] = 160
    for image, option, most, number in (
            (flat, "brightness", 0.4, lambda each: each[:, 0, 0, 0] / 100),
            (halves, "contrast", 0.4, lambda each: (each[:, 0, 15, 0] - each[:, 0, 0, 0]) / 50),
            (tinted, "saturation", 0.5, lambda each: (each[:, 2, 0, 0] - each[:, 0, 0, 0]) / 60),
            (flat, "max_random_contrast", 0.3, lambda each: each[:, 0, 0, 0] / 100),
            (flat, "max_random_illumination", 20, lambda each: each[:, 0, 0, 0] / 20 - 5 + 1),
            (flat, "random_l", 40, lambda each: (each[:, 0, 0, 0] - 100) / 40 + 1)):
        found = number(drawn(tmp_path, image, 16, **{option: most}))
        width = 1 if most > 1 else most
        assert abs(found - 1).max() < width + 0.03 and abs(found.mean() - 1) < width / 8, option
        assert abs(found.std() - width / math.sqrt(3)) < width / 10, option
        assert stats.kstest(found + np.random.RandomState(0).uniform(-0.01, 0.01, len(found)), "uniform",
                            (1 - width, 2 * width)).pvalue > LEAST, option
    moves = drawn(tmp_path, np.full((16, 16, 3), 128, np.uint8), 16, pca_noise=0.2)[:, :, 0, 0] + 0.5 - 128
    alpha = np.linalg.solve(np.array(DIRECTIONS), moves.T).T[:, 0] / VARIANCES[0]
    assert stats.kstest(alpha, "norm", (0, 0.2)).pvalue > LEAST
    hues = drawn(tmp_path, np.full((16, 16, 3), (50, 200, 50), np.uint8), 16, random_h=20)[:, :, 0, 0]
    turns = np.rint((hues[:, 2] - hues[:, 0]) / 5).astype(int)  # whole parts of 2 degrees; 0 stands for -0.9 to 0.9
    evenly([turn for turn in turns.tolist() if turn], [turn for turn in range(-19, 20) if turn])
    assert 5 < (turns == 0).sum() < 60


def test_orders_are_as_likely(tmp_path: Path) -> None:
    path = str(tmp_path / "few.rec")
    with mx.recordio.MXRecordIO(path, "w") as file:
        for i in range(4):
            file.write(mx.recordio.pack((0, float(i), i, 0), opencv.encoded(PLACES[:8, :8], 3, ".png")))
    made = mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=4, shuffle=True, seed=2)
    orders = []
    for _ in range(480):
        orders.append(tuple(next(made).label[0].asnumpy().astype(int).tolist()))
        made.reset()
    evenly(orders, list(itertools.permutations(range(4))))
