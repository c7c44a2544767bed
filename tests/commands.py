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


def on_terminal(*arguments: str, columns: int = 80, **variables: str) -> tuple[int, str]:
    """Run `mxc` with these arguments, its standard output a terminal of so many columns; its exit code, and what it
    printed there, without colours."""
    import pty
    import re

    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "mxc", *arguments], stdout=theirs, stderr=subprocess.PIPE,
                               env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **variables})
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # so Linux says that nobody has the other end any more
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    process.communicate(timeout=300)
    return process.returncode, re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", b"".join(pieces).decode()).replace("\r\n", "\n")
