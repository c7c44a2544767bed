"""Files of records made of a list's pictures by several threads, and continued where they were interrupted.

While NAME.rec is made it is called NAME.rec.part, and beside it stands NAME.rec.journal: a line that says of which list
and options it is, and then a line for each line of the list, in their order:

    begin TAB end TAB size TAB time [TAB reason]

bytes in NAME.rec.part between which the record stands, and the length and time of change of the picture's file. A
picture that was left out has the reason instead of bytes. Who makes a file holds a lock on its journal.

OpenCV releases Python's lock, so threads do; processes take more CPU time, as each record has to be copied
(bench/records.py).
"""
from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

import mxc
from mxc.cli.main import tell
from mxc.cli.picture_lists import ENDING, parsed, read_lines
from mxc.compiler.error import FileAccessError, ModelFileError, MXNetError
from mxc.compiler.ops.pictures import with_short_side
from mxc.compiler.system import input_files, opencv
from mxc.picture_inputs import CUT_OFF
from mxc.recordio import IRHeader, pack
from mxc.runtime import record_file, whole_file
from mxc.runtime.picture_heads import is_cut_off

try:
    import fcntl
except ImportError:  # a system without such locks: nothing keeps two commands from writing one file
    fcntl = None  # type: ignore[assignment]

AHEAD = 4  # records for each thread that are made before they can be written
SETTINGS = ("pass_through", "resize", "center_crop", "quality", "color", "encoding", "pack_label")
Lines = Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Entry:
    """What the journal says of a line of the list. state: the length and time of change of the picture's file."""

    begin: int
    end: int
    state: tuple[int, int]
    reason: str = ""

    def line(self) -> bytes:
        """It as a line of the journal."""
        words = [str(number) for number in (self.begin, self.end, *self.state)]
        return os.fsencode("\t".join([*words, " ".join(self.reason.split())] if self.reason else words) + "\n")


@dataclass(frozen=True, slots=True)
class Packed:
    """A file of records that was made. source: its list. pictures: how many it has; left_out: (name, reason)
    of those that it lacks."""

    source: str
    rec: str
    idx: str
    pictures: int
    nbytes: int
    left_out: list[tuple[str, str]]


def pack_list(path: str, options: argparse.Namespace, show: Callable[[str], None]) -> Packed:
    """Make NAME.rec and NAME.idx of NAME.lst, or go on where an earlier command was interrupted.

    options: of `mxc im2rec`. show: is told how far it is. A picture that cannot be read is told and left out. Raises
    FileAccessError for a list that cannot be read or records that cannot be written, ModelFileError while another
    process writes them.
    """
    base = path.removesuffix(ENDING)
    raw, lines = read_lines(path)
    about = {"the list": hashlib.sha256(raw).hexdigest(), "mxc's version": mxc.VERSION,
             "the folder": os.path.realpath(options.root),
             "OpenCV's version": "" if options.pass_through else opencv.library().__version__,
             **{f"--{name.replace('_', '-')}": getattr(options, name) for name in SETTINGS}}
    try:
        with _locked(f"{base}.rec.journal") as journal:
            with open(f"{base}.rec.part", "a+b", 0) as records:
                entries = _kept(journal, records, about, lines, options.root)
                _write_all(entries, journal, records, lines, options, show)
                os.fsync(records.fileno())
            _publish(base, entries, lines, options.root)
            os.unlink(journal.name)
    except OSError as error:
        raise FileAccessError(f"{base}.rec", "written", error) from None
    left_out = [(_name(line, options.root), each.reason) for each, (_, line) in zip(entries, lines, strict=True)
                if each.reason]
    return Packed(path, f"{base}.rec", f"{base}.idx", len(entries) - len(left_out), entries[-1].end if entries else 0,
                  left_out)


@contextlib.contextmanager
def _locked(path: str) -> Iterator[BinaryIO]:
    """A journal to read and write, which no other process has."""
    while True:
        with open(path, "a+b", 0) as file:
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ModelFileError(path.removesuffix(".journal"), "another `mxc im2rec` is writing it\nwait until it "
                                     "is done, or end it and run this again") from None
            except OSError:  # a file system without locks
                pass
            if os.path.exists(path) and os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                yield file
                return


def _kept(journal: BinaryIO, records: BinaryIO, about: dict[str, Any], lines: Lines, root: str) -> list[Entry]:
    """The entries of an interrupted command that hold: the list, the options and the pictures are as they were, and
    the records are whole. What follows them in both files is cut off."""
    journal.seek(0)
    first, *rest = journal.read().split(b"\n")
    size = records.seek(0, os.SEEK_END)
    entries: list[Entry] = []
    changed = _changes(first, about) if size or rest else ["nothing"]
    if not changed:
        for text, (_, line) in zip(rest[:-1], lines, strict=False):  # the last one was not written to its end
            entry = _read_entry(text)
            if entry is None or entry.end > size or entry.state != _state(line, root):
                break
            entries.append(entry)
        while entries and not _is_whole(records.name, entries[-1]):
            entries.pop()
        if entries:
            tell("im2rec", f"{records.name}: it is there from an interrupted run; going on behind its first "
                 f"{len(entries):,} of {len(lines):,} pictures")
    elif size:
        tell("im2rec", f"{records.name}: it is there from an interrupted run, but since then {', '.join(changed)} "
             "changed; beginning anew")
    records.truncate(entries[-1].end if entries else 0)
    kept = first + b"\n" if not changed else json.dumps(about).encode() + b"\n"
    journal.truncate(0)
    journal.write(kept + b"".join(entry.line() for entry in entries))
    return entries


