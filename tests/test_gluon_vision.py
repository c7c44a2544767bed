"""Datasets of images on files of this machine: what they give, and what they say of missing and broken files."""
from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.gluon.data import DataLoader, vision

RANDOM = np.random.RandomState(0)
DIGITS = RANDOM.randint(0, 256, (5, 28, 28)).astype(np.uint8)
NUMBERS = np.array([3, 1, 4, 1, 5], np.uint8)
PICTURES = RANDOM.randint(0, 256, (4, 3, 32, 32)).astype(np.uint8)


def write_idx(path: Path, magic: int, values: np.ndarray) -> None:
    header = np.array([magic, *values.shape], ">u4").tobytes()
    with gzip.open(path, "wb") as file:
        file.write(header + values.tobytes())


def write_digits(folder: Path, kind: str, images: np.ndarray = DIGITS, labels: np.ndarray = NUMBERS) -> None:
    write_idx(folder / f"{kind}-images-idx3-ubyte.gz", 0x803, images)
    write_idx(folder / f"{kind}-labels-idx1-ubyte.gz", 0x801, labels)


def records(*labels: list[int]) -> bytes:
    """Rows of labels, each with one of the pictures."""
    return b"".join(bytes(label) + picture.tobytes() for label, picture in zip(labels, PICTURES, strict=False))


@pytest.mark.parametrize("kind", [vision.MNIST, vision.FashionMNIST])
def test_digits(tmp_path: Path, kind: type):
    write_digits(tmp_path, "train")
    write_digits(tmp_path, "t10k", DIGITS[:2], NUMBERS[:2])
    found, tests = kind(str(tmp_path)), kind(root=str(tmp_path), train=False)
    assert (len(found), len(tests)) == (5, 2)
    image, label = found[2]
    assert isinstance(image, mx.nd.NDArray) and image.dtype == np.uint8 and image.shape == (28, 28, 1)
    assert (image.asnumpy()[..., 0] == DIGITS[2]).all() and label == 4 and label.dtype == np.int32
    changed = kind(str(tmp_path), transform=lambda data, label: (data.astype("float32") / 255, label + 1))
    image, label = changed[0]
    assert label == 4 and abs(image.asnumpy()[..., 0] - DIGITS[0] / 255).max() < 1e-6
    first = kind(str(tmp_path)).transform_first(lambda data: data.astype("float32"))
    images, labels = next(iter(DataLoader(first, 3)))
    assert images.shape == (3, 28, 28, 1) and labels.asnumpy().tolist() == [3, 1, 4]


def test_pictures_of_ten_kinds(tmp_path: Path):
    for i in range(1, 6):
        (tmp_path / f"data_batch_{i}.bin").write_bytes(records([i], [i + 1]))
    (tmp_path / "test_batch.bin").write_bytes(records([9], [8], [7]))
    found, tests = vision.CIFAR10(str(tmp_path)), vision.CIFAR10(str(tmp_path), train=False)
    assert (len(found), len(tests)) == (10, 3)
    assert [int(found[i][1]) for i in range(4)] == [1, 2, 2, 3] and int(tests[2][1]) == 7
    assert (tests[2][0].asnumpy() == PICTURES[2].transpose(1, 2, 0)).all() and tests[0][1].dtype == np.int32


@pytest.mark.parametrize("packed", [False, True])
def test_pictures_of_a_hundred_kinds(tmp_path: Path, packed: bool):
    data = records([1, 70], [2, 99])
    if packed:
        with tarfile.open(tmp_path / "cifar-100-binary.tar.gz", "w:gz") as tar:
            member = tarfile.TarInfo("cifar-100-binary/train.bin")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    else:
        (tmp_path / "train.bin").write_bytes(data)
    assert [int(label) for _, label in vision.CIFAR100(str(tmp_path))] == [1, 2]
    assert [int(label) for _, label in vision.CIFAR100(str(tmp_path), fine_label=True)] == [70, 99]
    assert (vision.CIFAR100(str(tmp_path))[1][0].asnumpy() == PICTURES[1].transpose(1, 2, 0)).all()
    assert packed == (not (tmp_path / "train.bin").exists())  # nothing is written
    if packed:
        with pytest.raises(MXNetError, match=r"no test\.bin in this archive"):
            vision.CIFAR100(str(tmp_path), train=False)


@pytest.mark.parametrize("kind", [vision.MNIST, vision.FashionMNIST, vision.CIFAR10, vision.CIFAR100])
def test_files_that_are_not_there(tmp_path: Path, kind: type):
    with pytest.raises(MXNetError, match=f"{kind.__name__} is missing, and mxc downloads none") as caught:
        kind(str(tmp_path / "none"))
    assert str(tmp_path / "none") in str(caught.value)


def test_broken_digits(tmp_path: Path):
    write_digits(tmp_path, "train", labels=NUMBERS[:3])
    with pytest.raises(MXNetError, match="5 images and 3 labels"):
        vision.MNIST(str(tmp_path))
    write_idx(tmp_path / "train-labels-idx1-ubyte.gz", 0x803, NUMBERS)
    with pytest.raises(MXNetError, match="expected the magic number 0x00000801 of labels, got 0x00000803"):
        vision.MNIST(str(tmp_path))
    images = tmp_path / "train-images-idx3-ubyte.gz"
    whole = images.read_bytes()
    for size in (0, 7, 40, len(whole) // 2, len(whole) - 1):
        images.write_bytes(whole[:size])
        with pytest.raises(MXNetError, match="train-images"):
            vision.MNIST(str(tmp_path))
    with gzip.open(images, "wb") as file:
        file.write(np.array([0x803, 2, 28, 28], ">u4").tobytes() + b"short")
    with pytest.raises(MXNetError, match="1568 bytes, as the file's head says, got 5"):
        vision.MNIST(str(tmp_path))


def test_broken_pictures(tmp_path: Path):
    (tmp_path / "test.bin").write_bytes(records([1, 2])[:-1])
    with pytest.raises(MXNetError, match="expected records of 3074"):
        vision.CIFAR100(str(tmp_path), train=False)
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"<html>")
    with pytest.raises(MXNetError, match=r"no whole tar.gz"):
        vision.CIFAR10(str(tmp_path))
