"""The peers' Python environments, one for each, made with pip under `home()` when missing or of other packages."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MXNET_SETUP = ROOT / "tests" / "golden" / "mxnet_python.py"  # prints the path of a Python that has MXNet 1.9.1
PEERS = ("mxc", "mxnet", "onnxruntime", "openvino", "torch", "torch.compile", "jax", "numpy", "numexpr")
NUMPY, ONNX = "numpy==2.4.6", "onnx==1.23.2"
PACKAGES = {
    "onnxruntime": ("onnxruntime==1.32.0", ONNX, NUMPY),
    "openvino": ("openvino==2026.4.1", ONNX, NUMPY),
    "torch": ("torch==2.13.0", NUMPY),
    "torchvision": ("torch==2.14.1", "torchvision==0.29.1", NUMPY, "pillow==12.0.0"),
    "jax": ("jax==0.10.2", NUMPY),
    "numpy": ("numexpr==2.14.2", NUMPY),
}
SHARED = {"torch.compile": "torch", "numexpr": "numpy"}  # a peer that lives in another's environment


class Unavailable(Exception):
    """Why a peer's environment cannot be made."""


def home() -> Path:
    """Where environments, compiled code and case files are kept; `XDG_CACHE_HOME` moves it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mxc-bench"


def python(peer: str) -> str:
    """The Python that runs the peer, its environment made if needed. Raises Unavailable."""
    if peer == "mxc":
        return sys.executable
    if peer == "mxnet":
        return _run([sys.executable, str(MXNET_SETUP)]).strip()
    name = SHARED.get(peer, peer)
    folder = home() / name
    ready, packages = folder / ".ready", " ".join(PACKAGES[name])
    if not ready.exists() or ready.read_text() != packages:
        print(f"making {folder}: {packages}", flush=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", *PACKAGES[name]])
        ready.write_text(packages)
    return str(folder / "bin" / "python")


def asked(peer: str) -> str | None:
    """The Python of a peer that BENCH_PEERS names, or that is there and BENCH_PEERS names none; says which has none."""
    wanted = os.environ.get("BENCH_PEERS", "").replace(",", " ").split()
    if wanted and peer not in wanted:
        return None
    try:
        return python(peer)
    except Unavailable as reason:
        print(f"skipped {peer}: {reason}", flush=True)
        return None


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
    return done.stdout
