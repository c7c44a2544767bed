"""`mx.image`: short programs answer what MXNet 1.9.1 does (golden/image_calls.json), and what is mxc's own."""
from __future__ import annotations

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError

pytest.importorskip("cv2")
image_calls = importlib.import_module("golden.image_calls")
REAL = json.loads(image_calls.PATH.read_text())


def difference(ours, theirs, place: str = "") -> str:
    """Where the answers differ first, or "": numbers may in their last digits; an error is to be of MXNet's class."""
    if isinstance(theirs, dict) and "error" in theirs:
        fine = isinstance(ours, dict) and theirs["error"][0] in ours.get("error", ())
        return "" if fine else f"{place}: {ours}, not {theirs}"
    if isinstance(theirs, (list, dict)) and type(ours) is type(theirs) and len(ours) == len(theirs):
        keys = theirs if isinstance(theirs, dict) else range(len(theirs))
        return next(filter(None, (difference(ours[k], theirs[k], f"{place}/{k}") for k in keys)), "")
    if isinstance(theirs, float) and isinstance(ours, float):
        return "" if math.isclose(ours, theirs, rel_tol=1e-5, abs_tol=2e-3) else f"{place}: {ours}, not {theirs}"
    return "" if type(ours) is type(theirs) and ours == theirs else f"{place}: {ours}, not {theirs}"


def test_every_program_is_recorded() -> None:
    assert REAL.keys() == set(image_calls.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str) -> None:
    ours = json.loads(json.dumps(image_calls.answer(mx, case)))
    assert difference(ours, REAL[case]) == ""


# ---- what is mxc's own

