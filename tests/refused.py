"""A stand-in for systems that refuse AMX: a filter of system calls (seccomp), which a process sets for itself."""
from __future__ import annotations

import ctypes
import errno
import struct

from mxc.compiler.targets.cpu.machine.permission import ARCH_PRCTL, REQUEST

NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2  # of prctl
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06  # instructions of the filter: load a word, compare with it, return
NUMBER_AT, FIRST_AT = 0, 16  # where the filter finds the number of a system call, and its first argument
ALLOW, ERROR = 0x7FFF0000, 0x00050000


def refuse_tiles() -> None:
    """From now on the process is refused AMX. Raises OSError where the system has no filters."""
    steps = [(LOAD, 0, 0, NUMBER_AT), (JUMP_EQUAL, 0, 3, ARCH_PRCTL), (LOAD, 0, 0, FIRST_AT),
             (JUMP_EQUAL, 0, 1, REQUEST), (RETURN, 0, 0, ERROR | errno.EPERM), (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    library, zero = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong(0)
    for option, value, more in ((NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero),
                                (SET_SECCOMP, ctypes.c_ulong(FILTER), ctypes.byref(program))):
        if library.prctl(option, value, more, zero, zero):
            raise OSError(ctypes.get_errno(), "the system has no filters of system calls")
