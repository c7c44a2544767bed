"""Ctrl-C while LLVM works, while packages are imported, and at both ends of a command."""
from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from mxc.cli.main import INTERRUPTED
from mxc.compiler.system.interrupts import held, noticed


@pytest.fixture(autouse=True)
def python_handles_interrupts() -> Iterator[None]:
    """A shell has them ignored in what it starts in the background, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_takes_effect_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), held():
        signal.raise_signal(signal.SIGINT)
        done.append(True)
    assert done and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_passes_and_the_handler_is_the_old_one():
    with pytest.raises(ValueError), held():
        raise ValueError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_is_done_where_python_handles_no_interrupts():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_are_left_alone():
    seen = []

    def work() -> None:
        with held():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_an_interrupt_is_noticed_and_does_what_it_did():
    before = signal.getsignal(signal.SIGINT)
    with noticed() as came:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), held():
            signal.raise_signal(signal.SIGINT)
    assert came == [signal.SIGINT] * 2 and signal.getsignal(signal.SIGINT) is before


IMPORTING = """
import signal, sys
class Finder:
    def find_spec(self, name, *_):
        if name == NAME:
            ACTION
sys.meta_path.insert(0, Finder())
"""
RAISE = "signal.raise_signal(signal.SIGINT)"
HIDE = f"""try:
                {RAISE}
            except KeyboardInterrupt:
                raise ImportError("the C-extensions failed")"""


@pytest.mark.parametrize(("before", "code", "said"), [
    (IMPORTING.replace("NAME", "'mxc.cli.main'").replace("ACTION", RAISE), INTERRUPTED, ""),
    (IMPORTING.replace("NAME", "'numpy'").replace("ACTION", RAISE), INTERRUPTED, "mxc run: interrupted\n"),
    (IMPORTING.replace("NAME", "'numpy'").replace("ACTION", HIDE), INTERRUPTED, "mxc run: interrupted\n"),
    (f"import atexit, signal\natexit.register(lambda: {RAISE})", -signal.SIGINT, "cannot be read"),
], ids=["importing the command", "importing a package", "an import hides it", "at the end"])
def test_an_interrupt_at_any_time_of_a_command(before: str, code: int, said: str):
    program = f"{before}\nimport runpy\nrunpy.run_module('mxc', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", program, "run", "none-symbol.json", "--input", "data=x.npy"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
    assert said in done.stderr if said else done.stderr == ""
