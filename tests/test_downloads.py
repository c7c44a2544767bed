"""What MXNet's tests download is taken where it lies: mx.test_utils fetches nothing, and says what belongs where."""
from __future__ import annotations

import bz2
import gzip
import zipfile
from pathlib import Path

import pytest

import mxc as mx
from mxc import test_utils as tu
from mxc.compiler.error import UnsupportedError

URL = "http://example.invalid/folder/numbers.zip"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_download_gives_what_is_there() -> None:
    with pytest.raises(mx.MXNetError, match=rf"numbers.zip: .*{URL} is not fetched; put numbers.zip into the folder"):
        tu.download(URL)
    Path("sub").mkdir()
    for path, arguments in ((Path("numbers.zip"), {}), (Path("other"), {"fname": "other"}),
                            (Path("sub/numbers.zip"), {"dirname": "sub"})):
        path.touch()
        assert tu.download(URL, **arguments) == str(path)
    with pytest.raises(UnsupportedError, match="downloads nothing; put the files of resnet into models"):
        tu.download_model("resnet", "models")


def test_packed_files_are_unpacked() -> None:
    for missing in (lambda: tu.get_zip_data(".", URL, "numbers.zip"), lambda: tu.get_bz2_data(".", "n", URL, "n.bz2")):
        with pytest.raises(mx.MXNetError, match="mxc downloads nothing"):
            missing()
    with zipfile.ZipFile("numbers.zip", "w") as archive:
        archive.writestr("inside/one", "1")
    Path("n.bz2").write_bytes(bz2.compress(b"two"))
    tu.get_zip_data(".", URL, "numbers.zip")
    tu.get_bz2_data(".", "n", URL, "n.bz2")
    assert Path("inside/one").read_text() == "1" and Path("n").read_text() == "two"
    Path("n.bz2").unlink()
    tu.get_bz2_data(".", "n", URL, "n.bz2")  # it is unpacked already
    Path("broken").write_bytes(b"no archive")
    for broken in (lambda: tu.get_zip_data(".", URL, "broken"), lambda: tu.get_bz2_data(".", "m", URL, "broken")):
        with pytest.raises(mx.MXNetError, match=r"broken: .*(no zip file|cannot be unpacked)"):
            broken()
    assert not Path("m").exists()


def test_data_sets_are_named() -> None:
    for get, first in ((tu.get_mnist_ubyte, "train-images-idx3-ubyte"), (tu.get_mnist_pkl, "mnist.pkl.gz"),
                       (tu.get_cifar10, "train.rec")):
        with pytest.raises(mx.MXNetError, match=f"put {first} into the folder .*data"):
            get()
    Path("data/cifar").mkdir(parents=True)
    for name in ("train.rec", "test.rec", "train.lst", "test.lst"):
        Path("data/cifar", name).touch()
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        Path(f"data/{name}-ubyte.gz").write_bytes(gzip.compress(name.encode()))
    tu.get_mnist_ubyte()
    tu.get_cifar10()
    assert Path("data/t10k-labels-idx1-ubyte").read_text() == "t10k-labels-idx1"
