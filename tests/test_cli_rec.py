"""`mxc rec`: sound and damaged files of records, with and without an index, listed, read, checked, indexed, drawn."""
from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli.main import BAD_FILE, FAILED, NO_TARGET, OK, USAGE, main
from mxc.runtime.picture_heads import PictureHead, is_cut_off, picture_head
from mxc.runtime.record_file import WORD

BOXES = [2, 5, 3, 0.1, 0.2, 0.6, 0.9, 1, 0.5, 0.5, 0.75, 0.75]
LABELS = [1.5, [2, 3], 0, BOXES]
SIZES = [(30, 20), (10, 40), (64, 64), (50, 50)]  # width and height
OFFSETS: list[int] = []
CONTENTS: list[bytes] = []


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with pictures in p.rec, texts in t.rec, and the index of p.rec."""
    monkeypatch.chdir(tmp_path)
    random = np.random.RandomState(0)
    writer = mx.recordio.MXIndexedRecordIO("p.idx", "p.rec", "w")
    OFFSETS.clear()
    CONTENTS.clear()
    for i, (label, (width, height)) in enumerate(zip(LABELS, SIZES, strict=True)):
        image = cv2.resize(random.randint(0, 256, (4, 4, 3)).astype(np.uint8), (width, height))
        CONTENTS.append(cv2.imencode((".jpg", ".png")[i % 2], image)[1].tobytes())
        OFFSETS.append(writer.tell())
        writer.write_idx(10 - i, mx.recordio.pack(mx.recordio.IRHeader(0, label, 10 - i, 0), CONTENTS[-1]))
    writer.close()
    texts = mx.recordio.MXRecordIO("t.rec", "w")
    for text in (b"", b"a text of more than a few letters", WORD + b"abcd" + WORD * 2, b"x" * 70000):
        texts.write(text)
    texts.close()
    return tmp_path


def test_ls(capsys: pytest.CaptureFixture[str]):
    assert main(["rec", "ls", "p.rec", "--json"]) == OK
    listed = json.loads(capsys.readouterr().out)
    assert [each["key"] for each in listed] == ["10", "9", "8", "7"]
    assert [each["offset"] for each in listed] == OFFSETS and [each["record"] for each in listed] == [0, 1, 2, 3]
    assert [each["image"] for each in listed] == [{"kind": ("jpeg", "png")[i % 2], "width": w, "height": h}
                                                  for i, (w, h) in enumerate(SIZES)]
    assert [each["label"] for each in listed[:3]] == LABELS[:3]
    np.testing.assert_allclose(listed[3]["label"], BOXES, rtol=1e-6)
    assert [each["bytes"] for each in listed] == [24 + 4 * labels + len(content)
                                                  for labels, content in zip((0, 2, 0, 12), CONTENTS, strict=True)]
    assert main(["rec", "ls", "p.rec"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["record", "key", "offset", "bytes", "label", "image"]
    assert lines[1].split() == ["0", "10", "0", f"{listed[0]['bytes']:,}", "1.5", "jpeg", "30x20"]
    assert "2 5 3 0.1 0.2 0.6 …" in lines[4]


def test_ls_of_records_that_are_no_pictures(capsys: pytest.CaptureFixture[str]):
    assert main(["rec", "ls", "t.rec", "--json"]) == OK
    listed = json.loads(capsys.readouterr().out)
    assert [each["bytes"] for each in listed] == [0, 33, 16, 70000] and [e["key"] for e in listed] == list("0123")
    assert all(each["label"] is None and each["image"] is None for each in listed)
    Path("empty.rec").touch()
    assert main(["rec", "ls", "empty.rec"]) == OK and len(capsys.readouterr().out.splitlines()) == 1


def test_cat():
    for i, content in enumerate(CONTENTS):
        for chosen in ([str(i)], ["--key", str(10 - i)]):
            done = subprocess.run([sys.executable, "-m", "mxc", "rec", "cat", "p.rec", *chosen], capture_output=True)
            assert (done.returncode, done.stdout) == (OK, content)
    assert main(["rec", "cat", "t.rec", "2", "-o", "out", "--json"]) == OK
    assert Path("out").read_bytes() == WORD + b"abcd" + WORD * 2
    assert main(["rec", "cat", "p.rec", "1", "--raw", "-o", "out"]) == OK
    reader = mx.recordio.MXRecordIO("p.rec", "r")
    reader.read()
    assert Path("out").read_bytes() == reader.read()


@pytest.mark.parametrize(("arguments", "code", "text"), [
    (["cat", "p.rec"], USAGE, "needs the number"), (["cat", "p.rec", "1", "--key", "9"], USAGE, "needs the number"),
    (["cat", "p.rec", "4"], USAGE, "p.rec has 4 records"), (["cat", "p.rec", "x"], USAGE, "p.rec has 4 records"),
    (["cat", "p.rec", "-1"], USAGE, ""), (["cat", "p.rec", "1", "--json"], USAGE, "-o FILE"),
    (["cat", "p.rec", "--key", "11"], BAD_FILE, "no key '11' among its 4"),
    (["cat", "t.rec", "--key", "0"], BAD_FILE, "no key '0' among its 0"),
    (["ls", "p.rec", "1"], USAGE, "1: `mxc rec ls` has no use for it"), (["ls", "p.rec", "--raw"], USAGE, "--raw"),
    (["ls", "nosuch.rec"], BAD_FILE, "nosuch.rec: cannot be read"), (["ls", "."], BAD_FILE, "Is a directory"),
    (["verify", "nosuch.rec"], BAD_FILE, "cannot be read"), (["index", "p.rec", "-o", "p.rec"], USAGE, "itself"),
    (["index", "p.rec", "-o", "nosuch/p.idx"], BAD_FILE, "cannot be written"),
    (["show", "p.rec"], USAGE, "named .jpg or .png"), (["show", "p.rec", "-o", "x.gif"], USAGE, "named .jpg or .png"),
    (["show", "p.rec", "--grid", "0x4", "-o", "x.png"], USAGE, ""),
    (["show", "t.rec", "-o", "x.png"], BAD_FILE, "it has no picture"), (["nosuch", "p.rec"], USAGE, "")])
def test_refusals(arguments: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]):
    try:
        done = main(["rec", *arguments])
    except SystemExit as stop:
        done = int(stop.code or 0)
    printed = capsys.readouterr()
    assert done == code and text in printed.err and printed.out == "" and not Path("x.png").exists()


def faults_of(capsys: pytest.CaptureFixture[str], path: str = "d.rec") -> tuple[int, list[tuple[int, str]]]:
    """How many records `verify` finds in a damaged file, and the faults: offset and reason."""
    capsys.readouterr()
    code = main(["rec", "verify", path, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert code == (FAILED if said["faults"] else OK)
    return said["records"], [(each["offset"], each["reason"]) for each in said["faults"]]


def test_verify_sound_files(capsys: pytest.CaptureFixture[str]):
    for path, count in (("p.rec", 4), ("t.rec", 4)):
        assert faults_of(capsys, path) == (count, [])
    assert main(["rec", "verify", "p.rec"]) == OK
    assert capsys.readouterr().out == f"p.rec: 4 records in {os.path.getsize('p.rec'):,} bytes, 0 faults\n"


def test_verify_tells_every_fault_and_goes_on(capsys: pytest.CaptureFixture[str]):
    """One record of four is damaged in each way; the others are found."""
    whole = Path("p.rec").read_bytes()
    one, two, three = OFFSETS[1:]

    def head(offset: int, length: int, flag: int = 0) -> bytes:
        return whole[:offset] + struct.pack("<II", 0xCED7230A, flag << 29 | length) + whole[offset + 8:]

    length = struct.unpack_from("<I", whole, one + 4)[0]
    for content, count, offset, text in (
            (whole[:one] + b"\0" + whole[one + 1:], 3, one, "which begins a record, got 0xced72300"),
            (head(one, 1 << 28), 3, one, "begins here, but "),
            (head(one, two - one), 3, one, f"but another does at byte {two}: the length is damaged"),
            (head(one, length - 40), 4, two - 40, "which begins a record, got"),
            (head(one, length, 3), 3, one, "expected the part flag 0 or 1, got 3"),
            (head(one, length, 1), 3, two, "expected the part flag 2 or 3, got 0"),
            (whole[:one + 100] + b"\n" + whole[one + 100:], 4, two, "which begins a record, got"),
            (whole[:one] + b"1234567" + whole[two:], 3, one, "which begins a record"),
            (whole[:three + 100], 3, three, "the file was cut off"), (whole[:three + 4], 3, three, "4 are left"),
            (whole + b"end", 4, len(whole), "3 are left")):
        Path("d.rec").write_bytes(content)
        found, faults = faults_of(capsys)
        said = [each for each in faults if "cut off: " not in each[1] and "picture is" not in each[1]] or faults
        assert (found, [at for at, _ in said]) == (count, [offset]) and text in said[0][1], (text, faults)


def test_verify_finds_several_faults_and_records_in_parts(capsys: pytest.CaptureFixture[str]):
    texts = Path("t.rec").read_bytes()
    begin = texts.index(WORD, 56)
    Path("d.rec").write_bytes(b"what is this" + texts + b"\0" * 8 + texts[:begin + 20] + texts + b"ab")
    found, faults = faults_of(capsys)
    assert found == 4 + 2 + 4 and [at for at, _ in faults] == [0, 12 + len(texts), 12 + len(texts) + 8 + begin + 20,
                                                               12 + 2 * len(texts) + 8 + begin + 20][:len(faults)]
    assert len(faults) == 4
    assert main(["rec", "ls", "d.rec"]) == FAILED
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 11 and len(printed.err.splitlines()) == 4
    assert printed.err.startswith("mxc rec: d.rec, byte 0: expected 0xced7230a")


def test_a_file_of_nothing_but_beginnings(capsys: pytest.CaptureFixture[str]):
    Path("d.rec").write_bytes(WORD * (1 << 18))
    assert faults_of(capsys) == (0, [(0, "expected the part flag 0 or 1, got 6")])
    Path("d.rec").write_bytes((WORD + struct.pack("<I", 4) + WORD) * 3000 + WORD + struct.pack("<I", 0))
    found, faults = faults_of(capsys)
    assert found == 1 and [at for at, _ in faults] == [i * 12 for i in range(3000)]


def test_files_of_any_bytes(capsys: pytest.CaptureFixture[str]):
    random = np.random.RandomState(1)
    whole = Path("p.rec").read_bytes() + Path("t.rec").read_bytes()[:200]
    for _ in range(150):
        content = bytearray(whole)
        for at in random.randint(0, len(whole), random.randint(1, 9)):
            content[at:at + random.randint(0, 3)] = random.bytes(random.randint(0, 3))
        Path("d.rec").write_bytes(content[:random.randint(0, 2 * len(content))])
        for action in ("verify", "ls", "index"):
            assert main(["rec", action, "d.rec"]) in (OK, FAILED)
        assert main(["rec", "show", "d.rec", "-o", "d.png"]) in (OK, FAILED, BAD_FILE)
    assert "internal error" not in capsys.readouterr().err


def test_verify_reads_the_index_and_pictures(capsys: pytest.CaptureFixture[str]):
    lines = Path("p.idx").read_text().splitlines(keepends=True)
    Path("p.idx").write_text(lines[0] + "4\t3\n" + lines[1] + lines[1])
    found, faults = faults_of(capsys, "p.rec")
    assert found == 4 and [reason for _, reason in faults] == [
        "key 4: no record begins at byte 3", "key 9: it is there more than once",
        f"it lacks 2 records, the first at byte {OFFSETS[2]}"]
    assert main(["rec", "cat", "p.rec", "--key", "4"]) == BAD_FILE
    Path("p.idx").write_text("one line\n")
    assert "line 1 is 'one line'" in faults_of(capsys, "p.rec")[1][0][1]
    assert main(["rec", "ls", "p.rec"]) == OK and "line 1 is" in capsys.readouterr().err
    writer = mx.recordio.MXRecordIO("c.rec", "w")
    for content in CONTENTS:
        writer.write(mx.recordio.pack((0, 1.0, 0, 0), content[:-14]))
    writer.close()
    assert [reason for _, reason in faults_of(capsys, "c.rec")[1]] == [
        f"record {i}: its picture is cut off" for i in range(4)]
    assert main(["rec", "show", "c.rec", "-o", "c.png"]) in (OK, FAILED)


def test_index(capsys: pytest.CaptureFixture[str]):
    before = Path("p.idx").read_bytes()
    Path("p.idx").unlink()
    assert main(["rec", "index", "p.rec"]) == OK and Path("p.idx").read_bytes() == before
    assert capsys.readouterr().out == "p.idx: 4 records; keys: the ids of their headers\n"
    assert main(["rec", "index", "t.rec", "-o", "own.idx", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["keys"] == "numbers of the records"
    reader = mx.recordio.MXIndexedRecordIO("own.idx", "t.rec", "r")
    assert reader.keys == [0, 1, 2, 3] and reader.read_idx(3) == b"x" * 70000
    with open("p.rec", "ab") as file:
        file.write(b"\0" * 5)
    assert main(["rec", "index", "p.rec"]) == FAILED and Path("p.idx").read_bytes() == before


def test_show(capsys: pytest.CaptureFixture[str]):
    assert main(["rec", "show", "p.rec", "--grid", "1x2", "-o", "one.png"]) == OK
    assert main(["rec", "show", "p.rec", "-o", "all.jpg"]) == OK
    assert main(["rec", "show", "p.rec", "--grid", "9x3", "-o", "all.png", "--json"]) == OK
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["rows"], said["columns"], said["pictures"], said["damaged"]) == (2, 3, 4, 0)
    one, two = cv2.imread("one.png"), cv2.imread("all.png")
    assert one.shape[1] * 3 == two.shape[1] * 2 and two.shape[0] == 2 * one.shape[0]
    np.testing.assert_array_equal(two[:one.shape[0], :one.shape[1]], one)
    is_red = (two == (0, 0, 255)).all(2)  # the boxes of the last picture, in the second row
    assert not is_red[:one.shape[0]].any() and not is_red[:, one.shape[1] // 2:].any()
    rows, columns = np.nonzero(is_red)
    assert abs(columns.max() - columns.min() - 0.65 * 160) <= 3 and abs(rows.max() - rows.min() - 0.7 * 160) <= 3


def test_show_of_a_picture_that_cannot_be_decoded(capsys: pytest.CaptureFixture[str]):
    writer = mx.recordio.MXRecordIO("d.rec", "w")
    writer.write(mx.recordio.pack((0, 1.0, 0, 0), CONTENTS[0]))
    writer.write(mx.recordio.pack((0, 1.0, 0, 0), CONTENTS[1][:40]))
    writer.write(mx.recordio.pack((0, [1, 2], 0, 0), b"no picture"))
    writer.close()
    assert main(["rec", "show", "d.rec", "-o", "d.png"]) == FAILED
    assert "d.rec: record 1: the picture is cut off" in capsys.readouterr().err and cv2.imread("d.png") is not None


def test_show_without_opencv():
    done = command("rec", "show", "p.rec", "-o", "x.png", program="import sys\nsys.modules['cv2'] = None")
    assert done.returncode == NO_TARGET and "mxc-compiler[image]" in done.stderr
    for action in (["ls"], ["verify"], ["index"]):
        done = command("rec", action[0], "p.rec", program="import sys\nsys.modules['cv2'] = None")
        assert done.returncode == OK, done.stderr


def test_a_pipe_of_records():
    done = subprocess.run(["bash", "-c", f"'{sys.executable}' -m mxc rec verify <(cat p.rec)"], capture_output=True,
                          text=True)
    assert done.returncode == OK and ": 4 records in" in done.stdout


def test_heads_of_pictures():
    from PIL import Image

    random = np.random.RandomState(2)
    image = Image.fromarray(random.randint(0, 256, (37, 53, 3)).astype(np.uint8))
    exif = Image.Exif()
    exif[0x010E] = "d" * 5000
    for ending, options in (("JPEG", {}), ("JPEG", {"progressive": True}), ("JPEG", {"exif": exif}), ("PNG", {})):
        stream = io.BytesIO()
        image.save(stream, ending, **options)
        content = stream.getvalue()
        assert picture_head(content) == PictureHead(ending.lower(), 53, 37) and not is_cut_off(content)
        assert not is_cut_off(content + b"\0" * 9)
        for count in (12, 20, 100, len(content) // 2, len(content) - 2):
            head = picture_head(content[:count])
            assert is_cut_off(content[:count]) and head is not None and head.width in (0, 53)
    for content in (b"", b"\xff\xd8", b"text", b"GIF89a"):
        assert picture_head(content) is None and not is_cut_off(content)
