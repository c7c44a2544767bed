"""The command `mxc`: `main.py` finds the command's module, which has the name of the command.

What commands share is in `model.py`, `inputs.py`, `runnable.py` and `tables.py`. This module is imported before an
interrupt is looked after, so it imports nothing itself; nobody imports the commands from outside.
"""
from __future__ import annotations


def start() -> int:
    """What the installed command calls: `mxc.cli.main`, whose exit code it returns. An interrupt (Ctrl-C) ends it with
    130, also while the command is imported; one that comes when all is done ends the process at once."""
    try:
        from mxc.cli.main import main

        return main()
    except KeyboardInterrupt:
        return 130
    finally:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)
