"""The Python that has the reference implementation, MXNet 1.9.1, in an environment of its own, made when it is missing.

    python tests/golden/mxnet_python.py [FOLDER]     prints the path of that Python

FOLDER (default: `mxc-mxnet-1.9.1` in the user's folder of caches, `XDG_CACHE_HOME` or `~/.cache`) becomes a virtual
environment. MXNet 1.9.1 needs a NumPy that is older than 1.24, and there is one for Python 3.8 to 3.11 alone, so one of
these must be on the path. Its wheels are for Linux on x86-64.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("mxnet==1.9.1", "numpy==1.23.5")
PYTHONS = ("python3.11", "python3.10", "python3.9", "python3.8")
# MXNet's fusion of convolutions adds wrongly where a convolution's result is read twice, as in residual networks whose
# norms come first; without it every operator is computed for itself.
SETTINGS = {"MXNET_SUBGRAPH_BACKEND": "NONE"}


class Unavailable(Exception):
    """Why there is no Python with MXNet 1.9.1."""


def default_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mxc-mxnet-1.9.1"


def python(folder: Path | None = None) -> Path:
    """The Python of the environment in `folder`, which is made if it is not there or not whole. Raises Unavailable."""
    folder = default_folder() if folder is None else folder
    found, ready = folder / "bin" / "python", folder / ".ready"
    if not ready.exists() or ready.read_text() != " ".join(PACKAGES):
        base = next((name for name in PYTHONS if shutil.which(name) and _runs(name)), None)
        if base is None:
            raise Unavailable(f"MXNet 1.9.1 needs one of {', '.join(PYTHONS)}, and none of them runs")
        print(f"making {folder}: {', '.join(PACKAGES)} for {base}", file=sys.stderr, flush=True)
        _run(base, "-m", "venv", "--clear", folder)
        _run(found, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES)
        _run(found, "-c", "import mxnet")
        ready.write_text(" ".join(PACKAGES))
    return found


def environment(**more: str) -> dict[str, str]:
    """This process's environment variables with MXNet's settings, for a process that imports MXNet."""
    return {**os.environ, **SETTINGS, **more}


def _runs(name: str) -> bool:
    """Whether a Python of that name runs: version managers have stand-ins for what is not installed."""
    return subprocess.run([name, "-c", ""], capture_output=True).returncode == 0


def _run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"{' '.join(map(str, command))}: {done.stderr.strip()[-400:]}")


if __name__ == "__main__":
    try:
        print(python(*map(Path, sys.argv[1:])))
    except Unavailable as reason:
        sys.exit(str(reason))