def _changes(first: bytes, about: dict[str, Any]) -> list[str]:
    """What is not as the first line of a journal says."""
    try:
        before = json.loads(first)
        return [name for name in about if before.get(name) != about[name]]
    except (ValueError, AttributeError):
        return ["its journal"]


def _read_entry(text: bytes) -> Entry | None:
    words = os.fsdecode(text).split("\t")
    try:
        begin, end, size, time = map(int, words[:4])
    except ValueError:
        return None
    return Entry(begin, end, (size, time), *words[4:5])


def _is_whole(path: str, entry: Entry) -> bool:
    """Whether the record of an entry can be read."""
    if entry.begin == entry.end:
        return True
    reader = record_file.Reader(path)
    try:
        content = reader.read_at(entry.begin)
        return content is not None and len(record_file.formatted(content)) == entry.end - entry.begin
    except MXNetError:
        return False
    finally:
        reader.close()


def _state(line: str, root: str) -> tuple[int, int]:
    """The length and time of change of a line's picture; zeros where it has none."""
    try:
        status = os.stat(os.path.join(root, parsed(line, root).path))
        return status.st_size, status.st_mtime_ns
    except (OSError, ValueError):
        return 0, 0


def _name(line: str, root: str) -> str:
    """The picture's path, or the line that has none."""
    try:
        return parsed(line, root).path
    except ValueError:
        return line


def _write_all(entries: list[Entry], journal: BinaryIO, records: BinaryIO, lines: Lines, options: argparse.Namespace,
               show: Callable[[str], None]) -> None:
    """Write the records of the lines behind those that have entries, and add theirs."""
    for entry, (number, line) in zip(entries, lines, strict=False):
        if entry.reason:
            _say_left_out(number, _name(line, options.root), entry.reason)
    end = entries[-1].end if entries else 0
    for made, record in _made_in_order(lines[len(entries):], options):
        number, line = lines[len(entries)]
        if made.reason:
            _say_left_out(number, _name(line, options.root), made.reason)
        _write(records, record)
        entry = replace(made, begin=end, end=end + len(record))
        _write(journal, entry.line())
        entries.append(entry)
        end = entry.end
        show(f"{len(entries):,} of {len(lines):,} pictures")


def _write(file: BinaryIO, content: bytes) -> None:
    """Write all of it: a file without a buffer may take less than it is given."""
    left = memoryview(content)
    while left:
        left = left[file.write(left):]


def _made_in_order(lines: Lines, options: argparse.Namespace) -> Iterator[tuple[Entry, bytes]]:
    """The records of lines, in their order, made by several threads some of them ahead."""
    waiting: collections.deque[Future[tuple[Entry, bytes]]] = collections.deque()
    had = None if options.pass_through else opencv.library().getNumThreads()
    pool = ThreadPoolExecutor(options.num_thread)
    try:
        if had is not None:
            opencv.library().setNumThreads(1)  # else each of ours would have some of OpenCV's
        for _, line in lines:
            waiting.append(pool.submit(_made, line, options))
            if len(waiting) >= AHEAD * options.num_thread:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        if had is not None:
            opencv.library().setNumThreads(had)


def _made(line: str, options: argparse.Namespace) -> tuple[Entry, bytes]:
    """A line's entry, without its place, and its record; the record is empty and the entry has a reason where the
    picture cannot be read."""
    state = _state(line, options.root)
    try:
        return Entry(0, 0, state), record_of(line, options)
    except (MXNetError, ValueError, OverflowError, struct.error) as error:
        reason = error.reason if isinstance(error, ModelFileError) else str(error)
        return Entry(0, 0, state, reason or type(error).__name__), b""


def record_of(line: str, options: argparse.Namespace) -> bytes:
    """The record of a line as it stands in the file. Raises ValueError for a line that is none, FileAccessError for a
    picture that cannot be read, MXNetError for one that cannot be decoded, encoded or packed."""
    picture = parsed(line, options.root)
    whole = options.pack_label and len(picture.labels) > 1
    header = IRHeader(0, np.array(picture.labels, np.float32) if whole else picture.labels[0], picture.key, 0)
    content = input_files.content(os.path.join(options.root, picture.path))
    if not content or is_cut_off(content):
        raise MXNetError(CUT_OFF if content else "the file is empty")
    if not options.pass_through:
        content = _encoded(opencv.decoded(content, options.color), options)
    return record_file.formatted(pack(header, content))


def _encoded(image: np.ndarray, options: argparse.Namespace) -> bytes:
    height, width = image.shape[:2]
    if options.center_crop:
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        image, height, width = image[top:top + side, left:left + side], side, side
    if options.resize:
        rows, columns = with_short_side(options.resize, height, width)
        image = opencv.resized(image.reshape(height, width, -1), columns, rows, interpolation=1)
    return opencv.encoded(image, options.quality, options.encoding)


def _publish(base: str, entries: list[Entry], lines: Lines, root: str) -> None:
    """Give the records their name, and write the index: the numbers of the list with the bytes where records begin."""
    index = "".join(f"{parsed(line, root).key}\t{each.begin}\n" for each, (_, line) in zip(entries, lines, strict=True)
                    if not each.reason)
    with whole_file.replacing(f"{base}.idx") as file:
        file.write(index.encode())
        file.flush()
        os.replace(f"{base}.rec.part", f"{base}.rec")  # as late as can be: both belong together


def _say_left_out(number: int, name: str, reason: str) -> None:
    tell("im2rec", f"{name}: {reason}; it is left out (line {number} of the list)")
