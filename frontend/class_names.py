"""Names of classes in a file, which `--labels` of `mxc run` and of services such as examples/serve.py reads."""
from __future__ import annotations

import json
import re
from typing import Any

from mxc.compiler.error import ModelFileError
from mxc.compiler.system.input_files import content

MOST = 64 << 20  # bytes of such a file at most
SYNSET = re.compile(r"n\d{8}\s+")  # what ImageNet's list has before each name


def read(path: str) -> list[str]:
    """The names by number: of a text, a line each (numbers of ImageNet's synsets before them are left out), or of JSON,
    a list, or an object of names by number. Raises ModelFileError for anything else."""
    try:
        text = content(path, MOST).decode()
    except UnicodeDecodeError:
        raise ModelFileError(path, "expected names of classes, a line each; it is no UTF-8 text") from None
    if text.lstrip()[:1] in ("[", "{"):
        try:
            names = _of_json(json.loads(text))
        except (ValueError, RecursionError):
            names = None
        if names is None:
            raise ModelFileError(path, "expected names of classes: a list of names, or an object of names by numbers "
                                 "from 0 on")
        return names
    found = [SYNSET.sub("", line.strip()) for line in text.strip().splitlines()]
    if not found or not all(found):
        raise ModelFileError(path, "expected names of classes, a line each; "
                             + (f"line {found.index('') + 1} is empty" if found else "it is empty"))
    return found


def _of_json(data: Any) -> list[str] | None:
    if isinstance(data, dict):
        data = [data.get(str(i)) for i in range(len(data))]
    return data if isinstance(data, list) and data and all(isinstance(name, str) for name in data) else None
