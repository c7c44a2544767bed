"""`python -m mxc` is the command `mxc`."""
from __future__ import annotations

import sys

from mxc.cli import start

sys.exit(start())
