"""`mx.io.ImageRecordIter` and its kin: programs without chance answer as MXNet 1.9.1 (golden/image_records.json), and
what is drawn at random."""
from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from test_pictures import difference

import mxc as mx
from mxc.base import MXNetError
from mxc.compiler.system import opencv
from mxc.runtime import jpeg

pytest.importorskip("cv2")
image_records = importlib.import_module("golden.image_records")
REAL = json.loads(image_records.PATH.read_text())
USUAL = image_records.USUAL


def test_every_program_is_recorded() -> None:
    assert REAL.keys() == set(image_records.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str) -> None:
    ours = json.loads(json.dumps(image_records.answer(mx, case)))
    assert difference(ours, REAL[case]) == ""


# ---- what is drawn at random

@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with records of 5 images, and `many.rec` with 40, where the test runs."""
    monkeypatch.chdir(tmp_path)
    image_records.image_calls.files(mx)
    with mx.recordio.MXRecordIO("many.rec", "w") as file:
        for i in range(40):
            encoded = list(image_records.image_calls.IMAGES.values())[i % 5]
            file.write(mx.recordio.pack((0, float(i), i, 0), encoded))
    return tmp_path


def batches(iterator) -> list[tuple[list[float], np.ndarray]]:
    return [(batch.label[0].asnumpy().tolist(), batch.data[0].asnumpy()) for batch in iterator]


def same(one, other) -> bool:
    return [a for a, _ in one] == [a for a, _ in other] and all(
        (a == b).all() for (_, a), (_, b) in zip(one, other, strict=True))


RANDOM = {"rand_crop": True, "rand_mirror": True, "max_rotate_angle": 20, "max_shear_ratio": 0.1,
          "max_aspect_ratio": 0.2, "min_random_scale": 0.8, "max_random_scale": 1.3, "random_h": 20, "random_s": 20,
          "random_l": 20, "brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "pca_noise": 0.1, "inter_method": 10,
          "max_random_contrast": 0.2, "max_random_illumination": 5, "shuffle": True, "seed": 5}


def test_batches_are_the_same_by_seed_however_many_threads_make_them(folder: Path) -> None:
    def passes(**more):
        made = mx.io.ImageRecordIter(**{**USUAL, "path_imgrec": "many.rec", "batch_size": 8, **RANDOM, **more})
        found = [batches(made)]
        made.reset()
        return [*found, batches(made)]

    one, many = passes(), passes(preprocess_threads=7, prefetch_buffer=1)
    assert all(map(same, one, many)) and not same(*one)
    for labels in ([n for batch, _ in each for n in batch] for each in one):
        assert sorted(labels) == list(range(40)) and labels != sorted(labels)
    other = passes(seed=6)
    assert [labels for labels, _ in other[0]] != [labels for labels, _ in one[0]]
    assert [a for a, _ in passes(seed_aug=6)[0]] == [a for a, _ in one[0]]
    assert not same(passes(seed_aug=6)[0], one[0])


@pytest.mark.parametrize("change", [
    {"rand_crop": True}, {"max_rotate_angle": 30}, {"max_shear_ratio": 0.3}, {"max_aspect_ratio": 0.5},
    {"min_random_scale": 0.8, "max_random_scale": 1.2}, {"random_h": 30}, {"random_s": 60}, {"random_l": 60},
    {"brightness": 0.5}, {"contrast": 0.5}, {"saturation": 0.5}, {"pca_noise": 0.5}, {"rand_mirror": True},
    {"max_random_contrast": 0.5}, {"max_random_illumination": 30}, {"min_crop_size": 6, "max_crop_size": 10},
    {"random_resized_crop": True, "min_random_area": 0.2, "max_random_area": 0.8, "max_aspect_ratio": 0.3},
    {"random_resized_crop": True, "min_random_area": 0.2, "min_aspect_ratio": 0.8, "max_aspect_ratio": 1.2}],
    ids=lambda change: "-".join(change))
def test_each_random_change_changes_images_otherwise_each_time(folder: Path, change: dict) -> None:
    plain = batches(mx.io.ImageRecordIter(**{**USUAL, "batch_size": 5}))
    made = mx.io.ImageRecordIter(**{**USUAL, "batch_size": 5, **change})
    found = [batches(made)]
    made.reset()
    found.append(batches(made))
    assert not same(found[0], found[1]) and not same(found[0], plain)
    data = found[0][0][1]
    assert data.shape == (5, 3, 9, 8) and np.isfinite(data).all() and data.std() > 10


def test_parts_are_apart_and_chunks_stay_together(folder: Path) -> None:
    found = []
    for part in range(3):
        made = mx.io.ImageRecordIter(**{**USUAL, "path_imgrec": "many.rec", "batch_size": 1, "num_parts": 3,
                                        "part_index": part, "shuffle": True})
        found.append([n for labels, _ in batches(made) for n in labels])
    assert sorted(n for part in found for n in part) == list(range(40))
    assert all(max(part) - min(part) == len(part) - 1 for part in found)
    made = mx.io.ImageRecordIter(**{**USUAL, "path_imgrec": "many.rec", "batch_size": 1, "shuffle": True,
                                    "shuffle_chunk_size": 1})
    assert sorted(n for labels, _ in batches(made) for n in labels) == list(range(40))


def test_a_pass_begins_anew_in_the_middle_and_goes_on_behind_a_full_batch(folder: Path) -> None:
    made = mx.io.ImageRecordIter(**USUAL)
    assert next(made).label[0].asnumpy().tolist() == [0, 1]
    made.reset()
    assert [(labels) for labels, _ in batches(made)] == [[0, 1], [2, 3], [4, 0]]
    made.reset()
    assert [(labels) for labels, _ in batches(made)] == [[1, 2], [3, 4]]
    kept = mx.io.ImageRecordIter(**USUAL, round_batch=False)
    assert [(b.label[0].asnumpy().tolist(), b.pad, b.index.tolist()) for b in kept][-1] == ([4, 4], 1, [4, 4])


def test_what_does_not_fit_is_refused(folder: Path) -> None:
    Path("other.rec").write_bytes(Path("plain.rec").read_bytes()[:-4])
    with mx.recordio.MXRecordIO("words.rec", "w") as file:
        file.write(mx.recordio.pack((0, 1.0, 77, 0), b"no image"))
    for arguments, text in (
            ({"data_shape": (3, 9)}, r"data_shape is \(channels, height, width\)"),
            ({"inter_method": 7}, "inter_method is 0 to 4, 9 or 10"),
            ({"path_imgrec": "other.rec"}, "other.rec, byte .* was cut off"),
            ({"path_imgrec": "one.lst"}, "one.lst, byte 0: expected 0xced7230a"),
            ({"path_imgrec": "words.rec"}, "words.rec: the record with the id 77: decoding an image"),
            ({"path_imglist": "plain.idx"}, "it has 0 labels; expected 1"),
            ({"min_crop_size": 9, "max_crop_size": 5}, "min_crop_size <= max_crop_size"),
            ({"num_parts": 900, "part_index": 899}, "no records in part 899 of 900"),
            ({"mean_img": "boxes.idx"}, "boxes.idx")):
        with pytest.raises(MXNetError, match=text):
            batches(mx.io.ImageRecordIter(**{**USUAL, **arguments}))


def test_a_module_learns_from_records(folder: Path) -> None:
    made = mx.io.ImageRecordIter(**{**USUAL, "path_imgrec": "many.rec", "batch_size": 10, "rand_mirror": True})
    net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=40), name="softmax")
    module = mx.mod.Module(net)
    module.fit(made, num_epoch=1, optimizer_params={"learning_rate": 1e-5})
    assert module.score(made, "acc")[0][0] == "accuracy"


# ---- images with boxes

WITH_BOXES = {**USUAL, "path_imgrec": "boxes.rec", "batch_size": 5, "data_shape": (3, 30, 40)}


@pytest.mark.parametrize("change", [
    {"rand_mirror_prob": 0.5}, {"rand_pad_prob": 0.7, "max_pad_scale": 3}, {"random_hue_prob": 1, "max_random_hue": 40},
    {"random_saturation_prob": 1, "max_random_saturation": 60}, {"random_contrast_prob": 1, "max_random_contrast": 0.5},
    {"random_illumination_prob": 1, "max_random_illumination": 60},
    {"rand_crop_prob": 1, "min_crop_scales": 0.4, "max_crop_scales": 0.9, "min_crop_aspect_ratios": 0.5,
     "max_crop_aspect_ratios": 2.0},
    {"rand_crop_prob": 1, "num_crop_sampler": 2, "min_crop_scales": (0.3, 0.6), "min_crop_object_coverages": 0.4,
     "crop_emit_mode": "overlap", "max_crop_trials": (50, 20)}], ids=lambda change: "-".join(change))
def test_each_random_change_of_boxes_keeps_them_in_the_image(folder: Path, change: dict) -> None:
    def passes(**more):
        made = mx.io.ImageDetRecordIter(**{**WITH_BOXES, **change, **more})
        found = [batches(made)]
        made.reset()
        return [*found, batches(made)]

    one, again = passes(), passes(preprocess_threads=3)
    assert all(map(same, one, again)) and not same(*one)
    for labels, data in one[0]:
        assert data.shape == (5, 3, 30, 40) and data.std() > 10
        for row in np.array(labels):
            boxes = row[6:4 + int(row[3])].reshape(-1, 5)
            assert row[:3].tolist() == [3, 30, 40] and row[4:6].tolist() == [2, 5] and len(boxes)
            assert ((boxes[:, 1:] >= 0) & (boxes[:, 1:] <= 1)).all() and (boxes[:, 3:] > boxes[:, 1:3]).all()
            assert (row[4 + int(row[3]):] == -1).all()


def test_what_does_not_fit_boxes_is_refused(folder: Path) -> None:
    for arguments, text in (
            ({"label_pad_width": 3}, "label_pad_width is 3; expected 0 or at least 17"),
            ({"resize_mode": "some"}, "resize_mode is 'some': expected force or shrink or fit"),
            ({"path_imgrec": "plain.rec"}, "plain.rec: the record with the id 0: a label of boxes has 7 numbers"),
            ({"label_width": 7}, "the record with the id 1 has 12 labels; expected 7"),
            ({"num_crop_sampler": 2, "min_crop_scales": (0.1, 0.2, 0.3)}, "min_crop_scales has 3 numbers; expected 1")):
        with pytest.raises(MXNetError, match=text):
            batches(mx.io.ImageDetRecordIter(**{**WITH_BOXES, **arguments}))


@pytest.mark.parametrize("change", [
    {"rand_crop": True, "rand_mirror": True}, {"mirror": True}, {"rand_crop": True, "random_h": 20, "contrast": 0.3},
    {"random_resized_crop": True, "min_random_area": 0.2, "max_aspect_ratio": 0.3, "rand_mirror": True},
    {"min_crop_size": 6, "max_crop_size": 10, "inter_method": 10}, {"data_shape": (3, 30, 20), "rand_crop": True},
    {"random_resized_crop": True, "min_random_area": 9, "max_random_area": 9, "data_shape": (3, 30, 20)},
    {"resize": 20, "rand_crop": True}, {"dtype": "uint8", "rand_crop": True}], ids=lambda change: "-".join(change))
def test_whoever_decodes_batches_are_the_same(change: dict, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def passes():
        more = {"path_imgrec": "many.rec", "batch_size": 8, "seed": 3, **change}
        return batches(mx.io.ImageRecordIter(**{**USUAL, **more}))

    ours = passes()
    with monkeypatch.context() as patch:
        patch.setattr(jpeg.Decoder, "part", lambda *_: False)  # as of damaged pictures
        assert same(passes(), ours)
    monkeypatch.setattr(jpeg, "head", lambda _: None)
    assert same(passes(), ours)


def test_a_turn_that_a_camera_noted_is_left_to_iterators():
    """As in MXNet: ImageRecordIter turns such a picture, what decodes one by itself does not."""
    plain = mx.recordio.pack_img((0, 0.0, 0, 0), np.zeros((6, 8, 3), np.uint8), quality=95)
    encoded = mx.recordio.unpack(plain)[1]
    # TIFF 6.0: byte order, 42, the place of the directory; one entry: orientation (0x0112), a SHORT, 6
    noted = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    turned = encoded[:2] + b"\xff\xe1" + (len(noted) + 2).to_bytes(2, "big") + noted + encoded[2:]
    assert mx.image.imdecode(turned).shape == mx.image.imdecode(encoded).shape == (6, 8, 3)
    assert opencv.decoded(turned, 1).shape == (8, 6, 3)
