"""Ctrl-C while LLVM works."""
from __future__ import annotations

import signal
import threading

import pytest

from mxc.compiler.interrupts import held


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
