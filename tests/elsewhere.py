"""Programs in processes of their own."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(program: str, *arguments: object, **variables: str) -> str:
    """What a program prints."""
    path = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path, **variables}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
