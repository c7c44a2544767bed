"""`mxc im2rec`: lists of the pictures in a folder, and files of records made of them."""
from __future__ import annotations

import argparse
import os
from typing import Any

from mxc.cli.main import tell
from mxc.cli.model import UsageError, positive, progress
from mxc.cli.tables import print_json, print_table
from mxc.compiler.error import MXNetError, TargetError

DESCRIPTION = """Make lists of the pictures in a folder (--list: PREFIX.lst), then of every list whose name begins with
PREFIX a file of records with its index (.rec and .idx), as MXNet's im2rec.py does. Iterators over pictures read them.

A line of a list has a number, one or more labels, and the path below ROOT, with tabulators between them.
A run that was interrupted is continued by the next one with the same list and options."""
EXAMPLES = """
  mxc im2rec train photos --list --recursive --train-ratio 0.9
  mxc im2rec train photos --resize 256 --quality 90
  mxc im2rec boxes photos --pass-through --pack-label"""

ENCODINGS = (".jpg", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc im2rec`."""
    parser.add_argument("prefix", metavar="PREFIX", help="what the names of the lists and records begin with")
    parser.add_argument("root", metavar="ROOT", help="the folder of the pictures")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    lists = parser.add_argument_group("lists")
    lists.add_argument("--list", action="store_true", help="make lists, no records")
    lists.add_argument("--exts", nargs="+", default=[".jpeg", ".jpg", ".png"], metavar="ENDING",
                       help="what names of pictures end in, in any case (default: .jpeg .jpg .png)")
    lists.add_argument("--recursive", action="store_true",
                       help="look into folders below ROOT; each that has pictures gets a label of its own, in the "
                       "order of their names (else: only those in ROOT itself, with label 0)")
    lists.add_argument("--shuffle", action=argparse.BooleanOptionalAction, default=True,
                       help="have the pictures in a random order, which is always the same (default), or in that of "
                       "their names")
    lists.add_argument("--chunks", type=positive, default=1, metavar="N",
                       help="make N lists, PREFIX_0.lst and so on (default: 1)")
    lists.add_argument("--train-ratio", type=share, default=1.0, metavar="SHARE",
                       help="the share of the pictures for PREFIX_train.lst (default: 1, which is PREFIX.lst); "
                       "PREFIX_val.lst gets the rest")
    lists.add_argument("--test-ratio", type=share, default=0.0, metavar="SHARE",
                       help="the share for PREFIX_test.lst (default: 0)")
    records = parser.add_argument_group("records")
    records.add_argument("--pass-through", action="store_true", help="pack the pictures' files as they are")
    records.add_argument("--resize", type=natural, default=0, metavar="PIXELS",
                         help="resize pictures so that their shorter side has so many pixels")
    records.add_argument("--center-crop", action="store_true",
                         help="first cut the square in the middle out of each picture")
    records.add_argument("--quality", type=natural, default=95, metavar="N",
                         help="1 to 100 for .jpg, 0 to 9 for .png, which small N makes faster (default: 95; .png: 9)")
    records.add_argument("--encoding", choices=ENCODINGS, default=".jpg",
                         help="what pictures are encoded as (default: .jpg)")
    records.add_argument("--color", type=int, choices=[-1, 0, 1], default=1,
                         help="1: three colours (default), 0: grey, -1: what each picture has")
    records.add_argument("--pack-label", action="store_true", help="pack all labels of a line (else: the first)")
    records.add_argument("--num-thread", type=positive, default=None, metavar="N",
                         help="threads that make records (default: the CPUs); the result is the same with any number")


def share(text: str) -> float:
    """A number from 0 to 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError
    return number


def natural(text: str) -> int:
    """A number of at least 0."""
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def run(options: argparse.Namespace) -> int:
    """Make lists or records; 1 where something was left out. Raises UsageError for options that do not go together,
    MXNetError where there is nothing to do."""
    if not os.path.isdir(options.root):
        raise MXNetError(f"{options.root}: there is no such folder\ngive the folder that the pictures are in as ROOT")
    return make_lists(options) if options.list else make_records(options)


def make_lists(options: argparse.Namespace) -> int:
    """Write the lists; 1 where a picture's name cannot stand in one."""
    from mxc.cli import picture_lists

    if options.train_ratio + options.test_ratio > 1:
        raise UsageError(f"--train-ratio {options.train_ratio:g} --test-ratio {options.test_ratio:g}: expected shares "
                         "that are 1 together, or less")
    with progress(f"looking for pictures in {options.root}"):
        pictures = list(picture_lists.pictures_in(options.root, options.exts, options.recursive))
    fit = [each for each in pictures if not picture_lists.SEPARATORS & set(each.path)]
    if not fit:
        raise MXNetError(f"{options.root}: there is no picture whose name ends in {', '.join(options.exts)}\n"
                         + ("" if options.recursive else "--recursive looks into the folders below it too; ")
                         + "--exts gives other endings")
    for each in pictures:
        if picture_lists.SEPARATORS & set(each.path):
            tell("im2rec", f"{each.path!r}: a tabulator or an end of line cannot stand in a list; it is left out")
    lists = picture_lists.parted(picture_lists.shuffled(fit) if options.shuffle else fit, options.prefix,
                                 options.chunks, options.train_ratio, options.test_ratio)
    for path, part in lists.items():
        picture_lists.write_list(path, part)
    classes = {os.path.dirname(each.path) or ".": int(each.labels[0]) for each in fit} if options.recursive else {}
    if options.json:
        print_json({"lists": [{"file": path, "pictures": len(part)} for path, part in lists.items()],
                    "labels": classes, "left_out": len(pictures) - len(fit)})
        return int(len(fit) < len(pictures))
    if classes:
        print_table(("folder", "label"), [(name, str(label)) for name, label in classes.items()], right=(1,))
    for path, part in lists.items():
        print(f"{path}: {len(part):,} pictures")
    return int(len(fit) < len(pictures))


def make_records(options: argparse.Namespace) -> int:
    """Write a file of records for each list; 1 where pictures were left out."""
    from mxc.cli import picture_lists
    from mxc.cli.machine import facts

    lists = picture_lists.lists_of(options.prefix)
    if not lists:
        raise MXNetError(f"{options.prefix}: there is no list whose name begins so, as {options.prefix}"
                         f"{picture_lists.ENDING}\nmake one: mxc im2rec {options.prefix} {options.root} --list")
    options.quality = checked_quality(options)
    options.num_thread = options.num_thread or facts()["cpus"]
    if not options.pass_through:
        with_opencv(", or give --pass-through, which packs the files as they are")
    from mxc.cli.picture_records import pack_list

    made = []
    for path in lists:
        with progress(f"packing {path}") as show:
            made.append(pack_list(path, options, show))
    if options.json:
        print_json([as_data(each) for each in made])
    else:
        for each in made:
            left_out = f", {len(each.left_out):,} left out" if each.left_out else ""
            print(f"{each.rec}: {each.pictures:,} pictures in {each.nbytes:,} bytes{left_out}")
    return int(any(each.left_out for each in made))


def checked_quality(options: argparse.Namespace) -> int:
    """The quality, as the encoding has it. Raises UsageError for one that it does not have."""
    most = 100 if options.encoding == ".jpg" else 9
    if options.encoding == ".png" and options.quality == 95:  # the default, which is of .jpg
        return most
    if not int(options.encoding == ".jpg") <= options.quality <= most:
        raise UsageError(f"--quality {options.quality}: {options.encoding} has {int(most == 100)} to {most}")
    return int(options.quality)


def with_opencv(advice: str) -> None:
    """Raise TargetError where OpenCV is not there. advice: what else there is to do."""
    from mxc.compiler.system import opencv

    try:
        opencv.library()
    except MXNetError as error:
        raise TargetError(f"{error}\ninstall it{advice}") from None


def as_data(made: Any) -> dict[str, Any]:
    """A file of records as plain data."""
    return {"list": made.source, "rec": made.rec, "idx": made.idx, "pictures": made.pictures, "bytes": made.nbytes,
            "left_out": [{"picture": name, "reason": reason} for name, reason in made.left_out]}
