"""Downloads are whole or not there, and go on where they stopped; data sets are taken where they lie."""
from __future__ import annotations

import bz2
import gzip
import hashlib
import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from servers import Server, serving

import mxc as mx
from mxc import test_utils as tu
from mxc.compiler.error import UnsupportedError
from mxc.compiler.system import opencv
from mxc.runtime import downloads


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


CONTENT = bytes(range(256)) * 4000
SHA1 = hashlib.sha1(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(downloads, "PAUSE", 0.001)
    with serving(CONTENT) as made:
        yield made


def test_download_gives_what_is_there_and_fetches_what_is_not(server: Server) -> None:
    Path("sub").mkdir()
    for path, arguments in ((Path("numbers.bin"), {}), (Path("other"), {"fname": "other"}),
                            (Path("sub/numbers.bin"), {"dirname": "sub"}),
                            (Path("new/x"), {"fname": "x", "dirname": "new"})):
        assert tu.download(server.url, **arguments) == str(path) and path.read_bytes() == CONTENT
        asked = len(server.asked)
        assert tu.download(server.url, **arguments) == str(path) and len(server.asked) == asked
    Path("numbers.bin").write_bytes(b"old")
    assert tu.download(server.url) == "numbers.bin" and Path("numbers.bin").read_bytes() == b"old"
    assert tu.download(server.url, overwrite=True) == "numbers.bin" and Path("numbers.bin").read_bytes() == CONTENT
    assert mx.gluon.utils.download(server.url, "sub") == "sub/numbers.bin"
    assert mx.gluon.utils.download(server.url, "sub/more") == "sub/more"
    assert not list(Path().rglob("*.part"))
    with pytest.raises(UnsupportedError, match="downloads no models; put the files of resnet into models"):
        tu.download_model("resnet", "models")


def test_a_lost_connection_is_gone_on_with_where_it_ended(server: Server) -> None:
    server.plans = [("cut", 300_000), ("status", 503), ("cut", 5), ("all", 0)]
    assert mx.gluon.utils.download(server.url, "a") == "a" and Path("a").read_bytes() == CONTENT
    assert server.asked == [(None, None), *[("bytes=300000-", server.tag)] * 2, ("bytes=300005-", server.tag)]


def test_another_content_or_a_server_without_parts_begins_anew(server: Server) -> None:
    server.plans = [("cut", 300_000)]
    server.has_parts = False
    assert mx.gluon.utils.download(server.url, "a") == "a" and Path("a").read_bytes() == CONTENT
    server.has_parts, server.tag, server.asked = True, "", []
    server.plans = [("cut", 300_000)]  # without a tag nobody knows of which content that was
    assert mx.gluon.utils.download(server.url, "b") == "b" and Path("b").read_bytes() == CONTENT
    assert server.asked == [(None, None)] * 2


def test_a_later_call_goes_on_where_a_digest_tells_whether_all_is_right(server: Server) -> None:
    Path("a.part").write_bytes(CONTENT[:1000])
    Path("b.part").write_bytes(b"x" * 1000)
    Path("c.part").write_bytes(CONTENT)
    for name in ("a", "b", "c"):
        mx.gluon.utils.download(server.url, name, sha1_hash=SHA1)
        assert Path(name).read_bytes() == CONTENT and not Path(f"{name}.part").exists()
    assert server.asked == [("bytes=1000-", None), ("bytes=1000-", None), (None, None), ("bytes=1024000-", None)]
    Path("d.part").write_bytes(b"x" * 1000)
    mx.gluon.utils.download(server.url, "d")  # without a digest what was left is dropped
    assert Path("d").read_bytes() == CONTENT and server.asked[-1] == (None, None)


def test_what_cannot_be_had_is_said_and_leaves_what_was_there(server: Server) -> None:
    Path("a").write_bytes(b"old")
    for plans, arguments, text, tries in (
            ([("status", 404)], {}, "the server answers 404 Not Found", 1),
            ([("status", 500)] * 3, {"retries": 2}, "the server answers 500", 3),
            ([("cut", 10)] * 2, {"retries": 1}, r"the connection ended behind 20 of 1,024,000 bytes", 2),
            ([], {"sha1_hash": "0" * 40, "retries": 1}, "its SHA-1 digest is not 000", 2)):
        server.plans, server.asked = list(plans), []
        with pytest.raises(mx.MXNetError, match=rf"a: cannot be downloaded from http.*{text}"):
            mx.gluon.utils.download(server.url, "a", overwrite=True, **arguments)
        assert len(server.asked) == tries and Path("a").read_bytes() == b"old"
    with pytest.raises(mx.MXNetError, match="unknown url type"):
        mx.gluon.utils.download("numbers.bin", "b")
    with pytest.raises(AssertionError, match="0 or more; got -1"):
        mx.gluon.utils.download(server.url, "b", retries=-1)
    Path("full").mkdir()
    Path("full/x").write_text("")
    with pytest.raises(mx.MXNetError, match="full/x/y: cannot be written"):
        mx.gluon.utils.download(server.url, "full/x/y")


def test_several_that_want_one_file_fetch_it_once(server: Server) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: mx.gluon.utils.download(server.url, "a", sha1_hash=SHA1), range(4))) == ["a"] * 4
    assert len(server.asked) == 1 and Path("a").read_bytes() == CONTENT and not Path("a.part").exists()


