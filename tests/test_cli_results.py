"""What `mxc run` reads and prints as people have it: archives, folders of pictures, names of classes, detections."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.class_names import read
from mxc.cli.main import BAD_FILE, OK, USAGE, main
from mxc.compiler.error import ModelFileError
from mxc.detections import as_data, of_outputs

MULTIBOX = {"_contrib_MultiBoxDetection"}
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory with models: `same` gives its input, `two` needs two inputs."""
    monkeypatch.chdir(tmp_path)
    data = mx.sym.Variable("data")
    mx.sym.BlockGrad(data, name="same").save("same-symbol.json")
    mx.sym.Group([data * 2, mx.sym.Variable("more") + 1]).save("two-symbol.json")


def ran(*arguments: str) -> dict[str, np.ndarray]:
    """The outputs of `mxc run`."""
    assert main(["run", *arguments, "-o", "ran.npz"]) == OK
    with np.load("ran.npz") as archive:
        return dict(archive)


# ---- archives

def test_an_archive_has_inputs_by_their_names(capsys: Captured):
    arrays = {"data": np.ones((2, 3), np.float32), "more": np.zeros((4,), np.float32), "other": np.ones(1)}
    np.savez("both.npz", **arrays)
    np.savez("expected.npz", **{"in/data": arrays["data"], "in/more": arrays["more"], "out/data": np.zeros((9, 9))})
    for name in "both.npz", "expected.npz", "@both.npz":
        first, second = ran("two-symbol.json", "--input", name).values()
        assert (first == 2).all() and first.shape == (2, 3) and second.tolist() == [1] * 4
    np.savez("one.npz", data=arrays["data"])
    assert [value.shape for value in ran("two-symbol.json", "--input", "one.npz", "--shape", "more=5").values()] == \
        [(2, 3), (5,)]


def test_what_is_written_is_an_input_again(capsys: Captured):
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save("data.npy", data)
    assert main(["run", "same-symbol.json", "--input", "data.npy", "-o", "out.npz"]) == OK
    assert (ran("same-symbol.json", "--input", "out.npz")["same_output"] == data).all()
    for text in "data=@out.npz", "data=out.npz", "data=@out.npz:same_output":
        assert (ran("same-symbol.json", "--input", text)["same_output"] == data).all()
    assert main(["verify", "same-symbol.json", "--input", "out.npz", "--save-expected", "known.npz"]) == OK
    assert main(["bench", "same-symbol.json", "--input", "known.npz", "--iterations", "1"]) == OK


def test_files_that_are_no_input(capsys: Captured):
    np.savez("none.npz", a=np.ones(2), b=np.ones(3))
    np.savez("empty.npz")
    np.save("data.npy", np.ones((2, 3)))
    np.savez("words.npz", data=np.array(["word"]))
    Path("text.txt").write_text("1 2 3")
    cases = [
        (["same-symbol.json", "--input", "none.npz"], USAGE, "it has a, b, and same-symbol.json takes data"),
        (["same-symbol.json", "--input", "none.npz"], USAGE, "say which is which: --input data=@none.npz:a"),
        (["same-symbol.json", "--input", "empty.npz"], USAGE, "it has nothing"),
        (["same-symbol.json", "--input", "data=none.npz"], USAGE, "none.npz has 2 arrays: a, b"),
        (["same-symbol.json", "--input", "data=none.npz:c"], USAGE, "none.npz has no array 'c'; it has a, b"),
        (["two-symbol.json", "--input", "data.npy"], USAGE, "which input is it? two-symbol.json takes data, more"),
        (["same-symbol.json", "--input", "data.npy", "--input", "data.npy"], USAGE, "it was given already"),
        (["same-symbol.json", "--input", "text.txt"], USAGE, "a picture or a folder of pictures"),
        (["same-symbol.json", "--input", "data=ones", "--input", "none.npz"], USAGE, "it has a, b"),
        (["same-symbol.json", "--input", "words.npz"], BAD_FILE, "data is no array of numbers: its dtype is <U4"),
        (["same-symbol.json", "--input", "no.npz"], BAD_FILE, "no.npz: cannot be read"),
        (["same-symbol.json", "--input", "data.npy", "--mean", "3"], USAGE, "--mean: it is for pictures"),
    ]
    for arguments, code, text in cases:
        assert main(["run", *arguments]) == code
        printed = capsys.readouterr().err
        assert text in printed and len(printed.splitlines()) == 2


# ---- pictures

