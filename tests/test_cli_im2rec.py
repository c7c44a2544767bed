"""`mxc im2rec`: lists and records as MXNet 1.9.1 makes them (golden/im2rec_calls.json), pictures of all kinds and none,
and runs that are killed, interrupted, repeated, or two at once."""
from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from commands import command

import mxc as mx
from mxc.cli import picture_records
from mxc.cli.main import BAD_FILE, FAILED, INTERRUPTED, NO_TARGET, OK, USAGE, main

calls = importlib.import_module("golden.im2rec_calls")
REAL = json.loads(calls.PATH.read_text())
COUNT = 12  # of the pictures in `many`
PACK = ["im2rec", "many", "pictures", "--resize", "16", "--encoding", ".png"]
# Ends the process, or interrupts it, while it writes for the COUNT-th time; half of what it was to write is written.
STOP = """
import os, signal
from mxc.cli import picture_records
left, write = {count}, picture_records._write
def stop(file, content):
    global left
    left -= 1
    if not left:
        file.write(content[:len(content) // 2])
        os.kill(os.getpid(), signal.{how})
    write(file, content)
picture_records._write = stop"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def many() -> list[Path]:
    """Pictures of several kinds, and their list."""
    random = np.random.RandomState(0)
    Path("pictures").mkdir()
    lines, paths = [], []
    for i in range(COUNT):
        path = Path("pictures", f"{i}.{'png' if i % 3 else 'jpg'}")
        cv2.imwrite(str(path), random.randint(0, 256, (20 + i, 40 - 2 * i, (3, 1, 4)[i % 3])).astype(np.uint8))
        lines.append(f"{5 * i}\t{i % 3}\t{path.name}\n")
        paths.append(path)
    Path("many.lst").write_text("".join(lines))
    return paths


def records() -> tuple[bytes, bytes]:
    """What is in the file of records and its index."""
    return Path("many.rec").read_bytes(), Path("many.idx").read_bytes()


def undisturbed() -> tuple[bytes, bytes]:
    """What a run makes that nothing disturbs; the files are removed."""
    assert main(PACK) == OK
    made = records()
    for name in ("many.rec", "many.idx"):
        os.unlink(name)
    assert no_parts()
    return made


def no_parts() -> bool:
    return not [path for path in Path().iterdir() if path.suffix in (".part", ".journal") or path.name[0] == "."]


def test_every_case_is_recorded():
    assert REAL.keys() == {*calls.LISTS, *calls.PACKED}


@pytest.mark.parametrize("case", calls.LISTS)
def test_lists_are_mxnets(case: str, capsys: pytest.CaptureFixture[str]):
    lists, labels = REAL[case]
    calls.tree("pictures")
    assert main(["im2rec", "out", "pictures", "--list", "--json", *case.split()]) == OK
    assert {name: text.decode() for name, text in calls.made(".", [".lst"]).items()} == lists
    said = json.loads(capsys.readouterr().out)
    assert said["labels"] == {name: int(label) for name, label in labels} and said["left_out"] == 0
    assert {each["file"]: each["pictures"] for each in said["lists"]} == {n: t.count("\n") for n, t in lists.items()}


@pytest.mark.parametrize("case", calls.PACKED)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_records_of_files_as_they_are_are_mxnets(case: str, threads: str):
    for key, labels, name, content in calls.ROWS:
        Path("files", name).parent.mkdir(parents=True, exist_ok=True)
        Path("files", name).write_bytes(content)
        with open("hand.lst", "a", encoding="utf-8") as file:
            file.write("\t".join([str(key), *map(str, labels), name]) + "\n")
    options = ["--pass-through", "--num-thread", threads, *["--pack-label"] * calls.PACKED[case]]
    assert main(["im2rec", "hand", "files", *options]) == OK
    assert {name: content.hex() for name, content in calls.made(".", [".rec", ".idx"]).items()} == REAL[case]


@pytest.mark.parametrize(("options", "color", "quality", "ending", "side"), [
    ([], 1, 95, ".jpg", 0), (["--quality", "40", "--color", "0"], 0, 40, ".jpg", 0),
    (["--encoding", ".png", "--quality", "3", "--color", "-1"], -1, 3, ".png", 0),
    (["--encoding", ".png"], 1, 9, ".png", 0), (["--center-crop", "--color", "0"], 0, 95, ".jpg", 0),
    (["--resize", "30"], 1, 95, ".jpg", 30), (["--center-crop", "--resize", "7"], 1, 95, ".jpg", 7)])
def test_records_are_those_of_pack_img(many: list[Path], options: list[str], color: int, quality: int, ending: str,
                                       side: int):
    assert main(["im2rec", "many", "pictures", *options]) == OK
    writer = mx.recordio.MXIndexedRecordIO("own.idx", "own.rec", "w")
    for i, path in enumerate(many):
        image = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), color)
        height, width = image.shape[:2]
        if "--center-crop" in options:
            top, left = max(0, height - width) // 2, max(0, width - height) // 2
            image = image[top:top + min(height, width), left:left + min(height, width)]
            height = width = min(height, width)
        if side:
            size = (side, height * side // width) if height > width else (width * side // height, side)
            image = mx.image.imresize(mx.nd.array(image, dtype="uint8"), *size, interp=1).asnumpy()
        header = mx.recordio.IRHeader(0, float(i % 3), 5 * i, 0)
        writer.write_idx(5 * i, mx.recordio.pack_img(header, image, quality, ending))
    writer.close()
    assert records() == (Path("own.rec").read_bytes(), Path("own.idx").read_bytes())


def test_the_number_of_threads_and_a_repetition_change_nothing(many: list[Path]):
    made = undisturbed()
    for threads in ("1", "2", "5", "40"):
        assert main([*PACK, "--num-thread", threads]) == OK
        assert records() == made and no_parts()


@pytest.mark.parametrize("count", [1, 2, 3, 4, 11, 12, 2 * COUNT - 1, 2 * COUNT])
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_a_stopped_run_is_continued(many: list[Path], count: int, how: str):
    made = undisturbed()
    Path("many.rec").write_bytes(b"the last good one")
    done = command(*PACK, program=STOP.format(count=count, how=how))
    assert done.returncode == (INTERRUPTED if how == "SIGINT" else -9), done.stderr
    assert Path("many.rec").read_bytes() == b"the last good one" and not Path("many.idx").exists()
    done = command(*PACK)
    whole = (count - 1) // 2
    assert done.returncode == OK and records() == made and no_parts()
    assert (f"going on behind its first {whole} of {COUNT} pictures" in done.stderr) == (whole > 0)


@pytest.mark.parametrize("change", ["list", "option", "records", "journal", "picture", "no records"])
def test_a_stopped_run_of_something_else_begins_anew(many: list[Path], change: str):
    command(*PACK, program=STOP.format(count=15, how="SIGKILL"))
    pack = PACK
    if change == "list":
        Path("many.lst").write_text("".join(reversed(Path("many.lst").read_text().splitlines(keepends=True))))
    elif change == "option":
        pack = [*PACK, "--color", "0"]
    elif change == "records":
        with open("many.rec.part", "r+b") as file:
            file.truncate(4000)
    elif change == "journal":
        Path("many.rec.journal").write_bytes(b"\xff\x00")
    elif change == "picture":
        many[2].write_bytes(many[5].read_bytes())
    else:
        os.unlink("many.rec.part")
    done = command(*pack)
    assert done.returncode == OK, done.stderr
    made = records()
    text = {"list": "the list changed; beginning anew", "option": "--color changed; beginning anew",
            "journal": "its journal changed; beginning anew", "picture": "behind its first 2 of 12 pictures",
            "records": "going on behind its first", "no records": ""}[change]
    assert text in done.stderr and bool(done.stderr) == bool(text)
    assert main(pack) == OK and records() == made


def test_two_runs_at_once(many: list[Path]):
    made = undisturbed()
    for _ in range(3):
        runs = [subprocess.Popen([sys.executable, "-m", "mxc", *PACK, "--num-thread", "1"], stderr=subprocess.PIPE,
                                 text=True) for _ in range(3)]
        ended = [(run.communicate()[1], run.returncode) for run in runs]
        assert {code for _, code in ended} <= {OK, BAD_FILE} and OK in [code for _, code in ended]
        assert all("another `mxc im2rec` is writing it" in said for said, code in ended if code == BAD_FILE), ended
        assert records() == made and no_parts()


def test_a_second_run_is_refused(many: list[Path], capsys: pytest.CaptureFixture[str]):
    with picture_records._locked("many.rec.journal"):
        assert main(PACK) == BAD_FILE
    first, last = capsys.readouterr().err.splitlines()
    assert first == "mxc im2rec: many.rec: another `mxc im2rec` is writing it" and "run this again" in last
    assert not Path("many.rec").exists()
    assert main(PACK) == OK


@pytest.mark.parametrize("options", [[], ["--pass-through"]])
def test_pictures_that_cannot_be_read_are_left_out(many: list[Path], options: list[str],
                                                   capsys: pytest.CaptureFixture[str]):
    whole = many[0].read_bytes()
    many[0].write_bytes(whole[:len(whole) // 2])
    many[1].write_bytes(many[1].read_bytes()[:-20])
    many[2].write_bytes(b"")
    many[4].unlink()
    many[5].unlink()
    many[5].mkdir()
    if not options:
        many[3].write_bytes(b"no picture at all")
    with open("many.lst", "a") as file:
        file.write("\n\n7\t8\nx\t1\t6.jpg\n7\tx\t6.jpg\n-7\t1\t6.jpg\n99\t1\t6.jpg\r\n98\t1\t 7.png \n")
    assert main(["im2rec", "many", "pictures", "--json", *options]) == FAILED
    printed = capsys.readouterr()
    (made,) = json.loads(printed.out)
    left_out = {each["picture"]: each["reason"] for each in made["left_out"]}
    assert len(made["left_out"]) == len(printed.err.splitlines()) == 10 - len(options)
    assert [name for name, reason in left_out.items() if "cut off" in reason] == ["0.jpg", "1.png"]
    assert left_out["2.png"] == "the file is empty" and "No such file" in left_out["4.png"]
    assert "Is a directory" in left_out["5.png"] and ("3.jpg" in left_out) == (not options)
    assert "mxc im2rec: 4.png: cannot be read: No such file or directory; it is left out (line 5 of the list)" \
        in printed.err
    reader = mx.recordio.MXIndexedRecordIO("many.idx", "many.rec", "r")
    assert reader.keys == [*[15] * len(options), *range(30, 60, 5), 99, 98] and made["pictures"] == len(reader.keys)
    assert all(mx.recordio.unpack_img(reader.read_idx(key))[1].size for key in reader.keys)


def test_what_was_left_out_before_a_stop_is_told_again(many: list[Path]):
    many[1].write_bytes(b"none")
    command(*PACK, program=STOP.format(count=9, how="SIGKILL"))
    done = command(*PACK)
    assert done.returncode == FAILED and "1.png: decoding an image" in done.stderr and "its first 4" in done.stderr
    made = records()
    assert main(PACK) == FAILED and records() == made


def test_names_with_spaces_tabulators_and_bytes_that_are_no_text(capsys: pytest.CaptureFixture[str]):
    names = ["a b.jpg", " c.jpg ", "ü 漢.jpg", "t\tab.jpg", "line\n.jpg", os.fsdecode(b"\xff.jpg")]
    names[1] = " c.jpg"
    Path("files").mkdir()
    for name in names:
        Path("files", name).write_bytes(b"x" + os.fsencode(name))
    assert main(["im2rec", "l", "files", "--list", "--no-shuffle"]) == FAILED
    said = capsys.readouterr().err
    assert "'t\\tab.jpg'" in said and "'line\\n.jpg'" in said and len(said.splitlines()) == 2
    assert main(["im2rec", "l", "files", "--pass-through"]) == OK
    reader = mx.recordio.MXRecordIO("l.rec", "r")
    found = sorted(mx.recordio.unpack(record)[1][1:] for record in iter(reader.read, None))
    assert found == sorted(os.fsencode(name) for name in names if not {"\t", "\n"} & set(name))


def test_nothing_to_do(capsys: pytest.CaptureFixture[str]):
    Path("files/below").mkdir(parents=True)
    Path("files/below/a.jpg").touch()
    for arguments, text in (
            (["l", "nosuch", "--list"], "nosuch: there is no such folder"),
            (["l", "files", "--list"], "--recursive looks into the folders below it too"),
            (["l", "files", "--list", "--recursive", "--exts", ".png"], "there is no picture whose name ends in .png"),
            (["l", "files"], "make one: mxc im2rec l files --list"),
            (["nosuch/l", "files"], "nosuch: cannot be read"),
            (["nosuch/l", "files", "--list", "--recursive"], "nosuch/l.lst: cannot be written")):
        assert main(["im2rec", *arguments]) == BAD_FILE
        printed = capsys.readouterr()
        assert text in printed.err and printed.out == "" and len(printed.err.splitlines()) == 2
    assert not list(Path().glob("l*"))
    Path("l.lst").touch()
    assert main(["im2rec", "l", "files"]) == OK
    assert Path("l.rec").read_bytes() == Path("l.idx").read_bytes() == b""


@pytest.mark.parametrize("options", [
    ["--list", "--train-ratio", "0.8", "--test-ratio", "0.3"], ["--list", "--train-ratio", "1.5"],
    ["--list", "--chunks", "0"], ["--quality", "0"], ["--quality", "101"], ["--encoding", ".png", "--quality", "10"],
    ["--encoding", ".gif"], ["--color", "2"], ["--resize", "-1"], ["--num-thread", "0"]])
def test_wrong_options(many: list[Path], options: list[str], capsys: pytest.CaptureFixture[str]):
    try:
        code = main(["im2rec", "many", "pictures", *options])
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code == USAGE and options[-2] in capsys.readouterr().err


def test_links_that_lead_back_are_entered_once():
    Path("p/a").mkdir(parents=True)
    Path("p/a/1.jpg").touch()
    os.symlink("..", "p/a/back")
    os.symlink("a", "p/again")
    assert main(["im2rec", "l", "p", "--list", "--recursive", "--no-shuffle"]) == OK
    assert Path("l.lst").read_text() == "0\t0.000000\ta/1.jpg\n1\t1.000000\tagain/1.jpg\n"


def test_all_lists_that_begin_with_the_prefix_are_packed(many: list[Path], capsys: pytest.CaptureFixture[str]):
    assert main(["im2rec", "many", "pictures", "--list", "--train-ratio", "0.5", "--chunks", "2"]) == OK
    os.unlink("many.lst")
    assert main(["im2rec", "many", "pictures", "--pass-through"]) == OK
    names = [f"many_{i}_{part}" for i in range(2) for part in ("train", "val")]
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()[-4:]] == [f"{n}.rec" for n in names]
    Path("lists").mkdir()
    Path("many_0_val.lst").rename("lists/x.lst")
    assert main(["im2rec", "lists", "pictures", "--pass-through"]) == OK and Path("lists/x.rec").exists()


def test_a_full_disk_leaves_what_was_there(many: list[Path], monkeypatch: pytest.MonkeyPatch,
                                           capsys: pytest.CaptureFixture[str]):
    write, written = picture_records._write, 0

    def full(file, content: bytes) -> None:
        nonlocal written
        written += 1
        if written > 8:
            raise OSError(28, "No space left on device")
        write(file, content)

    monkeypatch.setattr(picture_records, "_write", full)
    assert main(PACK) == BAD_FILE and "many.rec: cannot be written: No space left" in capsys.readouterr().err
    assert not Path("many.rec").exists()
    monkeypatch.setattr(picture_records, "_write", write)
    assert main(PACK) == OK and "going on behind its first 4 of 12" in capsys.readouterr().err
    made = records()
    assert main(PACK) == OK and records() == made


def test_without_opencv(many: list[Path]):
    program = "import sys\nsys.modules['cv2'] = None"
    done = command(*PACK, program=program)
    assert done.returncode == NO_TARGET and "mxc-compiler[image]" in done.stderr and "--pass-through" in done.stderr
    done = command("im2rec", "many", "pictures", "--pass-through", program=program)
    assert done.returncode == OK, done.stderr


def test_an_iterator_reads_what_was_made(many: list[Path]):
    assert main(["im2rec", "many", "pictures", "--resize", "20", "--center-crop"]) == OK
    files = {"path_imgrec": "many.rec", "path_imgidx": "many.idx"}
    for data in (mx.io.ImageRecordIter(data_shape=(3, 16, 16), batch_size=4, **files),
                 mx.image.ImageIter(4, (3, 16, 16), **files)):
        batch = next(iter(data))
        assert batch.data[0].shape == (4, 3, 16, 16) and batch.label[0].asnumpy().tolist() == [0, 1, 2, 0]
