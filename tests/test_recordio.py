"""`mx.recordio`: short programs answer, write and raise what MXNet 1.9.1 does (golden/recordio_calls.json), and what is
mxc's own."""
from __future__ import annotations

import importlib
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.compiler.error import ModelFileError

recordio_calls = importlib.import_module("golden.recordio_calls")
REAL = json.loads(recordio_calls.PATH.read_text())
WORD, RECORDS = recordio_calls.WORD, recordio_calls.RECORDS


def same(ours, theirs) -> bool:
    """Equal, and an error for an error: where MXNet lets struct.error out, any of ours."""
    if isinstance(theirs, dict) and "error" in theirs:
        return isinstance(ours, dict) and (theirs["error"][0] in ours["error"] or theirs["error"] == ["error"])
    if isinstance(theirs, list) and isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


def test_every_program_is_recorded() -> None:
    assert REAL.keys() == set(recordio_calls.CASES)


@pytest.mark.parametrize("case", REAL)
def test_answers_as_mxnet(case: str) -> None:
    ours = recordio_calls.answer(mx, case)
    assert same(ours, REAL[case]), (ours, REAL[case])


@pytest.mark.parametrize(("content", "offset", "text"), [
    (recordio_calls.damaged()["cut"], 0, "expected a record of 8 bytes, but 6 are left"),
    (recordio_calls.damaged()["cut in the head"], 16, "expected 8 bytes that begin a record, but 4 are left"),
    (recordio_calls.damaged()["another magic"], 0, "expected 0xced7230a, which begins a record, got 0xced72300"),
    (recordio_calls.damaged()["longer"], 0, "expected a record of 536870912 bytes, but 0 are left"),
    (WORD + struct.pack("<I", 3 << 29), 0, "expected the part flag 0 or 1, got 3"),
    (WORD + struct.pack("<I", 5 << 29), 0, "expected the part flag 0 or 1, got 5"),
    (WORD + struct.pack("<I", 1 << 29), 8, "expected 8 bytes that begin a record part, but 0 are left"),
    (WORD + struct.pack("<I", 1 << 29) + WORD + struct.pack("<I", 0), 8, "expected the part flag 2 or 3, got 0")])
def test_damaged_files_are_refused_with_their_place(tmp_path: Path, content: bytes, offset: int, text: str) -> None:
    path = tmp_path / "damaged.rec"
    path.write_bytes(content)
    with mx.recordio.MXRecordIO(str(path), "r") as reader, pytest.raises(ModelFileError) as caught:
        while reader.read() is not None:
            pass
    assert text in str(caught.value) and str(path) in str(caught.value) and caught.value.offset == offset


@pytest.mark.parametrize("text", ["1 0\n", "\n", "a\t0\n", "1\tx\n", "1\t-4\n", "1\n"])
def test_a_damaged_index_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.rec").write_bytes(b"")
    (tmp_path / "a.idx").write_text("0\t0\n" + text)
    with pytest.raises(MXNetError, match=r"a\.idx: line 2 is .*; expected a key, a tabulator and the byte"):
        mx.recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "r")
    with pytest.raises(MXNetError, match=r"none\.idx: cannot be read"):
        mx.recordio.MXIndexedRecordIO(str(tmp_path / "none.idx"), str(tmp_path / "a.rec"), "r")


def test_files_at_urls() -> None:
    pytest.importorskip("fsspec")
    with mx.recordio.MXIndexedRecordIO("memory://some.idx", "memory://some.rec", "w") as writer:
        for i, record in enumerate(RECORDS):
            writer.write_idx(i, record)
    reader = mx.recordio.MXIndexedRecordIO("memory://some.idx", "memory://some.rec", "r")
    assert [reader.read_idx(i) for i in reversed(reader.keys)] == RECORDS[::-1]
    with pytest.raises(MXNetError, match="memory://none"):
        mx.recordio.MXRecordIO("memory://none", "r")


def test_a_writer_is_not_pickled_for_it_would_be_emptied(tmp_path: Path) -> None:
    writer = mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "w")
    writer.write(b"kept")
    with pytest.raises(MXNetError, match="is not pickled; close it first"):
        pickle.dumps(writer)
    writer.close()
    pickle.loads(pickle.dumps(writer))
    assert mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "r").read() == b"kept"
    with pytest.raises(RuntimeError, match="Forbidden operation in multiple processes"):
        writer.write(b"more")


def test_a_record_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mxc.runtime.record_file.LENGTH_BITS", 4)
    with mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "w") as writer, pytest.raises(ValueError, match="less than 2"):
        writer.write(bytes(16))


def test_images_in_records() -> None:
    pytest.importorskip("cv2")
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    header, again = mx.recordio.unpack_img(mx.recordio.pack_img((0, [1, 2], 3, 0), image, 3, ".png"))
    np.testing.assert_array_equal(again, image)
    assert header.id == 3 and header.label.tolist() == [1, 2]
    near = mx.recordio.unpack_img(mx.recordio.pack_img((0, 1, 3, 0), image))[1]
    assert near.shape == image.shape and np.abs(near.astype(int) - image).max() < 30
    grey = mx.recordio.pack_img((0, 1, 3, 0), image[..., 0], 3, ".png")
    assert mx.recordio.unpack_img(grey)[1].shape == (4, 5) and mx.recordio.unpack_img(grey, 1)[1].shape == (4, 5, 3)
    for call in (lambda: mx.recordio.unpack_img(mx.recordio.pack((0, 1, 2, 3), b"no image")),
                 lambda: mx.recordio.unpack_img(mx.recordio.pack((0, 1, 2, 3), b"")),
                 lambda: mx.recordio.pack_img((0, 1, 2, 3), image, img_fmt=".none")):
        with pytest.raises(MXNetError, match="coding an image"):
            call()


def test_without_opencv_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mxc.compiler.system.opencv._library", None)
    monkeypatch.setitem(__import__("sys").modules, "cv2", None)
    with pytest.raises(MXNetError, match=r"pip install 'mxc-compiler\[image\]'"):
        mx.recordio.pack_img((0, 1, 2, 3), np.zeros((2, 2, 3), np.uint8))