@pytest.fixture
def photos() -> dict[str, np.ndarray]:
    """The folder `photos` of three pictures of 8 x 6 pixels, and what is in them."""
    cv2 = pytest.importorskip("cv2")
    Path("photos").mkdir()
    pixels = {f"{name}.png": np.random.default_rng(i).integers(0, 256, (6, 8, 3)).astype(np.uint8)
              for i, name in enumerate(("b", "a", "c"))}
    for name, each in pixels.items():
        cv2.imwrite(f"photos/{name}", each[..., ::-1])
    Path("photos/notes.txt").write_text("no picture")
    return dict(sorted(pixels.items()))


def test_a_folder_is_a_batch(photos: dict[str, np.ndarray], capsys: Captured):
    wanted = np.stack(list(photos.values())).astype(np.float32)
    for text in "photos", "data=@photos", "data=photos":
        assert (ran("same-symbol.json", "--input", text)["same_output"] == wanted.transpose(0, 3, 1, 2)).all()
    assert (ran("same-symbol.json", "--input", "photos", "--layout", "NHWC")["same_output"] == wanted).all()
    assert (ran("same-symbol.json", "--input", "photos", "--shape", "data=1,6,8,3")["same_output"] == wanted).all()
    assert ran("same-symbol.json", "--input", "photos", "--shape", "data=3,3,4,4")["same_output"].shape == (3, 3, 4, 4)
    capsys.readouterr()
    assert main(["run", "same-symbol.json", "--input", "photos", "--top", "1", "--json"]) == OK
    facts = json.loads(capsys.readouterr().out)["same_output"]
    assert facts["rows"] == list(photos) == ["a.png", "b.png", "c.png"] and len(facts["top"]) == 3


def test_pictures_are_prepared_as_mxnets_functions_do(photos: dict[str, np.ndarray], capsys: Captured):
    image = mx.image
    pixels = mx.nd.array(photos["a.png"], dtype="uint8")
    small = image.resize_short(pixels, 5, 9)
    cut, _ = image.center_crop(small, (4, 3))
    scaled = image.color_normalize(cut.astype("float32"), mx.nd.array([10, 20, 30]), mx.nd.array([2, 4, 5]))
    wanted = scaled.asnumpy().transpose(2, 0, 1)[None]
    given = ["--input", "data=photos/a.png", "--resize", "5", "--mean", "10,20,30", "--scale", "0.5,0.25,0.2"]
    for more in ["--crop", "3,4"], ["--shape", "data=1,3,3,4"]:
        found = ran("same-symbol.json", *given, *more)["same_output"]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    whole = ran("same-symbol.json", "--input", "photos/a.png", "--resize", "3,9")["same_output"]
    np.testing.assert_array_equal(whole[0].transpose(1, 2, 0), image.imresize(pixels, 9, 3, 1).asnumpy())
    grey = ran("same-symbol.json", "--input", "photos/a.png", "--shape", "data=1,1,6,8", "--mean", "100")["same_output"]
    np.testing.assert_allclose(grey[0, 0], image.imdecode(Path("photos/a.png").read_bytes(), 0).asnumpy()[..., 0]
                               - np.float32(100))


def test_an_artifact_says_the_size_of_pictures(photos: dict[str, np.ndarray], capsys: Captured):
    assert main(["compile", "same-symbol.json", "--shape", "data=2,3,4,5", "-o", "same.mxc"]) == OK
    found = ran("same.mxc", "--input", "photos")["same_output"]
    assert found.shape == (3, 3, 4, 5)  # three pictures on a plan for two
    assert (ran("same-symbol.json", "--shape", "data=1,3,4,5", "--input", "photos")["same_output"] == found).all()
    assert (ran("same.mxc", "--input", "photos/b.png")["same_output"] == found[1:2]).all()
    assert ran("same.mxc", "--input", "photos", "--resize", "6")["same_output"].shape == (3, 3, 4, 5)


