"""Digests of the compiler's own sources, by which it knows files that another version made, and does not use them."""
from __future__ import annotations

import hashlib
import os

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # the folder of the compiler


def digest(*folders: str, suffixes: tuple[str, ...] = (".py",)) -> str:
    """16 hexadecimal digits of all files with these suffixes in these folders of the compiler; "" is the whole
    compiler."""
    total = hashlib.sha256()
    for folder in folders:
        for path, below, names in os.walk(os.path.join(ROOT, folder)):
            below.sort()
            for name in sorted(names):
                if name.endswith(suffixes):
                    with open(os.path.join(path, name), "rb", buffering=0) as file:
                        total.update(file.read())
    return total.hexdigest()[:16]
