"""What the scripts share that ask MXNet about cases written as text; runs in the Python that has the real MXNet."""
import contextlib
import json
import logging
import math
import os
import subprocess
import sys
import tempfile

import numpy as np


@contextlib.contextmanager
def empty_folder():
    """Within `with` the program runs in an empty folder of its own."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def raised(call):
    """What a call gives, or as {"error": names} the class of what it raises and that class's bases."""
    try:
        return call()
    except Exception as error:
        names = [c.__name__ for c in type(error).__mro__]
        return {"error": names[:names.index("Exception")]}


def plain(value):
    """What JSON has for a value: numbers that are not finite as text, and of other objects their class's name."""
    if isinstance(value, dict):
        return [[plain(k), plain(v)] for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, (int, np.integer)):
        return int(value)
    return value if value is None or isinstance(value, str) else f"<{type(value).__name__}>"


class _Lines(logging.Handler):
    """Log records as lines: level and text."""

    def __init__(self):
        super().__init__(0)
        self.lines = []

    def emit(self, record):
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def logged(call):
    """What a call gives, and the lines that the root logger alone is told meanwhile."""
    root, lines = logging.getLogger(), _Lines()
    before, others = root.level, root.handlers[:]
    root.setLevel(logging.INFO)
    root.handlers[:] = [lines]
    try:
        return call(), lines.lines
    finally:
        root.handlers[:] = others
        root.setLevel(before)


def run(script, path, cases, answer):
    """Writes to `path` what `answer(mx, case)` says of each case, a line each, and returns it by case.

    The asking is done by `script`, run once more, which calls this too and ends there: MXNet's threads may not end.
    """
    if len(sys.argv) == 1:
        asked = subprocess.run([sys.executable, script, "answer"], stdout=subprocess.PIPE, check=True)
        found = json.loads(asked.stdout)
        lines = [f"{json.dumps(case)}: {json.dumps(said)}" for case, said in found.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return found
    import mxnet as mx

    def alone(case):
        with contextlib.suppress(mx.MXNetError):  # of the case before: else it is the next one's
            mx.nd.waitall()
        return answer(mx, case)

    said, sys.stdout = sys.stdout, sys.stderr  # where MXNet prints some errors
    said.write(json.dumps({case: alone(case) for case in cases}))
    said.flush()
    os._exit(0)
