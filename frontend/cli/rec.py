"""`mxc rec`: what a file of records holds, whether it is sound, its index, and its pictures."""
from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from mxc.cli.main import tell
from mxc.cli.model import UsageError, progress
from mxc.cli.tables import print_json, print_table
from mxc.compiler.error import ArgumentError, MXNetError

DESCRIPTION = """Look into a file of records, NAME.rec, and the index beside it, NAME.idx, if there is one.

  ls      the records: number, key, where they begin, bytes, label, and the picture's size
  cat     write what is in one record, without its header, to a file (-o) or to standard output
  verify  read the whole file and its index, and tell every fault with the byte where it is; exit code 1 if there is one
  index   make the index anew (-o: of another name)
  show    draw the first pictures with their labels and boxes into one picture (-o)

What is damaged is told, and left out: the next record is looked for behind it."""
EXAMPLES = """
  mxc rec ls train.rec
  mxc rec cat train.rec 12 -o picture.jpg
  mxc rec verify train.rec
  mxc rec index train.rec
  mxc rec show train.rec --grid 4x4 -o grid.png"""
GRID = (4, 4)
LABELS = 6  # numbers of a label that a table shows
OF_ACTION = {  # which actions have an option
    "record": ("cat",), "key": ("cat",), "raw": ("cat",), "grid": ("show",), "output": ("cat", "index", "show")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc rec`."""
    parser.add_argument("action", choices=list(ACTIONS), metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument("file", metavar="FILE", help="the file of records, NAME.rec")
    parser.add_argument("record", nargs="?", metavar="RECORD", help="cat: the number of a record, from 0 on")
    parser.add_argument("--key", metavar="KEY", help="cat: the record's key in the index, in place of its number")
    parser.add_argument("--raw", action="store_true", help="cat: write the header too")
    parser.add_argument("--grid", type=grid, metavar="RxC",
                        help="show: rows and columns of pictures (default: {}x{})".format(*GRID))
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="cat, index, show: the file to write; show: .png or .jpg")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def grid(text: str) -> tuple[int, int]:
    """Rows and columns, as 4x4."""
    rows, columns = (int(word) for word in text.lower().split("x"))
    if rows < 1 or columns < 1:
        raise ValueError
    return rows, columns


def run(options: argparse.Namespace) -> int:
    """Do what ACTION says. Raises UsageError for options of other actions, MXNetError for a file that cannot be read
    or has no such record."""
    for name, actions in OF_ACTION.items():
        value = getattr(options, name)
        if value not in (None, False) and options.action not in actions:
            word = value if name == "record" else f"--{name}"
            raise UsageError(f"{word}: `mxc rec {options.action}` has no use for it; {' and '.join(actions)} "
                             f"{'have' if len(actions) > 1 else 'has'}")
    return int(ACTIONS[options.action](options))


def told(fault: Any, options: argparse.Namespace) -> None:
    """Say what is wrong with the file."""
    tell("rec", f"{options.file}, byte {fault.offset}: {fault.reason}")


def keys_of(options: argparse.Namespace) -> dict[int, str]:
    """The keys of the index by the byte; none, which is told, where it cannot be read."""
    from mxc.cli.record_items import read_index

    try:
        return {offset: key for key, offset in read_index(options.file)}
    except MXNetError as error:
        tell("rec", str(error))
        return {}


def ls(options: argparse.Namespace) -> int:
    """List the records; 1 where some of the file is damaged."""
    from mxc.cli.record_items import items, opened
    from mxc.runtime.record_scan import Fault

    found, faults = [], 0
    with opened(options.file) as scan, progress(f"reading {options.file}"):
        for each in items(scan, keys_of(options)):
            if isinstance(each, Fault):
                told(each, options)
                faults += 1
            else:
                found.append(each.data())
    if options.json:
        print_json(found)
    else:
        print_table(("record", "key", "offset", "bytes", "label", "image"),
                    [(str(each["record"]), each["key"], str(each["offset"]), f"{each['bytes']:,}",
                      label_words(each["label"]), image_words(each["image"])) for each in found], right=(0, 1, 2, 3))
    return int(faults > 0)


def label_words(label: Any) -> str:
    """A label for a table: its first numbers."""
    numbers = label if isinstance(label, list) else [] if label is None else [label]
    return " ".join(f"{number:g}" for number in numbers[:LABELS]) + " …" * (len(numbers) > LABELS)


def image_words(image: dict[str, Any] | None) -> str:
    """A picture's kind and size for a table."""
    return "{kind} {width}x{height}".format(**image) if image else ""


def cat(options: argparse.Namespace) -> int:
    """Write one record's content."""
    from mxc.cli.record_items import item, opened
    from mxc.runtime import whole_file

    if (options.record is None) == (options.key is None):
        raise UsageError("RECORD: cat needs the number of a record, or its key as --key KEY")
    if options.json and not options.output:
        raise UsageError("--json: standard output gets the record's content; give -o FILE for that")
    with opened(options.file) as scan:
        record, number = by_number(options, scan) if options.key is None else by_key(options, scan)
        each = item(scan, record, number, keys_of(options), whole=True)
        content = scan.content(record) if options.raw else each.content
    if options.output:
        with whole_file.replacing(options.output) as file:
            file.write(content)
        if options.json:
            print_json({**each.data(), "output": options.output})
        else:
            print(f"{options.output}: {len(content):,} bytes of record {number}")
    elif sys.stdout is not None:
        sys.stdout.buffer.write(content)
    return 0


def by_number(options: argparse.Namespace, scan: Any) -> tuple[Any, int]:
    """The record of a number, and the number. Raises UsageError for a word that is none."""
    from mxc.runtime.record_scan import Record

    wanted = int(options.record) if options.record.isdecimal() else -1
    count = 0
    for each in scan.found():
        if not isinstance(each, Record):
            told(each, options)
            continue
        if count == wanted:
            return each, count
        count += 1
    raise UsageError(f"RECORD {options.record}: {options.file} has {count:,} records, from number 0 on")


def by_key(options: argparse.Namespace, scan: Any) -> tuple[Any, int]:
    """The record of a key, and its number. Raises MXNetError where the index has no such key or is not the file's."""
    from mxc.cli.record_items import index_path, read_index
    from mxc.runtime.record_scan import Record

    offsets = dict(read_index(options.file))
    if options.key not in offsets:
        raise ArgumentError(f"{index_path(options.file)}: it has no key {options.key!r} among its {len(offsets):,}\n"
                            "`mxc rec ls` lists the records, `mxc rec index` makes an index")
    records = (each for each in scan.found() if isinstance(each, Record))
    for number, each in enumerate(records):
        if each.offset == offsets[options.key]:
            return each, number
    raise MXNetError(f"{index_path(options.file)}: key {options.key}: no record begins at byte "
                     f"{offsets[options.key]} of {options.file}\n`mxc rec index` makes the index anew")


def verify(options: argparse.Namespace) -> int:
    """Read everything; 1 when there is a fault."""
    from mxc.cli.record_check import check

    with progress(f"reading {options.file}") as show:
        records, nbytes, faults = check(options.file, show)
    if options.json:
        print_json({"file": options.file, "records": records, "bytes": nbytes,
                    "faults": [{"file": each.file, "offset": each.offset, "reason": each.reason} for each in faults]})
    else:
        for each in faults:
            print(f"{each.file}, byte {each.offset}: {each.reason}" if each.offset is not None else
                  f"{each.file}: {each.reason}")
        print(f"{options.file}: {records:,} records in {nbytes:,} bytes, {len(faults):,} faults")
    return int(bool(faults))


def index(options: argparse.Namespace) -> int:
    """Write the index; 1 where some of the file is damaged."""
    from mxc.cli.record_items import index_path, items, opened
    from mxc.runtime import whole_file
    from mxc.runtime.record_scan import Fault

    found, faults, target = [], 0, options.output or index_path(options.file)
    if os.path.realpath(target) == os.path.realpath(options.file):
        raise UsageError(f"--output {target}: that is the file of records itself")
    with opened(options.file) as scan, progress(f"reading {options.file}"):
        for each in items(scan, {}):
            if isinstance(each, Fault):
                told(each, options)
                faults += 1
            else:
                found.append((None if each.header is None else each.header.id, each.record.offset))
    ids = [number for number, _ in found]
    has_ids = None not in ids and len(set(ids)) == len(ids)
    lines = [f"{number if has_ids else i}\t{offset}\n" for i, (number, offset) in enumerate(found)]
    with whole_file.replacing(target) as file:
        file.write("".join(lines).encode())
    kind = "ids of their headers" if has_ids else "numbers of the records"
    if options.json:
        print_json({"file": target, "records": len(found), "keys": kind, "faults": faults})
    else:
        print(f"{target}: {len(found):,} records; keys: the {kind}")
    return int(faults > 0)


def show(options: argparse.Namespace) -> int:
    """Draw the grid; 1 where a picture or some of the file before the last one is damaged."""
    from mxc.cli.im2rec import ENCODINGS, with_opencv
    from mxc.cli.record_items import items, opened
    from mxc.runtime.record_scan import Fault

    ending = os.path.splitext(options.output or "")[1].lower()
    if ending not in ENCODINGS:
        raise UsageError(f"--output{f' {options.output}' if options.output else ''}: show needs a file to draw into, "
                         f"named {' or '.join(ENCODINGS)}")
    with_opencv("")
    from mxc.cli.picture_grid import Grid

    drawn = Grid(*(options.grid or GRID))
    faults = 0
    with opened(options.file) as scan, progress(f"drawing {options.output}"):
        for each in items(scan, keys_of(options), whole=True):
            if isinstance(each, Fault):
                told(each, options)
                faults += 1
            elif each.header is not None and not drawn.add(each):
                break
    if not drawn.tiles:
        raise MXNetError(f"{options.file}: it has no picture to show\n`mxc rec ls` lists its records")
    drawn.save(options.output, ending)
    for number, reason in drawn.faults:
        tell("rec", f"{options.file}: record {number}: {reason}")
    if options.json:
        print_json({"file": options.output, "rows": drawn.rows, "columns": drawn.columns, "pictures": len(drawn.tiles),
                    "damaged": len(drawn.faults)})
    else:
        print(f"{options.output}: {len(drawn.tiles):,} pictures in a grid of {drawn.rows}x{drawn.columns}")
    return int(bool(faults or drawn.faults))


ACTIONS = {"ls": ls, "cat": cat, "verify": verify, "index": index, "show": show}
