"""What goes wrong with files of records of images: an error that says what and where, no wait without an end, and
reading or writing goes on where it can."""
from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mxc as mx
from mxc.base import MXNetError
from mxc.compiler.system import opencv
from mxc.gluon.data.vision import ImageRecordDataset

pytest.importorskip("cv2")
COUNT, BATCH = 40, 4
LIMIT = 60  # seconds after which a test that waits is ended


@pytest.fixture(autouse=True)
def in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ends the test that waits without an end, by an alarm."""
    monkeypatch.chdir(tmp_path)

    def late(*_: object) -> None:
        raise TimeoutError(f"nothing has come in {LIMIT} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def write(name: str = "a", broken: int = -1) -> list[int]:
    """Records of JPEGs of 40 x 30 with an index; number `broken` is no image. Gives where they begin."""
    random = np.random.RandomState(1)
    with mx.recordio.MXIndexedRecordIO(f"{name}.idx", f"{name}.rec", "w") as file:
        for i in range(COUNT):
            pixels = random.randint(0, 256, (30, 40, 3)).astype(np.uint8)
            encoded = b"no image" if i == broken else opencv.encoded(pixels, 90, ".jpg")
            file.write_idx(i, mx.recordio.pack((0, float(i), 1000 + i, 0), encoded))
        return list(file.idx.values())


def iterator(**more: object):
    return mx.io.ImageRecordIter(**{"path_imgrec": "a.rec", "data_shape": (3, 20, 20), "batch_size": BATCH, **more})


def labels(made) -> list[int]:
    """Of one batch."""
    return next(made).label[0].asnumpy().astype(int).tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_picture_that_cannot_be_read_is_named_and_the_next_pass_works(threads: int) -> None:
    write(broken=21)
    made = iterator(preprocess_threads=threads)
    for _ in range(3):
        for batch in range(5):
            assert labels(made) == list(range(BATCH * batch, BATCH * batch + BATCH))
        with pytest.raises(MXNetError, match=r"a\.rec: the record with the id 1021: decoding an image: expected"):
            next(made)
        assert labels(made) == [24, 25, 26, 27]  # a program that passes over it goes on behind that batch
        made.reset()
    write("a")  # repaired
    assert sum(len(batch.data[0]) for batch in iterator()) == COUNT


def test_a_picture_that_is_cut_off_is_grey_where_it_ends_as_in_mxnet() -> None:
    picture = opencv.encoded(np.random.RandomState(1).randint(0, 256, (90, 80, 3)).astype(np.uint8), 90, ".jpg")
    with mx.recordio.MXRecordIO("a.rec", "w") as file:
        for content in (picture, picture[:len(picture) // 2]):
            file.write(mx.recordio.pack((0, 0.0, 0, 0), content))
    whole, cut = next(iterator(batch_size=2, data_shape=(3, 90, 80))).data[0].asnumpy()
    assert (whole[:, :16] == cut[:, :16]).all() and (cut[:, -8:] == 128).all()


def damaged(kind: str, begins: list[int]) -> int:
    """Damage to record 21; gives the byte that is to be named."""
    content = bytearray(Path("a.rec").read_bytes())
    at = begins[21]
    length = int.from_bytes(content[at + 4:at + 8], "little")
    if kind == "cut":
        Path("a.rec").write_bytes(content[:at + 100])
        return at
    if kind == "magic":
        content[at] ^= 1
    elif kind == "longer":
        content[at + 4:at + 8] = (length + 8).to_bytes(4, "little")
        at = begins[22] + 8
    elif kind == "shorter":
        content[at + 4:at + 8] = (length - 8).to_bytes(4, "little")
        at = begins[22] - 8
    elif kind == "huge":
        content[at + 4:at + 8] = (2 ** 29 - 4).to_bytes(4, "little")
    Path("a.rec").write_bytes(content)
    return at


@pytest.mark.parametrize("kind", ["cut", "magic", "longer", "shorter", "huge"])
def test_damaged_records_are_named_by_their_byte(kind: str) -> None:
    at = damaged(kind, write())
    with mx.recordio.MXRecordIO("a.rec", "r") as file, pytest.raises(MXNetError, match=rf"a\.rec, byte {at}: expected"):
        while file.read() is not None:
            pass
    if kind not in ("cut", "huge"):  # the records' places are looked for before anything is read
        with pytest.raises(MXNetError, match=rf"a\.rec, byte {at}: expected"):
            iterator()


@pytest.mark.parametrize("kind", ["cut", "magic", "huge"])
def test_damage_that_an_index_leads_to_ends_one_batch(kind: str) -> None:
    at = damaged(kind, write())
    made = iterator(path_imgidx="a.idx")
    for _ in range(2):
        for batch in range(5):
            assert labels(made) == list(range(BATCH * batch, BATCH * batch + BATCH))
        with pytest.raises(MXNetError, match=rf"a\.rec, byte {at}: expected"):
            next(made)
        made.reset()


def test_a_file_that_shrinks_under_its_reader() -> None:
    begins = write()
    made = iterator(prefetch_buffer=1, path_imgidx="a.idx")
    assert labels(made) == [0, 1, 2, 3]
    os.truncate("a.rec", begins[20])
    with pytest.raises(MXNetError, match=r"a\.rec"):
        for _ in range(COUNT):
            next(made)


# ---- processes of a DataLoader

class Killing:
    """Records of images, of which number 21 ends the process that reads it, as long as the file `kill` is there."""

    def __init__(self) -> None:
        self.records, self.home = ImageRecordDataset("a.rec"), os.getpid()

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, place: int):
        if place == 21 and os.path.exists("kill"):
            assert os.getpid() != self.home
            os.kill(os.getpid(), signal.SIGKILL)
        return self.records[place]


def test_a_worker_that_is_killed_ends_its_pass_and_the_next_one_works() -> None:
    write()
    Path("kill").touch()
    loader = mx.gluon.data.DataLoader(Killing(), BATCH, num_workers=2)
    with pytest.raises(MXNetError, match="worker"):
        list(loader)
    Path("kill").unlink()
    found = [label.asnumpy().astype(int).tolist() for _, label in loader]
    assert [n for batch in found for n in batch] == list(range(COUNT))


# ---- a disk that is full

FULL = """
import resource, signal, sys
import mxc as mx
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
file = mx.recordio.MXIndexedRecordIO("full.idx", "full.rec", "w")
try:
    for i in range(100):
        file.write_idx(i, bytes([i]) * 890)
