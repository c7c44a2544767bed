"""`mxc cache`: what the kernel cache holds and why, and keeping it in order."""
from __future__ import annotations

import argparse
import time
from typing import Any

from mxc.cli.model import UsageError
from mxc.cli.tables import kernel_words, print_facts, print_json, print_table
from mxc.compiler.error import MXNetError

DESCRIPTION = """Look into the directory where compiled kernels are kept, and keep it in order.

  ls       the kernels, those used last first
  info     how many there are, their bytes, and the limit
  explain  why kernels were compiled: that they are new, or what had changed (CPU, versions, options)
  verify   read every file and list those that would not be used; exit code 1 when there are any
  prune    remove what is damaged or unfinished, and the kernels used longest ago until the rest is within the limit
  clear    remove everything; what is needed is compiled again
  dir      the directory's path"""
EXAMPLES = """
  mxc cache info
  mxc cache explain convolution
  mxc cache prune --size 500M"""
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `mxc cache`."""
    parser.add_argument("action", choices=list(ACTIONS), metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument("word", nargs="?", metavar="WORD",
                        help="ls, explain: only kernels with this word in their name or key")
    parser.add_argument("--size", type=size, metavar="BYTES",
                        help="prune: the most bytes to keep, as 500M (default: MXC_CACHE_SIZE, 2G)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def size(text: str) -> int:
    """A number of bytes: `4096`, `500M`, `2G`."""
    number = text.strip().upper().removesuffix("B")
    scale = UNITS.get(number[-1:], 1)
    value = int(number[:-1] if scale > 1 else number) * scale
    if value < 1:
        raise ValueError
    return value


def run(options: argparse.Namespace) -> int:
    """Do what ACTION says. Raises UsageError for options of other actions, MXNetError where there is no cache."""
    from mxc.compiler.cache import open_cache

    if options.word is not None and options.action not in ("ls", "explain"):
        raise UsageError(f"{options.word}: `mxc cache {options.action}` is about all kernels")
    if options.size is not None and options.action != "prune":
        raise UsageError(f"--size: `mxc cache {options.action}` removes nothing by size; prune does")
    cache = open_cache()
    if cache is None:
        raise MXNetError("there is no kernel cache: MXC_CACHE_DIR is empty, or no directory can be used\n"
                         "set MXC_CACHE_DIR to a directory of your own")
    return int(ACTIONS[options.action](cache, options))


def found(cache: Any, word: str | None) -> list[Any]:
    """The entries with `word` in their name or key."""
    return [entry for entry in cache.entries() if word is None or word in entry.name or word in entry.key]


def ls(cache: Any, options: argparse.Namespace) -> int:
    """List the entries."""
    entries = found(cache, options.word)
    if options.json:
        print_json([as_data(entry) for entry in entries])
    else:
        print_table(("kernel", "bytes", "used", "key"),
                    [(kernel_words(entry.name), f"{entry.nbytes:,}", ago(entry.used), entry.key) for entry in entries],
                    right=(1,))
    return 0


def info(cache: Any, options: argparse.Namespace) -> int:
    """Print sums over the directory."""
    about = cache.info()
    data = {"directory": str(about.path), "writable": cache.writable, "kernels": about.entries, "bytes": about.nbytes,
            "limit": about.limit, "damaged": about.refused, "unfinished": about.unfinished,
            "further_directories": [str(path) for path in about.readable]}
    if options.json:
        print_json(data)
    else:
        print_facts({name.replace("_", " "): ", ".join(value) if isinstance(value, list) else
                     {True: "yes", False: "no"}[value] if isinstance(value, bool) else
                     f"{value:,}" if isinstance(value, int) else value for name, value in data.items()})
    return 0


def explain(cache: Any, options: argparse.Namespace) -> int:
    """Print why each entry was compiled."""
    entries = found(cache, options.word)
    if options.json:
        print_json([as_data(entry) for entry in entries])
        return 0
    for entry in entries:
        print(f"{entry.name} ({entry.key}): {entry.reason or 'not recorded'}")
    if not entries:
        print(f"no kernel has {options.word!r} in its name or key" if options.word else "the cache is empty")
    return 0


def verify(cache: Any, options: argparse.Namespace) -> int:
    """Read all files; 1 when there are some that would not be used."""
    wrong, foreign = cache.verify(), cache.foreign()
    if options.json:
        print_json({"kernels": cache.info().entries, "foreign": [str(place) for place in foreign],
                    "wrong": [{"file": str(place), "reason": reason} for place, reason in wrong]})
    else:
        for place in foreign:
            print(f"{place}: it is not mxc's; it is not used, and prune and clear leave it")
        for place, reason in wrong:
            print(f"{place}: {reason}")
        print(f"{cache.info().entries} kernels, {len(wrong)} of them would not be used"
              + ("; `mxc cache prune` removes them" if wrong else ""))
    return 1 if wrong else 0


def prune(cache: Any, options: argparse.Namespace) -> int:
    """Remove what is damaged, unfinished or too much."""
    from mxc.compiler.cache import set_aside

    for place, _ in cache.verify():  # set it aside, as a run that needs it would: that is what prune removes
        set_aside(place)
    return removed(cache.prune(options.size), options)


def clear(cache: Any, options: argparse.Namespace) -> int:
    """Remove everything."""
    return removed(cache.clear(), options)


def removed(gone: Any, options: argparse.Namespace) -> int:
    """Print what was removed."""
    if options.json:
        print_json({"files": gone.files, "bytes": gone.nbytes})
    else:
        print(f"removed {gone.files} files of {gone.nbytes:,} bytes")
    return 0


def directory(cache: Any, options: argparse.Namespace) -> int:
    """Print the path."""
    print_json({"directory": str(cache.path)}) if options.json else print(cache.path)
    return 0


def as_data(entry: Any) -> dict[str, Any]:
    """An entry as plain data."""
    return {"key": entry.key, "kernel": entry.name, "file": str(entry.place), "bytes": entry.nbytes,
            "used": entry.used, "reason": entry.reason, "parts": dict(entry.parts)}


def ago(then: float) -> str:
    """How long ago a time (seconds since 1970) was, to the hour."""
    hours = int((time.time() - then) / 3600)
    return "within the hour" if hours < 1 else f"{hours} h ago" if hours < 48 else f"{hours // 24} days ago"


ACTIONS = {"ls": ls, "info": info, "explain": explain, "verify": verify, "prune": prune, "clear": clear,
           "dir": directory}