def test_pictures_that_do_not_fit(photos: dict[str, np.ndarray], capsys: Captured):
    cv2 = pytest.importorskip("cv2")
    Path("mixed").mkdir()
    Path("none").mkdir()
    for i, width in enumerate((4, 5)):
        cv2.imwrite(f"mixed/{i}.png", np.zeros((4, width, 3), np.uint8))
    Path("broken").mkdir()
    Path("broken/a.jpg").write_text("no picture")
    cases = [
        (["--input", "mixed"], USAGE, "mixed/0.png is 4 x 4 pixels and mixed/1.png 5 x 4 pixels: give --shape"),
        (["--input", "none"], BAD_FILE, "none: expected a folder of pictures"),
        (["--input", "broken"], BAD_FILE, "broken/a.jpg: expected a picture"),
        (["--input", "photos", "--crop", "7"], USAGE, "a.png is 8 x 6 pixels then, less than 7 x 7"),
        (["--input", "photos", "--resize", "3", "--shape", "data=1,3,4,4"], USAGE, "4 x 3 pixels then, less than 4 x "),
        (["--input", "photos", "--shape", "data=2,3,4,4"], USAGE, "gives the shape (3, 3, 4, 4); --shape says (2, 3, "),
        (["--input", "photos", "--crop", "2", "--shape", "data=1,3,4,4"], USAGE, "gives the shape (3, 3, 2, 2); --sh"),
        (["--input", "photos", "--layout", "NCHW", "--shape", "data=1,4,4,3"], USAGE, "1 for grey, here NCHW; the"),
        (["--input", "data=photos", "--shape", "data=3,4"], USAGE, "a picture has the shape"),
    ]
    for arguments, code, text in cases:
        assert main(["run", "same-symbol.json", *arguments]) == code
        printed = capsys.readouterr().err
        assert text in printed and len(printed.splitlines()) == 2
    for option, value in (("--resize", "1,2,3"), ("--crop", "0"), ("--mean", "1,2"), ("--scale", "x"),
                          ("--layout", "HW")):
        with pytest.raises(SystemExit) as stop:
            main(["run", "same-symbol.json", "--input", "photos", option, value])
        assert stop.value.code == USAGE
    assert option in capsys.readouterr().err


