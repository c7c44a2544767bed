"""examples/own_operators.py does what it says: it learns, and its artifact runs where neither its operators nor Numba
are."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "examples" / "own_operators.py"


def test_the_example_trains_and_its_artifact_runs_without_numba():
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, last = map(float, re.findall(r"batch of 64 (\S+), of the last (\S+)", done.stdout)[0])
    here, elsewhere = map(float, re.findall(r"accuracy .*?(\d\.\d+)$", done.stdout, re.MULTILINE))
    assert last < 0.2 < 2 < first
    assert here > 0.95
    assert elsewhere == here