@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all images, records and lists, where the test runs."""
    monkeypatch.chdir(tmp_path)
    image_calls.files(mx)
    return tmp_path


def labels(iterator) -> list[float]:
    return [number for batch in iterator for number in batch.label[0].asnumpy().ravel().tolist()]


def test_a_batch_is_filled_up_again_and_again_from_few_images(folder: Path) -> None:
    few = mx.image.ImageIter(12, (3, 20, 24), **image_calls.RECORDS)
    assert labels(few) == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1] and labels(few) == []
    few.hard_reset()
    assert next(few).pad == 7


@pytest.mark.parametrize(("kind", "arguments", "text"), [
    ("ImageIter", {"last_batch_handle": "some"}, "last_batch_handle is one of pad, discard, roll_over; got 'some'"),
    ("ImageIter", {"path_imgrec": "none.rec"}, r"none\.rec: cannot be read"),
    ("ImageIter", {"path_imgrec": None, "path_imglist": "plain.idx"}, "line 1 is .*; expected a number, labels, and"),
    ("ImageIter", {"path_imgrec": None, "imglist": [["a.jpg"]]}, "expected labels and the name of a file"),
    ("ImageIter", {"label_width": 2}, "an image has 1 labels; expected 2, as label_width says"),
    ("ImageIter", {"aug_list": []}, r"augmenters gave an image of the shape \(3, 24, 33\); expected \(3, 20, 24\)"),
    ("ImageIter", {"path_imgrec": None, "imglist": [[1, "one.lst"]]}, "the image with the key '1' of one.lst: dec"),
    ("ImageIter", {"path_imgrec": None, "imglist": [[1, "none.jpg"]]}, "none.jpg: cannot be read"),
    ("ImageDetIter", {}, "labels of boxes have 7 numbers or more, got 1")])
def test_what_does_not_fit_is_refused(folder: Path, kind: str, arguments: dict, text: str) -> None:
    with pytest.raises(MXNetError, match=text):
        given = {"batch_size": 2, "data_shape": (3, 20, 24), "path_imgrec": "plain.rec", **arguments}
        list(getattr(mx.image, kind)(**given))


def test_an_image_that_is_not_valid_is_left_out(folder: Path) -> None:
    class Picky(mx.image.ImageIter):
        def check_valid_image(self, data) -> None:
            if data[0].shape[0] > 30:
                raise RuntimeError("too high")

    assert labels(Picky(2, (3, 10, 10), path_imgrec="plain.rec")) == [0, 2, 3, 4]


def test_boxes_are_drawn(folder: Path) -> None:
    it = mx.image.ImageDetIter(2, (3, 60, 80), path_imgrec="boxes.rec", mean=True, std=True)
    drawn = list(it.draw_next(color=(255, 0, 0), mean=True, std=True, id2labels={0: "a"}))
    assert len(drawn) == 5 and drawn[0].shape == (60, 80, 3) and drawn[0].dtype == np.uint8
    assert (drawn[0][6, 8:40] == (255, 0, 0)).all()


def test_operators_of_images_that_are_read(folder: Path) -> None:
    internal = mx.nd._internal
    whole = internal._cvimread("wide.jpg", flag=1)
    out = mx.nd.zeros(whole.shape, dtype="uint8")
    assert internal._cvimdecode(mx.nd.array(np.frombuffer(image_calls.WIDE, np.uint8), dtype="uint8"), out=out) is out
    np.testing.assert_array_equal(whole.asnumpy(), out.asnumpy())
    with pytest.raises(MXNetError, match="out has"):
        internal._cvimread("tall.jpg", out=out)
    with pytest.raises(MXNetError, match=r"one\.lst: decoding an image"):
        internal._cvimread("one.lst")


def test_resizing_in_a_graph_is_a_step_of_the_host() -> None:
    data = np.random.default_rng(0).integers(0, 255, (40, 50, 3)).astype("uint8")
    symbol = mx.sym.image.to_tensor(mx.sym.image.resize(mx.sym.Variable("data"), size=(20, 10)))
    bound = symbol.bind(mx.cpu(), {"data": mx.nd.array(data, dtype="uint8")}, grad_req="null")
    expected = mx.nd.image.to_tensor(mx.image.imresize(mx.nd.array(data, dtype="uint8"), 20, 10))
    np.testing.assert_allclose(bound.forward()[0].asnumpy(), expected.asnumpy(), rtol=1e-6)


def test_random_changes_differ_from_call_to_call_and_are_the_same_by_seed() -> None:
    image = mx.nd.array(np.random.default_rng(0).integers(0, 255, (60, 80, 3)), dtype="uint8")
    changes = {"random_brightness": (0.5, 1.5), "random_contrast": (0.5, 1.5), "random_saturation": (0.5, 1.5),
               "random_hue": (0.5, 1.5), "random_color_jitter": (0.4, 0.4, 0.4, 0.4), "random_lighting": (1.0,)}
    for name, arguments in changes.items():
        found = []
        for _ in range(2):
            mx.random.seed(3)
            found.append([getattr(mx.nd.image, name)(image, *arguments).asnumpy() for _ in range(3)])
        np.testing.assert_array_equal(found[0], found[1])
        assert (found[0][0] != found[0][1]).any(), name
    as_it_is = image.asnumpy()
    for flip, flipped in ((mx.nd.image.random_flip_left_right, as_it_is[:, ::-1]),
                          (mx.nd.image.random_flip_top_bottom, as_it_is[::-1])):
        flips = [flip(image).asnumpy() for _ in range(40)]
        assert 5 < sum((each == as_it_is).all() for each in flips) < 35
        assert all((each == as_it_is).all() or (each == flipped).all() for each in flips)


def test_a_jpeg_that_is_cut_off_is_read_as_far_as_it_goes():
    cv2 = pytest.importorskip("cv2")
    picture = cv2.GaussianBlur(np.random.default_rng(0).integers(0, 256, (300, 200, 3)).astype("uint8"), (0, 0), 5)
    content = cv2.imencode(".jpg", picture)[1].tobytes()
    whole = mx.image.imdecode(content).asnumpy()
    for cut in (1, 2):
        np.testing.assert_array_equal(mx.image.imdecode(content[:-cut]).asnumpy(), whole)
    half = mx.image.imdecode(content[:len(content) // 2]).asnumpy()
    assert half.shape == whole.shape and (half[:80] == whole[:80]).all() and (half[-8:] == 128).all()
    with pytest.raises(mx.MXNetError, match="expected the bytes of an image"):
        mx.image.imdecode(content[:2])