def test_a_picture_that_is_cut_off_is_refused(photos: dict[str, np.ndarray], capsys: Captured):
    cv2 = pytest.importorskip("cv2")
    Path("cut").mkdir()
    mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc").save("fc-symbol.json")
    mx.nd.save("fc-0000.params", {"arg:fc_weight": mx.nd.ones((2, 192)), "arg:fc_bias": mx.nd.ones(2)})
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    whole = cv2.imencode(".jpg", pixels)[1].tobytes()
    for content, message in ((whole[:len(whole) // 2], "the picture is cut off: its end is missing"),
                             (whole[:-2], "the picture is cut off: its end is missing"),
                             (b"\xff\xd8\xff\xda\0\2\xff\xd9", "expected a picture; it looks like a JPEG")):
        Path("cut/a.jpg").write_bytes(content)
        for command in (["run", "same-symbol.json", "--input", "data=@cut/a.jpg"],
                        ["run", "same-symbol.json", "--input", "cut", "--shape", "data=1,3,8,8"],
                        ["compile", "fc-symbol.json", "--shape", "data=1,3,8,8", "--precision", "int8",
                         "--calibrate", "cut"]):
            assert main(command) == BAD_FILE
            assert f"cut/a.jpg: {message}" in capsys.readouterr().err
    Path("cut/a.jpg").write_bytes(whole)
    assert ran("same-symbol.json", "--input", "cut")["same_output"].shape == (1, 3, 40, 50)


# ---- names of classes

def test_names_of_classes_are_printed(capsys: Captured):
    np.save("data.npy", np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]], np.float32))
    Path("synset.txt").write_text("n01440764 tench, Tinca tinca\nn01443537 goldfish\ngreat white shark\n")
    command = ["run", "same-symbol.json", "--input", "data.npy", "--labels", "synset.txt", "--top", "2"]
    assert main(command) == OK
    _, first, second = capsys.readouterr().out.splitlines()
    assert first == "  row 0: goldfish: 0.7, great white shark: 0.2"
    assert second == "  row 1: tench, Tinca tinca: 0.5, great white shark: 0.3"
    assert main([*command, "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["same_output"]["names"][0] == ["goldfish", "great white shark"]
    Path("four.json").write_text(json.dumps(["a", "b", "c", "d"]))
    assert main(["run", "same-symbol.json", "--input", "data.npy", "--labels", "four.json"]) == OK
    assert capsys.readouterr().err == \
        "mxc run: note: --labels four.json has 4 names, and no output as many values in a row\n"


def test_files_of_names(tmp_path: Path):
    path = Path("names")
    for text in "a\nb\n", '["a", "b"]', '{"1": "b", "0": "a"}', "\na\r\nb":
        path.write_text(text)
        assert read("names") == ["a", "b"]
    for content, message in ((b"", "it is empty"), (b"a\n\nb", "line 2 is empty"), (b"[1, 2]", "a list of names"),
                             (b'{"a": "b"}', "numbers from 0 on"), (b"[", "a list of names"), (b"\xff\xfe", "UTF-8")):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=message):
            read("names")


# ---- detections

CLASSES = np.array([[0, 1, -1], [2, -1, -1]], np.float32)
SCORES = np.array([[0.25, 0.75, -1], [0.5, -1, -1]], np.float32)
BOXES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def three(classes: np.ndarray = CLASSES, scores: np.ndarray = SCORES, boxes: np.ndarray = BOXES) -> dict:
    return {"ids": classes[..., None], "scores": scores[..., None], "boxes": boxes}


def test_outputs_that_are_detections():
    rows = np.concatenate([CLASSES[..., None], SCORES[..., None], BOXES], axis=2)
    for outputs in three(), {"ids": CLASSES, "scores": SCORES, "boxes": BOXES}, {"rows": rows}:
        found = of_outputs(outputs, MULTIBOX)
        assert found is not None and found.outputs == tuple(outputs)
        assert found.best(0, 5) == [(1, 0.75, [4, 5, 6, 7]), (0, 0.25, [0, 1, 2, 3])] and found.count(1) == 1
        assert found.best(0, 1) == [(1, 0.75, [4, 5, 6, 7])]
    assert of_outputs({"rows": rows}, set()) is None
    for other in (three(CLASSES + 0.5), three(scores=SCORES * 2), three(CLASSES - 1), three(CLASSES * np.nan),
                  {"rows": rows + 0.5}, {"rows": rows[..., :5]}, {"boxes": BOXES}, three(boxes=BOXES[..., :3]),
                  {**three(), "more": BOXES}, {"ids": CLASSES[:, :2], "scores": SCORES, "boxes": BOXES}):
        assert of_outputs(other, MULTIBOX) is None


def test_detections_are_printed(capsys: Captured):
    names = ["ids", "scores", "boxes"]
    mx.sym.Group([mx.sym.BlockGrad(mx.sym.Variable(f"x{i}"), name=name) for i, name in enumerate(names)]).save(
        "found-symbol.json")
    np.savez("in.npz", **{f"x{i}": value for i, value in enumerate(three().values())})
    Path("names.txt").write_text("cat\ndog\nbird\n")
    command = ["run", "found-symbol.json", "--input", "in.npz", "--labels", "names.txt"]
    assert main(command) == OK
    assert capsys.readouterr().out == """\
ids_output: shape (2, 3, 1), float32
scores_output: shape (2, 3, 1), float32
boxes_output: shape (2, 3, 4), float32
row 0: 2 objects
class  score  left  top  right  bottom
dog    0.750     4    5      6       7
cat    0.250     0    1      2       3
row 1: 1 object
class  score  left  top  right  bottom
bird   0.500    12   13     14      15
"""
    assert main([*command, "--top", "1", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["detections"] == [
        {"found": 2, "best": [{"class": 1, "name": "dog", "score": 0.75, "box": [4, 5, 6, 7]}]},
        {"found": 1, "best": [{"class": 2, "name": "bird", "score": 0.5, "box": [12, 13, 14, 15]}]}]
    assert main([*command, "--top", "1"]) == OK
    assert "and 1 more" in capsys.readouterr().out
    assert main([*command, "--print"]) == OK
    assert "objects" not in capsys.readouterr().out


def test_boxes_that_are_no_numbers_are_text():
    found = of_outputs(three(boxes=BOXES * np.nan), set())
    assert found is not None
    assert as_data(found, 1, None, ["a.png", "b.png"])[0] == {
        "file": "a.png", "found": 2, "best": [{"class": 1, "score": 0.75, "box": ["nan"] * 4}]}


def test_rows_of_multibox_detection_are_printed(capsys: Captured):
    data = mx.sym.Variable("data")
    anchors = mx.sym.contrib.MultiBoxPrior(data, sizes=(0.3,))
    scores = mx.sym.softmax(mx.sym.Reshape(data, shape=(0, 2, -1)), axis=1)
    mx.sym.contrib.MultiBoxDetection(scores, mx.sym.zeros((1, 16)), anchors, name="found").save("box-symbol.json")
    np.save("data.npy", np.array([[0, 0, 0, 9], [1, 0, 0, 0]], np.float32).reshape(1, 2, 2, 2))
    wanted = "row 0: 3 objects"
    assert main(["run", "box-symbol.json", "--input", "data.npy"]) == OK
    assert wanted in capsys.readouterr().out
    assert main(["compile", "box-symbol.json", "--shape", "data=1,2,2,2", "-o", "box.mxc"]) == OK
    assert main(["run", "box.mxc", "--input", "data.npy"]) == OK
    assert wanted in capsys.readouterr().out
