"""The command `mxc` as a process of its own, for the tests of its parts."""
from __future__ import annotations

import os
import subprocess
import sys


def command(*arguments: str, program: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `mxc` with these arguments. program: Python that runs first. variables: of the environment."""
    start = [sys.executable, "-m", "mxc"]
    if program:
        start = [sys.executable, "-c", f"import sys\n{program}\nfrom mxc.cli.main import main\nsys.exit(main())"]
    return subprocess.run([*start, *arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, **variables})
