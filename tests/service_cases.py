"""examples/serve.py as a module, and what its tests send."""
from __future__ import annotations

import functools
import importlib.util
import io
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from artifact_cases import bound
from documents import ROOT

from mxc import artifact

pytest.importorskip("starlette", reason="the service needs starlette")
httpx = pytest.importorskip("httpx", reason="starlette's TestClient needs httpx")
cv2 = pytest.importorskip("cv2", reason="the service decodes pictures with OpenCV")
with warnings.catch_warnings():  # newer ones of starlette say that they would rather have httpx2
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

__all__ = ["JSON", "LABELS", "NPZ", "PNG", "PROGRAM", "TestClient", "cv2", "httpx", "npz", "program", "saved"]
PROGRAM = ROOT / "examples" / "serve.py"
LABELS = [f"kind {i}" for i in range(10)]
JSON, NPZ = {"content-type": "application/json"}, {"content-type": "application/x-npz"}
PNG = {"content-type": "image/png"}


@functools.cache
def program() -> Any:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("serve", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["serve"] = module  # where dataclasses look for it
    with pytest.MonkeyPatch.context() as patch:  # the program sets what is for a process of its own
        patch.setenv("MXC_NUM_THREADS", os.environ.get("MXC_NUM_THREADS", ""))
        patch.setenv("OPENCV_IO_MAX_IMAGE_PIXELS", "67108864")
        patch.setenv("OPENCV_LOG_LEVEL", os.environ.get("OPENCV_LOG_LEVEL", ""))
        spec.loader.exec_module(module)
    return module


def saved(folder: Path) -> Path:
    """A network over one picture of 32 x 32, or over two."""
    first = bound(networks.small_resnet(), data=(1, 3, 32, 32))
    artifact.save(folder / "net.mxc", [first, first.reshape(partial_shaping=True, allow_up_sizing=True,
                                                            data=(2, 3, 32, 32))], ["data"])
    return folder / "net.mxc"


def npz(**arrays: np.ndarray) -> bytes:
    """Arrays as the bytes of an archive."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()