@pytest.mark.parametrize("looked", [1, 2])
def test_a_part_that_another_process_takes_away_is_made_anew(server: Server, monkeypatch: pytest.MonkeyPatch,
                                                            looked: int) -> None:
    """At whichever look at it that happens."""
    looks, stat = iter(range(1, 100)), os.stat

    def taken_away(path: object, **options: object) -> os.stat_result:
        if str(path).endswith("a.part") and next(looks) == looked:
            os.unlink("a.part")
        return stat(path, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "stat", taken_away)
    assert mx.gluon.utils.download(server.url, "a", sha1_hash=SHA1) == "a"
    assert Path("a").read_bytes() == CONTENT


def test_packed_files_are_fetched_and_unpacked(server: Server) -> None:
    with zipfile.ZipFile("numbers.zip", "w") as archive:
        archive.writestr("inside/one", "1")
    Path("n.bz2").write_bytes(bz2.compress(b"two"))
    tu.get_zip_data(".", server.url, "numbers.zip")
    tu.get_bz2_data(".", "n", server.url, "n.bz2")
    assert Path("inside/one").read_text() == "1" and Path("n").read_text() == "two"
    Path("n.bz2").unlink()
    tu.get_bz2_data(".", "n", server.url, "n.bz2")  # it is unpacked already
    assert not server.asked
    for broken in (lambda: tu.get_zip_data(".", server.url, "broken"),
                   lambda: tu.get_bz2_data(".", "m", server.url, "broken")):
        with pytest.raises(mx.MXNetError, match=r"broken: .*(no zip file|cannot be unpacked)"):
            broken()
    assert not Path("m").exists() and len(server.asked) == 1
    server.content = bz2.compress(b"three")
    tu.get_bz2_data("data", "three", server.url, "three.bz2")
    assert Path("data/three").read_text() == "three"


def test_importing_downloads_nothing() -> None:
    program = "import sys\nsys.addaudithook(lambda event, _: event.startswith('socket.') and sys.exit(event))\n" \
              "import mxc as mx, mxc.test_utils, mxc.gluon.utils, mxc.image\nmx.gluon.data.vision, mx.gluon.model_zoo"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


@pytest.mark.skipif(importlib.util.find_spec("cv2") is None, reason="needs OpenCV")
def test_im2rec_runs_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MXNET_HOME", raising=False)
    Path("pictures").mkdir()
    for i in range(3):
        Path(f"pictures/{i}.png").write_bytes(opencv.encoded(np.full((8, 8, 3), 50 * i, np.uint8), 9, ".png"))
    for more in (["--list"], ["--pass-through"]):
        subprocess.run([sys.executable, tu.get_im2rec_path(), "all", "pictures", *more], check=True, timeout=120)
    assert len(mx.recordio.MXIndexedRecordIO("all.idx", "all.rec", "r").keys) == 3
    Path("home/tools").mkdir(parents=True)
    monkeypatch.setenv("MXNET_HOME", "home")
    assert tu.get_im2rec_path() != "home/tools/im2rec.py"
    Path("home/tools/im2rec.py").touch()
    assert tu.get_im2rec_path() == "home/tools/im2rec.py"


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
