"""Damaged files by the thousand, loaded in processes of their own: see fuzz_files.py for what must hold."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("kind", ["json", "params", "mxc"])
@pytest.mark.parametrize("seed, count", [(1, 700), pytest.param(2, 3400, marks=pytest.mark.slow)])
def test_damaged_files(kind: str, seed: int, count: int) -> None:
    done = subprocess.run([sys.executable, str(HERE / "fuzz_files.py"), kind, str(seed), str(count)], timeout=900,
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(HERE)})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "'loaded'" in done.stdout and "'ModelFileError'" in done.stdout  # both were reached
