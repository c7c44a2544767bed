"""Iterators over files: blocks, errors that name the line, files that are cut, packed or at a URL."""
from __future__ import annotations

import gzip
import importlib
import logging
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError

io_calls = importlib.import_module("golden.io_calls")
text_rows, batch_loader, built_in, mnist = (importlib.import_module(f"mxc.io.{name}") for name in (
    "text_rows", "batch_loader", "built_in", "mnist"))


@pytest.fixture
def write(tmp_path: Path):
    """Makes a file of bytes or text; its path."""
    def make(content: bytes | str, name: str = "data") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return make


def rows(iterator) -> list[list[float]]:
    """The rows of all batches, without those that fill up the last."""
    found = [row for b in iterator for row in b.data[0].asnumpy()[:b.data[0].shape[0] - b.pad].tolist()]
    iterator.reset()
    return found


@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("kept", [0, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blocks_of_any_size_give_the_same_rows(write, monkeypatch, block: int, kept: int, end: str):
    monkeypatch.setattr(text_rows, "BLOCK", block)
    monkeypatch.setattr(batch_loader, "KEPT", kept)
    values = np.arange(60).reshape(20, 3)
    text = end.join(",".join(map(str, row)) for row in values)
    it = mx.io.CSVIter(data_csv=write("\ufeff" + text), data_shape=(3,), batch_size=6, round_batch=False)
    for _ in range(3):
        assert rows(it) == values.tolist()


def test_large_batches_are_the_rows_too(write):
    values = np.arange(1 << 19).reshape(-1, 1 << 8)
    path = write("\n".join(",".join(map(str, row)) for row in values.tolist()))
    it = mx.io.CSVIter(data_csv=path, data_shape=(1 << 8,), batch_size=1 << 10)
    assert (np.concatenate([b.data[0].asnumpy() for b in it]) == values).all()


def test_rows_that_are_kept_are_not_read_again(write, tmp_path: Path):
    it = mx.io.CSVIter(data_csv=write("1\n2\n"), data_shape=(1,), batch_size=1)
    assert rows(it) == [[1], [2]]
    (tmp_path / "data").unlink()
    assert rows(it) == [[1], [2]]


@pytest.mark.parametrize(("text", "line"), [
    ("1,2,3\n4,5\n", "line 2: expected 3 float32 numbers .* got '4,5'"),
    ("1,2,3\n\n4,5,6\n7,x,9\n", "line 4: .* got '7,x,9'"), ("1,,3\n", "line 1: .* got '1,,3'"),
    ("a,b,c\n1,2,3\n", "line 1: .* got 'a,b,c'"), ("1,2,3\n1.5x,2,3\n", "line 2: "), ("0x10,2,3\n", "line 1: "),
    ("1,2,3,\n4,5,6,7\n", "line 2: "), (",\n", "line 1: "),
    ("1,2,3\n" + "9" * 200 + "\n", r"line 2: .* got '9{60}\.\.\.'"),
    ("", "the file is empty")])
def test_a_line_that_is_no_row_is_named(write, text: str, line: str):
    path = write(text)
    with pytest.raises(MXNetError, match=f"{path}: {line}"):
        mx.io.CSVIter(data_csv=path, data_shape=(3,), batch_size=1)


def test_a_fraction_is_no_integer(write):
    with pytest.raises(MXNetError, match="line 2: expected 1 int32 numbers"):
        mx.io.CSVIter(data_csv=write("1\n2.5\n"), data_shape=(1,), batch_size=1, dtype="int32")


def test_a_line_that_is_wrong_further_on_is_named_when_it_comes(write, monkeypatch):
    monkeypatch.setattr(text_rows, "BLOCK", 8)
    it = mx.io.CSVIter(data_csv=write("1\n2\n3\n4\n5\n6\nx\n8\n"), data_shape=(1,), batch_size=2)
    assert [it.next().data[0].asnumpy().tolist() for _ in range(2)] == [[[1], [2]], [[3], [4]]]
    for _ in range(2):
        with pytest.raises(MXNetError, match=r"line 7: .* got 'x'"):
            list(it)
    it.reset()
    assert it.next().data[0].asnumpy().tolist() == [[1], [2]]


def test_fewer_labels_than_rows_are_refused(write):
    with pytest.raises(MXNetError, match="fewer labels than rows"):
        mx.io.CSVIter(data_csv=write("1\n2\n3\n"), label_csv=write("1\n", "labels"), data_shape=(1,), batch_size=2)


@pytest.mark.parametrize(("arguments", "text"), [
    ({"batch_size": 0}, "batch_size is 0: expected a whole number from 1 on"),
    ({"batch_size": "many"}, "batch_size is 'many'"), ({"data_shape": (0,)}, r"data_shape is \(0,\)"),
    ({"data_csv": None}, "data_csv is None: expected the name of a file"), ({"dtype": "float64"}, "float32 or int32"),
    ({"round_batch": "perhaps"}, "round_batch is 'perhaps'")])
def test_arguments_that_do_not_fit_are_named(write, arguments: dict, text: str):
    with pytest.raises(ValueError, match=f"CSVIter: .*{text}"):
        mx.io.CSVIter(**{"data_csv": write("1\n"), "data_shape": (1,), "batch_size": 1, **arguments})


def test_arguments_are_given_by_name(write):
    with pytest.raises(TypeError, match="takes its arguments by name"):
        mx.io.CSVIter(write("1\n"))
    with pytest.warns(UserWarning, match="CSVIter has no arguments shuffel"):
        mx.io.CSVIter(data_csv=write("1\n"), data_shape=(1,), batch_size=1, shuffel=True, prefetch_buffer=2)


def test_files_may_be_at_a_url(write):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe_file("/rows.csv", b"1,2\n3,4\n")
    assert rows(mx.io.CSVIter(data_csv="memory://rows.csv", data_shape=(2,), batch_size=2)) == [[1, 2], [3, 4]]


# ---- LibSVM

def libsvm(path: str, width: int = 3, **more):
    return mx.io.LibSVMIter(**{"data_libsvm": path, "data_shape": (width,), "batch_size": 1, **more})


def test_batches_are_kept_in_parts(write):
    (batch,) = libsvm(write("1 2:5 0:1\n2\n3 1:4\n"), batch_size=3)
    (data,) = batch.data
    data.check_format()
    assert data.stype == "csr" and data.shape == (3, 3)
    assert data.data.asnumpy().tolist() == [1, 5, 4] and data.indices.asnumpy().tolist() == [0, 2, 1]
    assert data.indptr.asnumpy().tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize(("text", "expected"), [
    ("1 0:1 2:5\n\n2 1:-1e1\n", [[1, 0, 5], [0, -10, 0]]), ("1 0:1\r\n2 1:1\r\n", [[1, 0, 0], [0, 1, 0]]),
    ("\ufeff1 0:1\n2", [[1, 0, 0], [0, 0, 0]]),
    ("1 qid:3 0:1\n2 qid:4 1:1 # a comment\n# one\n", [[1, 0, 0], [0, 1, 0]]),
    ("1 2:3 0:1\n", [[1, 0, 3]])])
def test_lines_of_pairs(write, text: str, expected: list):
    assert rows(libsvm(write(text))) == expected


def test_several_labels_stand_before_the_pairs(write):
    batch = libsvm(write("1,2 0:1\n3,4 1:2\n"), label_shape=(2,), batch_size=2).next()
    assert batch.label[0].asnumpy().tolist() == [[1, 2], [3, 4]]
    assert batch.data[0].asnumpy().tolist() == [[1, 0, 0], [0, 2, 0]]


@pytest.mark.parametrize("line", ["1 0:x", "1 0", "1 0:", "1 3:1", "1 -1:2", "1 0.5:2", "1,2 0:1", "x 0:1", "0:1 1:2"])
def test_a_line_that_is_no_list_of_pairs_is_named(write, line: str):
    path = write(f"1 0:1\n{line}\n2 1:1\n")
    with pytest.raises(MXNetError, match=rf"{path}: line 2: expected a label, then INDEX:VALUE .* got '{line}'"):
        libsvm(path)


def test_parts_are_all_of_the_file(write):
    text = "".join(f"{i} {i % 3}:{i + 1}\n" for i in range(50))
    path = write(text)
    for parts in (1, 2, 3, 7):
        found = [batch.label[0].asscalar() for part in range(parts)
                 for batch in libsvm(path, num_parts=parts, part_index=part)]
        assert found == list(range(50))
    with pytest.raises(ValueError, match="part_index is 2; expected 0 to 1"):
        libsvm(path, num_parts=2, part_index=2)


# ---- MNIST

def test_files_may_be_packed(write):
    images, labels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), np.array([7, 8], np.uint8)
    it = mx.io.MNISTIter(image=write(gzip.compress(io_calls.idx(images)), "i"), label=write(io_calls.idx(labels), "l"),
                         batch_size=2, shuffle=False)
    batch = it.next()
    assert (batch.data[0].asnumpy() * 256 == images[:, None]).all()
    assert batch.label[0].asnumpy().tolist() == [7, 8]


def test_how_many_images_there_are_is_logged(write, caplog):
    files = {"image": write(io_calls.idx(np.zeros((2, 1, 1), np.uint8)), "i"),
             "label": write(io_calls.idx(np.zeros(2, np.uint8)), "l"), "batch_size": 2}
    with caplog.at_level(logging.INFO):
        mx.io.MNISTIter(silent=True, **files)
        assert not caplog.text
        mx.io.MNISTIter(**files)
    assert "MNISTIter: 2 images" in caplog.text


IMAGES, LABELS = io_calls.idx(np.zeros((4, 2, 3), np.uint8)), io_calls.idx(np.zeros(4, np.uint8))


@pytest.mark.parametrize(("images", "labels", "text"), [
    (IMAGES[:-1], LABELS, "expected 4x2x3 = 24 bytes, .* got 23"), (IMAGES + b"0", LABELS, "24 bytes, .* got 25"),
    (IMAGES[:9], LABELS, "expected 16 bytes that say what is in the file, got 9"), (b"", LABELS, "got 0"),
    (LABELS, LABELS, "got 12"), (IMAGES, IMAGES, "magic number 0x00000801 of labels, got 0x00000803"),
    (IMAGES, LABELS[:6], "got 6"), (gzip.compress(IMAGES, mtime=0)[:-9], LABELS, "begins as a gzip file and is none"),
    (b"\xff" * 40, LABELS, "magic number"), (IMAGES[:4] + b"\xff" * 12 + b"0", LABELS, "got 1"),
    (IMAGES, io_calls.idx(np.zeros(3, np.uint8)), "4 images, .* 3 labels")])
def test_files_that_are_none_or_cut_are_refused(write, images: bytes, labels: bytes, text: str):
    with pytest.raises(MXNetError, match=text):
        mx.io.MNISTIter(image=write(images, "i"), label=write(labels, "l"), batch_size=2)


def test_fewer_images_than_a_batch_takes_are_refused(write):
    with pytest.raises(ValueError, match="a batch takes 5 images, but there are 4"):
        mx.io.MNISTIter(image=write(IMAGES, "i"), label=write(LABELS, "l"), batch_size=5)


def test_an_order_is_a_permutation():
    for count in (0, 1, 2, 1000):
        assert sorted(mnist.shuffled(count, 3)) == list(range(count))