except mx.MXNetError as error:
    print(i, error)
file.write_idx(500, b"small")  # there is room for this one
file.close()
"""


def test_a_full_disk_is_said_and_what_was_written_is_sound() -> None:
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("11 full.rec: cannot be written: File too large"), done
    file = mx.recordio.MXIndexedRecordIO("full.idx", "full.rec", "r")
    assert file.keys == [*range(11), 500] and file.read_idx(500) == b"small"
    assert [file.read_idx(i) for i in range(11)] == [bytes([i]) * 890 for i in range(11)]
    file.reset()
    assert len(list(iter(file.read, None))) == 12


class Full(io.RawIOBase):
    """A file that has room for so many bytes more."""

    def __init__(self, room: int):
        self.room = room

    def writable(self) -> bool:
        return True

    def write(self, content) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = min(self.room, len(content))
        self.room -= taken
        return taken


@pytest.mark.parametrize("room", [0, 5, 30])
def test_a_stream_that_is_full(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = mx.recordio.MXRecordIO("a.rec", "w")
    monkeypatch.setattr(writer.handle, "_file", Full(room))
    with pytest.raises(MXNetError, match=r"a\.rec: cannot be written: No space left on device"):
        writer.write(bytes(40))
    indexed = mx.recordio.MXIndexedRecordIO("b.idx", "b.rec", "w")
    indexed.write_idx(1, b"one")
    monkeypatch.setattr(indexed, "fidx", io.TextIOWrapper(Full(room), write_through=True))
    with pytest.raises(MXNetError, match=r"b\.idx: cannot be written: No space left on device"):
        for i in range(2, 20):
            indexed.write_idx(i, b"more")


# ---- parts and orders

@pytest.mark.parametrize("with_index", [False, True])
@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_every_sample_comes_once_in_a_pass_of_all_parts(parts: int, with_index: bool) -> None:
    write()
    more = {"path_imgidx": "a.idx"} if with_index else {}
    passes: list[list[int]] = [[], [], []]
    orders = set()
    for part in range(parts):
        made = iterator(batch_size=1, num_parts=parts, part_index=part, shuffle=True, seed=part, **more)
        for found in passes:
            order = [int(batch.label[0].asscalar()) for batch in made]
            orders.add(tuple(order))
            found += order
            made.reset()
    assert all(sorted(found) == list(range(COUNT)) for found in passes) and len(orders) == 3 * parts
