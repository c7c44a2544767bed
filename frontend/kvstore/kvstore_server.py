"""The server of stores that span machines, which mxc does not have: the class says so when it is to run."""
from __future__ import annotations

from typing import Any, NoReturn

from mxc.compiler.error import MXNetError


class KVStoreServer:
    """The server's side of a store. kvstore: the store that it serves."""

    def __init__(self, kvstore: Any):
        self.kvstore = kvstore

    def run(self) -> NoReturn:
        """Raises MXNetError: mxc trains in one process, whose stores need no server."""
        raise MXNetError(f"a kvstore of type {self.kvstore.type!r} has no server: mxc trains in one process")
